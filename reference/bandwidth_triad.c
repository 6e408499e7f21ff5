/* The oracle of bandwidth_triad. */
#include <math.h>

#include "reference.h"

void reference_triad(const float *b, const float *c, double scalar, size_t count, double *out,
                     double *magnitude) {
    for (size_t i = 0; i < count; i++) {
        double term = scalar * (double)c[i];
        out[i] = (double)b[i] + term;
        magnitude[i] = fabs((double)b[i]) + fabs(term);
    }
}
