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

/* Where column i of token t has its first half, or its second, and whether that is the upper one of the word. */
static size_t find_word(size_t tokens, size_t t, size_t i, bool is_second, bool *is_upper) {
    size_t quad = i % 32 / 16 * 2 + i % 2 + (is_second ? 4 : 0);
    *is_upper = i % 4 >= 2;
    return (i / 32 * tokens + t) * 32 + (quad ^ t % 8) * 4 + i % 16 / 4;
}

void reference_split_halves(const float *x, size_t tokens, size_t columns, uint32_t *halves,
                            float *powers) {
    for (size_t t = 0; t < tokens; t++) {
        const float *row = x + t * columns;
        int exponent = find_exponent(row, columns);
        powers[t] = ldexpf(1, exponent - 14 - 127);
        for (size_t i = 0; i < columns; i++) {
            float v = ldexpf(row[i], 141 - exponent);
            uint16_t both[2] = {half_from_float(v)};
            both[1] = half_from_float(v - half_to_float(both[0]));
            for (int k = 0; k < 2; k++) {
                bool is_upper;
                uint32_t *word = &halves[find_word(tokens, t, i, k, &is_upper)];
                *word = is_upper ? (*word & 0xFFFF) | (uint32_t)both[k] << 16
                                 : (*word & 0xFFFF0000) | both[k];
            }
        }
    }
}

void reference_join_halves(const uint32_t *halves, const float *powers, size_t tokens,
                           size_t columns, double *x) {
    for (size_t t = 0; t < tokens; t++)
        for (size_t i = 0; i < columns; i++) {
            double sum = 0;
            for (int k = 0; k < 2; k++) {
                bool is_upper;
                uint32_t word = halves[find_word(tokens, t, i, k, &is_upper)];
                sum += (double)half_to_float((uint16_t)(word >> (is_upper ? 16 : 0)));
            }
            x[t * columns + i] = sum * (double)powers[t];
        }
}
