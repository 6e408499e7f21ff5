/* The oracle of softmax. */
#include <float.h>
#include <math.h>

#include "reference.h"

/* The distance from the largest is rounded, and an exponential errs in proportion to it: hence the
 * 1 + distance. What leaves the normal floats may be lost. */
void reference_softmax(const float *x, size_t rows, size_t n, double *y, double *magnitude) {
    for (size_t r = 0; r < rows; r++, x += n, y += n, magnitude += n) {
        double largest = -INFINITY, sum = 0;
        for (size_t i = 0; i < n; i++)
            largest = fmax(largest, (double)x[i]);
        for (size_t i = 0; i < n; i++)
            sum += exp((double)x[i] - largest);
        for (size_t i = 0; i < n; i++) {
            double distance = largest - (double)x[i];
            y[i] = exp(-distance) / sum;
            magnitude[i] = y[i] * (1 + distance);
            if (exp(-distance) < 2 * (double)FLT_MIN)
                magnitude[i] = y[i] / (double)FLT_EPSILON;
        }
    }
}
