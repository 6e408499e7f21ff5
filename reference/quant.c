#include "quant.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "harness/device/elem.h"
#include "quant_search.h"

static double get_half(uint16_t bits) {
    return (double)half_to_float(bits);
}

/* Stores the nearest half and returns its value. */
static double put_half(uint16_t *bits, double value) {
    const double limit = 65504;
    elem_write(ELEM_F16, bits, 0, fmin(fmax(value, -limit), limit));
    return get_half(*bits);
}

/* NaN (a denormal scale has an infinite inverse) gives low. */
static long clamp(double value, long low, long high) {
    return !(value > (double)low) ? low : value > (double)high ? high : (long)value;
}

/* The value of largest magnitude, the first of equals. */
static double find_extreme(const float *values, size_t count) {
    double extreme = 0,
           largest = 0; /* both kept: clang 19 gets fabs(extreme) wrong when unrolled */
    for (size_t i = 0; i < count; i++)
        if (fabs((double)values[i]) > largest) {
            extreme = (double)values[i];
            largest = fabs(extreme);
        }
    return extreme;
}

static double find_min(const float *values, size_t count) {
    double low = (double)values[0];
    for (size_t i = 1; i < count; i++)
        low = fmin(low, (double)values[i]);
    return low;
}

static double find_max(const float *values, size_t count) {
    double high = (double)values[0];
    for (size_t i = 1; i < count; i++)
        high = fmax(high, (double)values[i]);
    return high;
}

/* Nibble i of 32 in 16 bytes, in the order of Q4_0 and Q4_1. */
static uint32_t get_nibble(const uint8_t *nibbles, size_t i) {
    return i < 16 ? nibbles[i] & 15u : (uint32_t)nibbles[i - 16] >> 4;
}

/* --- plain floats --- */

static void decode_f32(const void *block, double *values, double *magnitudes) {
    values[0] = elem_read(ELEM_F32, block, 0);
    magnitudes[0] = fabs(values[0]);
}

static void encode_f32(const float *values, void *block) {
    memcpy(block, values, sizeof *values);
}

static void decode_f16(const void *block, double *values, double *magnitudes) {
    values[0] = elem_read(ELEM_F16, block, 0);
    magnitudes[0] = fabs(values[0]);
}

static void encode_f16(const float *values, void *block) {
    put_half(block, (double)values[0]);
}

static void decode_bf16(const void *block, double *values, double *magnitudes) {
    values[0] = elem_read(ELEM_BF16, block, 0);
    magnitudes[0] = fabs(values[0]);
}

static void encode_bf16(const float *values, void *block) {
    elem_write(ELEM_BF16, block, 0, (double)values[0]);
}

/* --- blocks of 32 --- */

static void decode_q4_0(const void *block, double *values, double *magnitudes) {
    const block_q4_0 *b = block;
    double d = get_half(b->d);
    for (size_t i = 0; i < Q4_0_VALUES; i++) {
        double n = get_nibble(b->nibbles, i);
        values[i] = (n - 8) * d;
        magnitudes[i] = (n + 8) * fabs(d);
    }
}

/* The value of largest magnitude becomes nibble 0 (-8 d), so its sign sets the sign of d. The
 * arithmetic is that of floats: another rounding would pick another nibble now and then. */
static void encode_q4_0(const float *values, void *block) {
    block_q4_0 *b = block;
    float d = (float)find_extreme(values, Q4_0_VALUES) / -8, inverse = d != 0 ? 1 / d : 0;
    put_half(&b->d, (double)d);
    for (size_t j = 0; j < 16; j++) {
        float low = values[j] * inverse, high = values[j + 16] * inverse;
        b->nibbles[j] = (uint8_t)(clamp((double)(low + 8.5f), 0, 15) |
                                  clamp((double)(high + 8.5f), 0, 15) << 4);
    }
}

static void decode_q4_1(const void *block, double *values, double *magnitudes) {
    const block_q4_1 *b = block;
    double d = get_half(b->d), m = get_half(b->m);
    for (size_t i = 0; i < Q4_1_VALUES; i++) {
        double n = get_nibble(b->nibbles, i);
        values[i] = n * d + m;
        magnitudes[i] = n * fabs(d) + fabs(m);
    }
}

static void encode_q4_1(const float *values, void *block) {
    block_q4_1 *b = block;
    float low = (float)find_min(values, Q4_1_VALUES);
    float d = ((float)find_max(values, Q4_1_VALUES) - low) / 15, inverse = d != 0 ? 1 / d : 0;
    put_half(&b->d, (double)d);
    put_half(&b->m, (double)low);
    for (size_t j = 0; j < 16; j++) {
        float first = (values[j] - low) * inverse, second = (values[j + 16] - low) * inverse;
        b->nibbles[j] = (uint8_t)(clamp((double)(first + 0.5f), 0, 15) |
                                  clamp((double)(second + 0.5f), 0, 15) << 4);
    }
}

/* Bits 0-3 of a value are its nibble, as in Q4_0; bit 4 is in `high`. */
static uint32_t get_five_bits(const uint8_t *nibbles, const uint8_t *high, size_t i) {
    return get_nibble(nibbles, i) | (high[i / 8] >> i % 8 & 1u) << 4;
}

static void put_five_bits(uint8_t *nibbles, uint8_t *high, size_t i, long n) {
    uint8_t *byte = &nibbles[i % 16];
    *byte = (uint8_t)(*byte | (n & 15) << 4 * (i / 16));
    high[i / 8] = (uint8_t)(high[i / 8] | n >> 4 << i % 8);
}

static void decode_q5_0(const void *block, double *values, double *magnitudes) {
    const block_q5_0 *b = block;
    double d = get_half(b->d);
    for (size_t i = 0; i < Q5_0_VALUES; i++) {
        double n = get_five_bits(b->nibbles, b->high, i);
        values[i] = (n - 16) * d;
        magnitudes[i] = (n + 16) * fabs(d);
    }
}

/* The value of largest magnitude becomes 0, as in Q4_0; the arithmetic is that of floats. */
static void encode_q5_0(const float *values, void *block) {
    block_q5_0 *b = block;
    float d = (float)find_extreme(values, Q5_0_VALUES) / -16, inverse = d != 0 ? 1 / d : 0;
    *b = (block_q5_0){.d = 0};
    put_half(&b->d, (double)d);
    for (size_t i = 0; i < Q5_0_VALUES; i++) {
        float scaled = values[i] * inverse;
        put_five_bits(b->nibbles, b->high, i, clamp((double)(scaled + 16.5f), 0, 31));
    }
}

static void decode_q5_1(const void *block, double *values, double *magnitudes) {
    const block_q5_1 *b = block;
    double d = get_half(b->d), m = get_half(b->m);
    for (size_t i = 0; i < Q5_1_VALUES; i++) {
        double n = get_five_bits(b->nibbles, b->high, i);
        values[i] = n * d + m;
        magnitudes[i] = n * fabs(d) + fabs(m);
    }
}

static void encode_q5_1(const float *values, void *block) {
    block_q5_1 *b = block;
    float low = (float)find_min(values, Q5_1_VALUES);
    float d = ((float)find_max(values, Q5_1_VALUES) - low) / 31, inverse = d != 0 ? 1 / d : 0;
    *b = (block_q5_1){.d = 0};
    put_half(&b->d, (double)d);
    put_half(&b->m, (double)low);
    for (size_t i = 0; i < Q5_1_VALUES; i++) {
        float scaled = (values[i] - low) * inverse;
        put_five_bits(b->nibbles, b->high, i, clamp((double)(scaled + 0.5f), 0, 31));
    }
}

static void decode_q8_0(const void *block, double *values, double *magnitudes) {
    const block_q8_0 *b = block;
    double d = get_half(b->d);
    for (size_t i = 0; i < Q8_0_VALUES; i++) {
        values[i] = b->q[i] * d;
        magnitudes[i] = fabs(values[i]);
    }
}

static void encode_q8_0(const float *values, void *block) {
    block_q8_0 *b = block;
    float d = (float)fabs(find_extreme(values, Q8_0_VALUES)) / 127, inverse = d != 0 ? 1 / d : 0;
    put_half(&b->d, (double)d);
    for (size_t i = 0; i < Q8_0_VALUES; i++)
        b->q[i] = (int8_t)clamp((double)roundf(values[i] * inverse), -127, 127);
}

/* --- blocks of 256 --- */

/* Eight pairs of 6 bits in 12 bytes. The first four scales and minima are the lower 6 bits of bytes
 * 0-3 and 4-7. Of the others, bytes 8-11 have the lower 4 bits (scale low, minimum high), and the
 * upper 2 bits of bytes 0-3 and 4-7 are theirs too. */
static void get_scale_and_min(const uint8_t *s, size_t part, double *scale, double *min) {
    if (part < 4) {
        *scale = s[part] & 63;
        *min = s[part + 4] & 63;
    } else {
        *scale = (s[part + 4] & 15) | s[part - 4] >> 6 << 4;
        *min = s[part + 4] >> 4 | s[part] >> 6 << 4;
    }
}

static void put_scale_and_min(uint8_t *s, size_t part, long scale, long min) {
    if (part < 4) {
        s[part] = (uint8_t)(s[part] | scale);
        s[part + 4] = (uint8_t)(s[part + 4] | min);
    } else {
        s[part + 4] = (uint8_t)((scale & 15) | (min & 15) << 4);
        s[part - 4] = (uint8_t)(s[part - 4] | scale >> 4 << 6);
        s[part] = (uint8_t)(s[part] | min >> 4 << 6);
    }
}

static void decode_q4_k(const void *block, double *values, double *magnitudes) {
    const block_q4_k *b = block;
    double d = get_half(b->d), dmin = get_half(b->dmin);
    for (size_t i = 0; i < Q4_K_VALUES; i++) {
        size_t part = i / 32;
        uint8_t byte = b->nibbles[32 * (part / 2) + i % 32];
        double n = part % 2 ? byte >> 4 : byte & 15, scale, min;
        get_scale_and_min(b->scales, part, &scale, &min);
        values[i] = d * scale * n - dmin * min;
        magnitudes[i] = fabs(d * scale * n) + fabs(dmin * min);
    }
}

/* What Q4_K and Q5_K share: scales and minima of the eight parts, which start as zeros, and for
 * each value a number n from 0 to top. */
static void quantise_parts(const float *values, const quant_search *how, uint16_t *d,
                           uint16_t *dmin, uint8_t *scales, long *n) {
    float steps[8], minima[8], step = 0, minimum = 0;
    for (size_t p = 0; p < 8; p++) {
        steps[p] = quant_find_scale_and_min(values + 32 * p, how, n + 32 * p, &minima[p]);
        step = steps[p] > step ? steps[p] : step;
        minimum = minima[p] > minimum ? minima[p] : minimum;
    }
    float per_step = step > 0 ? 63 / step : 0, per_minimum = minimum > 0 ? 63 / minimum : 0;
    step = (float)put_half(d, (double)(step / 63));
    minimum = (float)put_half(dmin, (double)(minimum / 63));
    for (size_t p = 0; p < 8; p++) {
        long scale = quant_round(per_step * steps[p], 0, 63);
        long min = quant_round(per_minimum * minima[p], 0, 63);
        float by = step * (float)scale, from = minimum * (float)min;
        put_scale_and_min(scales, p, scale, min);
        for (size_t i = 32 * p; by != 0 && i < 32 * p + 32; i++)
            n[i] = quant_round((values[i] + from) / by, 0, how->top);
    }
}

/* Parts 2p and 2p + 1 share 32 bytes. */
static void put_part_nibble(uint8_t *nibbles, size_t i, long n) {
    size_t part = i / 32;
    uint8_t *byte = &nibbles[32 * (part / 2) + i % 32];
    *byte = (uint8_t)(*byte | (n & 15) << 4 * (part % 2));
}

static void encode_q4_k(const float *values, void *block) {
    block_q4_k *b = block;
    long n[Q4_K_VALUES];
    *b = (block_q4_k){0};
    quantise_parts(values, &(quant_search){15, -1, 20}, &b->d, &b->dmin, b->scales, n);
    for (size_t i = 0; i < Q4_K_VALUES; i++)
        put_part_nibble(b->nibbles, i, n[i]);
}

static void decode_q5_k(const void *block, double *values, double *magnitudes) {
    const block_q5_k *b = block;
    double d = get_half(b->d), dmin = get_half(b->dmin);
    for (size_t i = 0; i < Q5_K_VALUES; i++) {
        size_t part = i / 32;
        uint32_t byte = b->nibbles[32 * (part / 2) + i % 32];
        double n = (part % 2 ? byte >> 4 : byte & 15) | (b->high[i % 32] >> part & 1u) << 4;
        double scale, min;
        get_scale_and_min(b->scales, part, &scale, &min);
        values[i] = d * scale * n - dmin * min;
        magnitudes[i] = fabs(d * scale * n) + fabs(dmin * min);
    }
}

static void encode_q5_k(const float *values, void *block) {
    block_q5_k *b = block;
    long n[Q5_K_VALUES];
    *b = (block_q5_k){0};
    quantise_parts(values, &(quant_search){31, -0.5f, 15}, &b->d, &b->dmin, b->scales, n);
    for (size_t i = 0; i < Q5_K_VALUES; i++) {
        uint8_t *high = &b->high[i % 32];
        *high = (uint8_t)(*high | n[i] >> 4 << i / 32);
        put_part_nibble(b->nibbles, i, n[i]);
    }
}

/* Where value i has its bits: byte and shift of the lower four, byte and shift of the upper two. */
typedef struct {
    size_t low, low_shift, high, high_shift;
} q6_k_place;

static q6_k_place find_q6_k_place(size_t i) {
    size_t half = i / 128, quarter = i % 128 / 32, l = i % 32;
    return (q6_k_place){64 * half + 32 * (quarter % 2) + l, 4 * (quarter / 2), 32 * half + l,
                        2 * quarter};
}

static void decode_q6_k(const void *block, double *values, double *magnitudes) {
    const block_q6_k *b = block;
    double d = get_half(b->d);
    for (size_t i = 0; i < Q6_K_VALUES; i++) {
        q6_k_place at = find_q6_k_place(i);
        int n = (b->low[at.low] >> at.low_shift & 15) | (b->high[at.high] >> at.high_shift & 3)
                                                            << 4;
        values[i] = d * b->scales[i / 16] * (n - 32);
        magnitudes[i] = fabs(values[i]);
    }
}

/* The scale of largest magnitude becomes -128, as the extreme of a block becomes 0 in Q4_0. */
static void encode_q6_k(const float *values, void *block) {
    block_q6_k *b = block;
    float steps[16], extreme = 0, largest = 0;
    long n[Q6_K_VALUES];
    for (size_t p = 0; p < 16; p++) {
        steps[p] = quant_find_scale(values + 16 * p, n + 16 * p);
        if (fabsf(steps[p]) > largest) {
            largest = fabsf(steps[p]);
            extreme = steps[p];
        }
    }
    *b = (block_q6_k){.d = 0};
    if (largest < 1e-15f)
        return;
    float inverse = -128 / extreme, step = (float)put_half(&b->d, (double)(1 / inverse));
    for (size_t p = 0; p < 16; p++) {
        b->scales[p] = (int8_t)quant_round(inverse * steps[p], -128, 127);
        float by = step * (float)b->scales[p];
        for (size_t i = 16 * p; by != 0 && i < 16 * p + 16; i++)
            n[i] = 32 + quant_round(values[i] / by, -32, 31);
    }
    for (size_t i = 0; i < Q6_K_VALUES; i++) {
        q6_k_place at = find_q6_k_place(i);
        b->low[at.low] = (uint8_t)(b->low[at.low] | (n[i] & 15) << at.low_shift);
        b->high[at.high] = (uint8_t)(b->high[at.high] | n[i] >> 4 << at.high_shift);
    }
}

/* --- all of them --- */

#define BLOCKS(name, UPPER, halves, ...)                                                           \
    const weight_format format_##name = {                                                          \
        #UPPER,        UPPER##_VALUES, sizeof(block_##name), halves,                               \
        {__VA_ARGS__}, decode_##name,  encode_##name,                                              \
    };
BLOCKS(q4_0, Q4_0, 1, offsetof(block_q4_0, d))
BLOCKS(q4_1, Q4_1, 2, offsetof(block_q4_1, d), offsetof(block_q4_1, m))
BLOCKS(q5_0, Q5_0, 1, offsetof(block_q5_0, d))
BLOCKS(q5_1, Q5_1, 2, offsetof(block_q5_1, d), offsetof(block_q5_1, m))
BLOCKS(q8_0, Q8_0, 1, offsetof(block_q8_0, d))
BLOCKS(q4_k, Q4_K, 2, offsetof(block_q4_k, d), offsetof(block_q4_k, dmin))
BLOCKS(q5_k, Q5_K, 2, offsetof(block_q5_k, d), offsetof(block_q5_k, dmin))
BLOCKS(q6_k, Q6_K, 1, offsetof(block_q6_k, d))
const weight_format format_f16 = {"F16", 1, 2, 1, {0}, decode_f16, encode_f16};
const weight_format format_bf16 = {"BF16", 1, 2, 0, {0}, decode_bf16, encode_bf16};
const weight_format format_f32 = {"F32", 1, 4, 0, {0}, decode_f32, encode_f32};

size_t format_get_bytes(const weight_format *f, size_t rows, size_t columns) {
    assert(columns % f->values == 0);
    return rows * (columns / f->values) * f->bytes;
}
