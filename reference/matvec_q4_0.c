/* The oracle of matvec_q4_0 and matvec_q4_0_accumulate. */
#include <math.h>

#include "quant.h"
#include "reference.h"

/* Some kernels add n * x and subtract 8 * x apart, so the magnitude counts both: n + 8 and not
 * |n - 8|. */
void reference_matvec_q4_0(const void *w, const float *x, size_t out_dim, size_t in_dim, double *y,
                           double *magnitude) {
    const block_q4_0 *b = w;
    for (size_t row = 0; row < out_dim; row++)
        for (size_t column = 0; column < in_dim; column += Q4_0_VALUES, b++) {
            double d = q4_0_get_scale(b);
            for (size_t i = 0; i < Q4_0_VALUES; i++) {
                double n = q4_0_get_nibble(b, i), term = d * (double)x[column + i];
                y[row] += (n - 8) * term;
                magnitude[row] += (n + 8) * fabs(term);
            }
        }
}
