/* A token's values times a power of two, each as two halves, and means; in words, see split_halves.metal. */
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

size_t reference_count_halves(size_t columns) {
    return columns + columns / 32;
}

/* Where column i of token t has its first half, or its second, and whether that is the upper one of the word. */
static size_t find_word(size_t tokens, size_t t, size_t i, bool is_second, bool *is_upper) {
    size_t quad = i % 32 / 16 * 2 + i % 2 + (is_second ? 4 : 0);
    *is_upper = i % 4 >= 2;
    return (i / 32 * tokens + t) * 32 + (quad ^ t % 8) * 4 + i % 16 / 4;
}

/* Where the mean of column i and the 31 after it is. */
static size_t find_mean(size_t tokens, size_t columns, size_t t, size_t i, bool is_second,
                        bool *is_upper) {
    size_t half = ((is_second ? 1 : 0) ^ t / 4 % 2) * 8 + i / 32 % 8;
    *is_upper = half % 2;
    return columns * tokens + (i / 256 * tokens + t) * 8 + half / 2;
}

/* The sum of 16 values, in this order, times a power of two. */
static float add_16(const float *x, int power) {
    float sum = 0;
    for (size_t i = 0; i < 16; i++)
        sum += ldexpf(x[i], power);
    return sum;
}

static void put_half(uint32_t *word, bool is_upper, uint16_t bits) {
    *word = is_upper ? (*word & 0xFFFF) | (uint32_t)bits << 16 : (*word & 0xFFFF0000) | bits;
}

static void split(float v, uint16_t both[2]) {
    both[0] = half_from_float(v);
    both[1] = half_from_float(v - half_to_float(both[0]));
}

void reference_split_halves(const float *x, size_t tokens, size_t columns, uint32_t *halves,
                            float *powers) {
    for (size_t t = 0; t < tokens; t++) {
        const float *row = x + t * columns;
        int exponent = find_exponent(row, columns);
        powers[t] = ldexpf(1, exponent - 14 - 127);
        for (size_t i = 0; i < columns; i++) {
            uint16_t both[2];
            bool is_upper;
            split(ldexpf(row[i], 141 - exponent), both);
            for (int k = 0; k < 2; k++) {
                uint32_t *word = &halves[find_word(tokens, t, i, k, &is_upper)];
                put_half(word, is_upper, both[k]);
            }
            if (i % 32 != 0)
                continue;
            split((add_16(row + i, 141 - exponent) + add_16(row + i + 16, 141 - exponent)) / 32,
                  both);
            for (int k = 0; k < 2; k++) {
                uint32_t *word = &halves[find_mean(tokens, columns, t, i, k, &is_upper)];
                put_half(word, is_upper, both[k]);
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
