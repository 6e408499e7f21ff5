/* The oracles of bandwidth_read, bandwidth_triad and compute_fma. */
#include <math.h>

#include "harness/device/elem.h"
#include "quant.h"
#include "reference.h"

static void clear_sums(size_t groups, double *sums, double *magnitude) {
    for (size_t g = 0; g < groups; g++)
        sums[g] = magnitude[g] = 0;
}

void reference_read_sums(const float *data, size_t count, size_t groups, size_t group, double *sums,
                         double *magnitude) {
    clear_sums(groups, sums, magnitude);
    for (size_t i = 0; i < count; i++) {
        size_t thread = i % (groups * group), g = thread / group;
        for (size_t j = 0; j < 4; j++) {
            sums[g] += (double)data[4 * i + j];
            magnitude[g] += fabs((double)data[4 * i + j]);
        }
    }
}

void reference_read_sums_f16(const uint16_t *data, size_t count, size_t groups, size_t group,
                             double *sums, double *magnitude) {
    clear_sums(groups, sums, magnitude);
    for (size_t i = 0; i < count; i++) {
        size_t g = i % (groups * group) / group;
        for (size_t j = 0; j < 4; j++) {
            double value = (double)half_to_float(data[4 * i + j]);
            sums[g] += value;
            magnitude[g] += fabs(value);
        }
    }
}

void reference_read_sums_q4_0(const void *blocks, size_t count, size_t groups, size_t group,
                              double *sums, double *magnitude) {
    const block_q4_0 *b = blocks;
    clear_sums(groups, sums, magnitude);
    for (size_t i = 0; i < count; i++) {
        size_t g = i % (groups * group) / group;
        double values[Q4_0_VALUES], magnitudes[Q4_0_VALUES];
        format_q4_0.decode(&b[i], values, magnitudes);
        for (size_t j = 0; j < Q4_0_VALUES; j++) {
            sums[g] += values[j];
            magnitude[g] += fabs(values[j]);
        }
    }
}

void reference_triad(const float *b, const float *c, double scalar, size_t count, double *out,
                     double *magnitude) {
    for (size_t i = 0; i < count; i++) {
        double term = scalar * (double)c[i];
        out[i] = (double)b[i] + term;
        magnitude[i] = fabs((double)b[i]) + fabs(term);
    }
}

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
