/* The oracle of token_shift. */
#include <math.h>

#include "reference.h"

void reference_token_shift(const float *x, const float *state, const float *mu, size_t tokens,
                           size_t dim, size_t mixes, double *out, double *magnitude) {
    for (size_t m = 0; m < mixes; m++)
        for (size_t i = 0; i < tokens * dim; i++) {
            double value = (double)x[i], share = (double)mu[m * dim + i % dim];
            double previous = (double)(i < dim ? state[i] : x[i - dim]);
            size_t at = m * tokens * dim + i;
            out[at] = value + (previous - value) * share;
            magnitude[at] = fabs(value) + (fabs(previous) + fabs(value)) * fabs(share);
        }
}
