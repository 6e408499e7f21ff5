/* The oracle of rmsnorm. */
#include <float.h>
#include <math.h>

#include "reference.h"

void reference_rmsnorm(const float *x, const float *w, size_t rows, size_t dim, double eps,
                       double *y, double *magnitude) {
    for (size_t r = 0; r < rows; r++) {
        double squares = 0;
        for (size_t i = 0; i < dim; i++)
            squares += (double)x[r * dim + i] * (double)x[r * dim + i];
        double inverse = 1 / sqrt(squares / (double)dim + eps);
        for (size_t i = 0; i < dim; i++) {
            double normal = (double)x[r * dim + i] * inverse;
            y[r * dim + i] = normal * (double)w[i];
            /* Squares do not cancel, so the error is relative to y; what a denormal x / rms loses
             * in an f32 is then multiplied by w. */
            magnitude[r * dim + i] = fmax(fabs(normal), (double)FLT_MIN) * fabs((double)w[i]);
        }
    }
}
