/* A token's values times a power of two, each as two halves; in words, see split_halves.metal. */
#include <math.h>

#include "harness/device/elem.h"
#include "reference.h"

/* The exponent, as a float has it, of the largest value: at least that of the smallest power that the
 * other way round is a float too. */
static int find_exponent(const float *x, size_t columns) {
    float most = 0;
    for (size_t i = 0; i < columns; i++)
        most = fmaxf(most, fabsf(x[i]));
    int exponent = most > 0 ? isfinite(most) ? ilogbf(most) + 127 : 254 : 0;
    return exponent < 15 ? 15 : exponent;
}

void reference_split_halves(const float *x, size_t tokens, size_t columns, uint32_t *halves,
                            float *powers) {
    static const size_t order[] = {0, 2, 1, 3};
    for (size_t t = 0; t < tokens; t++) {
        const float *row = x + t * columns;
        int exponent = find_exponent(row, columns);
        powers[t] = ldexpf(1, exponent - 14 - 127);
        for (size_t i = 0; i < columns; i += 4)
            for (size_t k = 0; k < 4; k++) {
                float v = ldexpf(row[i + order[k]], 141 - exponent);
                uint16_t first = half_from_float(v),
                         rest = half_from_float(v - half_to_float(first));
                uint32_t *upper = &halves[t * columns + i + k / 2], *lower = upper + 2;
                *upper = k % 2 ? *upper | (uint32_t)first << 16 : first;
                *lower = k % 2 ? *lower | (uint32_t)rest << 16 : rest;
            }
    }
}

void reference_join_halves(const uint32_t *halves, const float *powers, size_t tokens,
                           size_t columns, double *x) {
    for (size_t i = 0; i < tokens * columns; i++) {
        const uint32_t *upper = &halves[i / 4 * 4 + i % 2]; /* its neighbour but one is in it too */
        unsigned shift = i % 4 < 2 ? 0 : 16;
        x[i] = ((double)half_to_float((uint16_t)(upper[0] >> shift)) +
                (double)half_to_float((uint16_t)(upper[2] >> shift))) *
               (double)powers[i / columns];
    }
}
