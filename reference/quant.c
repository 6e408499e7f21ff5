#include "quant.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "harness/device/elem.h"

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

/* --- scales of the K formats, searched as ggml's reference quantisation does ---
 *
 * The rounding of every sum decides which of two near encodings wins, so all arithmetic is that of
 * floats in a fixed order: files come out the same byte for byte. */

enum { QUANT_PART = 32, QUANT_SMALL_PART = 16 };

/* How a part with a minimum is searched: numbers from 0 to top, and inverse scales from
 * (top + first) / range in `steps` further steps of 0.1. */
typedef struct {
    long top;
    float first;
    int steps;
} quant_search;

/* A part in which nothing is larger is zero. */
static const float nothing = 1e-15f;

/* The nearest whole number, ties to even; NaN gives low. */
static long round_to(float value, long low, long high) {
    float whole = nearbyintf(value);
    return !(whole > (float)low) ? low : whole > (float)high ? high : (long)whole;
}

/* What a part is measured with; sums go over all of its values. */
typedef struct {
    const float *x;
    float weights[QUANT_PART];
    float sum_w, sum_x; /* of weights, and of weighted values */
    float low, high;    /* of x; low is at most 0 */
} measured;

static measured measure(const float *x) {
    measured p = {.x = x, .low = x[0], .high = x[0]};
    float squares = 0;
    for (int i = 0; i < QUANT_PART; i++)
        squares += x[i] * x[i];
    float mean = sqrtf(squares / (float)QUANT_PART);
    for (int i = 0; i < QUANT_PART; i++) {
        p.weights[i] = mean + fabsf(x[i]);
        p.sum_w += p.weights[i];
        p.sum_x += p.weights[i] * x[i];
        p.low = x[i] < p.low ? x[i] : p.low;
        p.high = x[i] > p.high ? x[i] : p.high;
    }
    p.low = p.low > 0 ? 0 : p.low;
    return p;
}

static float find_error(const measured *p, const long *n, float scale, float low) {
    float error = 0;
    for (int i = 0; i < QUANT_PART; i++) {
        float difference = scale * (float)n[i] + low - p->x[i];
        error += p->weights[i] * (difference * difference);
    }
    return error;
}

/* The scale and the lowest value that fit these numbers best; false where they do not tell. */
static bool fit(const measured *p, const long *n, float *scale, float *low) {
    float sum = 0, squares = 0, products = 0;
    for (int i = 0; i < QUANT_PART; i++) {
        float w = p->weights[i], l = (float)n[i];
        sum += w * l;
        squares += w * l * l;
        products += w * l * p->x[i];
    }
    float d = p->sum_w * squares - sum * sum;
    if (!(d > 0))
        return false;
    *scale = (p->sum_w * products - p->sum_x * sum) / d;
    *low = (squares * p->sum_x - sum * products) / d;
    if (*low > 0) {
        *low = 0;
        *scale = products / squares;
    }
    return true;
}

static void quantise(const measured *p, float low, float inverse, long top, long *n) {
    for (int i = 0; i < QUANT_PART; i++)
        n[i] = round_to(inverse * (p->x[i] - low), 0, top);
}

/* x (QUANT_PART) is about n scale - minimum with the least squared error, weighted by magnitude. Returns
 * the scale; *minimum is not negative. */
static float find_scale_and_min(const float *x, const quant_search *how, long *n, float *minimum) {
    measured p = measure(x);
    float low = p.low, top = (float)how->top;
    if (p.high == p.low) {
        memset(n, 0, QUANT_PART * sizeof *n);
        *minimum = -low;
        return 0;
    }
    float scale = 1 / (top / (p.high - low));
    quantise(&p, low, top / (p.high - low), how->top, n);
    float best = find_error(&p, n, scale, low);
    for (int step = 0; step <= how->steps; step++) {
        long tried[QUANT_PART];
        float new_scale, new_low;
        /* From the best minimum so far: the range moves with it. */
        float inverse = (how->first + 0.1f * (float)step + top) / (p.high - low);
        quantise(&p, low, inverse, how->top, tried);
        if (!fit(&p, tried, &new_scale, &new_low))
            continue;
        float error = find_error(&p, tried, new_scale, new_low);
        if (!(error < best))
            continue;
        memcpy(n, tried, sizeof tried);
        best = error;
        scale = new_scale;
        low = new_low;
    }
    *minimum = -low;
    return scale;
}

/* Numbers from -32 to 31 for an inverse scale, and the two sums that tell how well they fit. */
static void try_inverse(const float *x, float inverse, long *l, float *products, float *squares) {
    *products = *squares = 0;
    for (int i = 0; i < QUANT_SMALL_PART; i++) {
        float w = x[i] * x[i];
        l[i] = round_to(inverse * x[i], -32, 31);
        *products += w * x[i] * (float)l[i];
        *squares += w * (float)l[i] * (float)l[i];
    }
}

/* x (QUANT_SMALL_PART) is about (n - 32) scale, with n from 0 to 63. Returns the scale, which may be
 * negative; 0 where all are about zero. */
static float find_scale(const float *x, long *n) {
    float extreme = 0, largest = 0, products, squares;
    for (int i = 0; i < QUANT_SMALL_PART; i++)
        if (fabsf(x[i]) > largest) {
            largest = fabsf(x[i]);
            extreme = x[i];
        }
    memset(n, 0, QUANT_SMALL_PART * sizeof *n);
    if (largest < nothing)
        return 0;
    try_inverse(x, -32 / extreme, n, &products, &squares);
    float scale = squares != 0 ? products / squares : 0, best = scale * products;
    for (int step = -9; step <= 9; step++) {
        long tried[QUANT_SMALL_PART];
        if (step == 0)
            continue;
        try_inverse(x, -(32 + 0.1f * (float)step) / extreme, tried, &products, &squares);
        if (!(squares > 0 && products * products > best * squares))
            continue;
        memcpy(n, tried, sizeof tried);
        scale = products / squares;
        best = scale * products;
    }
    for (int i = 0; i < QUANT_SMALL_PART; i++)
        n[i] += 32;
    return scale;
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
        steps[p] = find_scale_and_min(values + 32 * p, how, n + 32 * p, &minima[p]);
        step = steps[p] > step ? steps[p] : step;
        minimum = minima[p] > minimum ? minima[p] : minimum;
    }
    float per_step = step > 0 ? 63 / step : 0, per_minimum = minimum > 0 ? 63 / minimum : 0;
    step = (float)put_half(d, (double)(step / 63));
    minimum = (float)put_half(dmin, (double)(minimum / 63));
    for (size_t p = 0; p < 8; p++) {
        long scale = round_to(per_step * steps[p], 0, 63);
        long min = round_to(per_minimum * minima[p], 0, 63);
        float by = step * (float)scale, from = minimum * (float)min;
        put_scale_and_min(scales, p, scale, min);
        for (size_t i = 32 * p; by != 0 && i < 32 * p + 32; i++)
            n[i] = round_to((values[i] + from) / by, 0, how->top);
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
        steps[p] = find_scale(values + 16 * p, n + 16 * p);
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
        b->scales[p] = (int8_t)round_to(inverse * steps[p], -128, 127);
        float by = step * (float)b->scales[p];
        for (size_t i = 16 * p; by != 0 && i < 16 * p + 16; i++)
            n[i] = 32 + round_to(values[i] / by, -32, 31);
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
