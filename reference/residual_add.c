/* The oracle of residual_add and residual_add_inplace. */
#include <math.h>

#include "reference.h"

void reference_residual_add(const float *a, const float *b, size_t count, double *out,
                            double *magnitude) {
    for (size_t i = 0; i < count; i++) {
        out[i] = (double)a[i] + (double)b[i];
        magnitude[i] = fabs((double)a[i]) + fabs((double)b[i]);
    }
}
