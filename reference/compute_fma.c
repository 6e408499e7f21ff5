/* The oracle of compute_fma. */
#include <math.h>

#include "reference.h"

/* a = a * keep + x, `rounds` times from a start s, is s * keep^rounds + x * (1 + keep + ...). */
void reference_compute_fma(const float *x, size_t count, uint32_t rounds, double keep, double *out,
                           double *magnitude) {
    static const double starts[4] = {0, 1, -1, 2}; /* times x */
    double power = pow(keep, (double)rounds), series = (1 - power) / (1 - keep);
    for (size_t i = 0; i < count; i++) {
        out[i] = magnitude[i] = 0;
        for (int k = 0; k < 4; k++) {
            out[i] += (starts[k] * power + series) * (double)x[i];
            magnitude[i] += (fabs(starts[k]) * power + series) * fabs((double)x[i]);
        }
    }
}
