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

/* Where the first half of value i is, and whether it is the upper one of its word; the second half is 16
 * words further. */
static size_t find_word(size_t i, bool *is_upper) {
    *is_upper = i % 4 >= 2;
    return i / 32 * 32 + i % 32 / 16 * 8 + i % 2 * 4 + i % 16 / 4;
}

static void put_half(uint32_t *word, bool is_upper, uint16_t half) {
    *word = is_upper ? (*word & 0xFFFF) | (uint32_t)half << 16 : (*word & 0xFFFF0000) | half;
}

void reference_split_halves(const float *x, size_t tokens, size_t columns, uint32_t *halves,
                            float *powers) {
    bool is_upper;
    for (size_t t = 0; t < tokens; t++) {
        int exponent = find_exponent(x + t * columns, columns);
        powers[t] = ldexpf(1, exponent - 14 - 127);
        for (size_t i = t * columns; i < (t + 1) * columns; i++) {
            float v = ldexpf(x[i], 141 - exponent);
            uint16_t first = half_from_float(v);
            uint32_t *word = &halves[find_word(i, &is_upper)];
            put_half(word, is_upper, first);
            put_half(word + 16, is_upper, half_from_float(v - half_to_float(first)));
        }
    }
}

void reference_join_halves(const uint32_t *halves, const float *powers, size_t tokens,
                           size_t columns, double *x) {
    bool is_upper;
    for (size_t i = 0; i < tokens * columns; i++) {
        const uint32_t *word = &halves[find_word(i, &is_upper)];
        unsigned shift = is_upper ? 16 : 0;
        x[i] = ((double)half_to_float((uint16_t)(word[0] >> shift)) +
                (double)half_to_float((uint16_t)(word[16] >> shift))) *
               (double)powers[i / columns];
    }
}
