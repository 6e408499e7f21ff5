/* The oracles of bandwidth_read_f16 and bandwidth_read_q4_0. */
#include <math.h>

#include "harness/device/elem.h"
#include "quant.h"
#include "reference.h"

static void clear_sums(size_t groups, double *sums, double *magnitude) {
    for (size_t g = 0; g < groups; g++)
        sums[g] = magnitude[g] = 0;
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
