/* The block formats, against values worked out by hand. */
#include <float.h>
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "harness/check/fill.h"
#include "harness/device/elem.h"
#include "reference/quant.h"

SUITE(formats_suite);

static double values_of[BLOCK_MAX_VALUES], magnitudes_of[BLOCK_MAX_VALUES];

TEST a_q4_0_block_decodes_as_worked_by_hand(void) {
    block_q4_0 b = {.d = 0x3800}; /* 0.5 */
    for (size_t j = 0; j < 16; j++)
        b.nibbles[j] = (uint8_t)(j | (15 - j) << 4);
    format_q4_0.decode(&b, values_of, magnitudes_of);
    for (size_t j = 0; j < 16; j++) {
        ASSERT(values_of[j] == ((double)j - 8) * 0.5);
        ASSERT(values_of[j + 16] == (7 - (double)j) * 0.5);
        ASSERT(magnitudes_of[j] == ((double)j + 8) * 0.5);
    }
    PASS();
}

TEST a_q4_0_block_encodes_as_worked_by_hand(void) {
    float v[Q4_0_VALUES] = {4, -1, 0.5f, 0.2f};
    v[16] = -3.5f;
    block_q4_0 b;
    format_q4_0.encode(v, &b); /* the largest is 4, so d = -0.5 and 4 is nibble 0 */
    ASSERT_EQ(0xB800, b.d);
    ASSERT_EQ(0xF0, b.nibbles[0]); /* low: 4 / -0.5 + 8 = 0; high: -3.5 / -0.5 + 8 = 15 */
    ASSERT_EQ(0x8A, b.nibbles[1]); /* -1 / -0.5 + 8 = 10; high: 0 is 8 */
    ASSERT_EQ(0x87, b.nibbles[2]);
    ASSERT_EQ(0x88, b.nibbles[3]); /* 7.6 is nearer to 8 */
    PASS();
}

TEST q4_0_saturates_beyond_half(void) {
    float v[Q4_0_VALUES] = {0};
    block_q4_0 b;
    v[5] = -1e12f;
    format_q4_0.encode(v, &b);
    ASSERT_EQ(0x7BFF, b.d); /* 65504 */
    ASSERT_EQ(0, b.nibbles[5] & 15);
    ASSERT_EQ(18, format_get_bytes(&format_q4_0, 1, 32));
    ASSERT_EQ(18 * 18 * 576, format_get_bytes(&format_q4_0, 576, 576));
    ASSERT_EQ(210 * 3 * 2, format_get_bytes(&format_q6_k, 2, 768));
    ASSERT_EQ(2 * 7 * 5, format_get_bytes(&format_f16, 7, 5));
    PASS();
}

TEST a_q4_1_block_is_as_worked_by_hand(void) {
    block_q4_1 b = {.d = 0x3800, .m = 0xC000}; /* 0.5 and -2 */
    b.nibbles[3] = 0xF5;
    format_q4_1.decode(&b, values_of, magnitudes_of);
    ASSERT(values_of[0] == -2 && values_of[3] == 0.5 && values_of[19] == 5.5);
    ASSERT(magnitudes_of[3] == 4.5);
    float v[Q4_1_VALUES] = {0};
    v[0] = -3, v[1] = 12, v[17] = 4.4f, v[18] = 4.5f; /* d = 1, m = -3 */
    format_q4_1.encode(v, &b);
    ASSERT(b.d == 0x3C00 && b.m == 0xC200);
    ASSERT_EQ(0x30, b.nibbles[0]); /* -3 is 0, 0 is 3 */
    ASSERT_EQ(0x7F, b.nibbles[1]); /* 12 is 15, 4.4 is 7 */
    ASSERT_EQ(0x83, b.nibbles[2]); /* 4.5 is 8: halves go up */
    PASS();
}

TEST a_q5_0_block_is_as_worked_by_hand(void) {
    block_q5_0 b = {.d = 0x3800}; /* 0.5 */
    b.nibbles[0] = 0x21, b.nibbles[7] = 0xF0, b.nibbles[15] = 0x94;
    b.high[0] = 1 | 1 << 7, b.high[2] = 1, b.high[3] = 1 << 7; /* values 0, 7, 16, 31 */
    format_q5_0.decode(&b, values_of, magnitudes_of);
    ASSERT(values_of[0] == 0.5 && values_of[16] == 1);   /* 17 and 18 */
    ASSERT(values_of[7] == 0 && values_of[23] == -0.5);  /* 16 and 15 */
    ASSERT(values_of[15] == -6 && values_of[31] == 4.5); /* 4 and 25 */
    ASSERT(values_of[1] == -8 && magnitudes_of[0] == 16.5);
    float v[Q5_0_VALUES] = {8, -1, 0.24f, 0.26f};
    v[16] = -8;
    format_q5_0.encode(v, &b); /* the largest is 8, so d = -0.5 and 8 is 0 */
    ASSERT_EQ(0xB800, b.d);
    ASSERT_EQ(0xF0, b.nibbles[0]); /* -8 would be 32, and 31 is the last */
    ASSERT_EQ(0x02, b.nibbles[1]); /* 18; 0 is 16 */
    ASSERT_EQ(0x00, b.nibbles[2]);
    ASSERT_EQ(0x0F, b.nibbles[3]); /* 15.48 is nearer to 15 */
    ASSERT(b.high[0] == 0xF6 && b.high[1] == 0xFF && b.high[2] == 0xFF && b.high[3] == 0xFF);
    PASS();
}

TEST a_q5_1_block_is_as_worked_by_hand(void) {
    block_q5_1 b = {.d = 0x3800, .m = 0xC000}; /* 0.5 and -2 */
    b.nibbles[3] = 0xF5, b.high[0] = 1 << 3, b.high[2] = 1 << 3;
    format_q5_1.decode(&b, values_of, magnitudes_of);
    ASSERT(values_of[0] == -2 && values_of[3] == 8.5 && values_of[19] == 13.5);
    ASSERT(magnitudes_of[3] == 12.5);
    float v[Q5_1_VALUES] = {0};
    v[0] = -3, v[1] = 28, v[17] = 4.4f, v[18] = 20.5f; /* d = 1, m = -3 */
    format_q5_1.encode(v, &b);
    ASSERT(b.d == 0x3C00 && b.m == 0xC200);
    ASSERT_EQ(0x30, b.nibbles[0]); /* -3 is 0, 0 is 3 */
    ASSERT_EQ(0x7F, b.nibbles[1]); /* 28 is 31, 4.4 is 7 */
    ASSERT_EQ(0x83, b.nibbles[2]); /* 20.5 is 24: halves go up */
    ASSERT(b.high[0] == 2 && b.high[1] == 0 && b.high[2] == 4 && b.high[3] == 0);
    PASS();
}

TEST a_bfloat_is_the_upper_half_of_a_float(void) {
    const uint16_t bits[] = {0x3FC0, 0xC2F7}; /* 1.5 and -123.5 */
    format_bf16.decode(&bits[0], values_of, magnitudes_of);
    format_bf16.decode(&bits[1], values_of + 1, magnitudes_of + 1);
    ASSERT(values_of[0] == 1.5 && values_of[1] == -123.5 && magnitudes_of[1] == 123.5);
    const float v[] = {1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f}; /* halfway: to the even one */
    uint16_t encoded[2];
    format_bf16.encode(&v[0], &encoded[0]);
    format_bf16.encode(&v[1], &encoded[1]);
    ASSERT(encoded[0] == 0x3F80 && encoded[1] == 0x3F82);
    PASS();
}

TEST a_q8_0_block_is_as_worked_by_hand(void) {
    block_q8_0 b = {.d = 0xB800}; /* -0.5 */
    b.q[0] = 1, b.q[16] = -128, b.q[31] = 127;
    format_q8_0.decode(&b, values_of, magnitudes_of);
    ASSERT(values_of[0] == -0.5 && values_of[1] == 0);
    ASSERT(values_of[16] == 64 && values_of[31] == -63.5 && magnitudes_of[31] == 63.5);
    float v[Q8_0_VALUES] = {-127, 2.5f, -2.5f, 2.4f};
    format_q8_0.encode(v, &b); /* the largest magnitude is 127, so d = 1 */
    ASSERT_EQ(0x3C00, b.d);
    ASSERT(b.q[0] == -127 && b.q[1] == 3 && b.q[2] == -3 && b.q[3] == 2); /* halves go outwards */
    PASS();
}

/* Parts 0 and 5: one on each side of the border where scales are packed in another way. */
TEST a_q4_k_block_decodes_as_worked_by_hand(void) {
    block_q4_k b = {.d = 0x3C00, .dmin = 0x4000}; /* 1 and 2 */
    b.scales[0] = 0x40 | 33;                      /* scale 0 is 33; 1 goes to scale 4 */
    b.scales[4] = 0x80 | 5;                       /* minimum 0 is 5; 2 goes to minimum 4 */
    b.scales[1] = 0xC0;                           /* 3 goes to scale 5 */
    b.scales[5] = 0x40;                           /* 1 goes to minimum 5 */
    b.scales[9] = 0x9A;                           /* scale 5 is 3 * 16 + 10, minimum 16 + 9 */
    b.scales[8] = 0x21;                           /* scale 4 is 16 + 1, minimum 2 * 16 + 2 */
    b.nibbles[7] = 0xE3;                          /* part 0: 3; part 1: 14, with scale 0 */
    b.nibbles[64 + 31] = 0x42;                    /* part 4: 2; part 5: 4 */
    format_q4_k.decode(&b, values_of, magnitudes_of);
    ASSERT(values_of[7] == 33 * 3 - 2 * 5 && magnitudes_of[7] == 33 * 3 + 2 * 5);
    ASSERT(values_of[6] == -10 && values_of[32 + 7] == 0);
    ASSERT(values_of[4 * 32 + 31] == 17 * 2 - 2 * 34);
    ASSERT(values_of[5 * 32 + 31] == 58 * 4 - 2 * 25);
    PASS();
}

/* The scales are those of Q4_K; parts 0, 1 and 5 have a fifth bit in one byte of `high`. */
TEST a_q5_k_block_decodes_as_worked_by_hand(void) {
    block_q5_k b = {.d = 0x3C00, .dmin = 0x4000}; /* 1 and 2 */
    b.scales[0] = 33, b.scales[4] = 5;            /* part 0: 33 and 5 */
    b.scales[1] = 0xC0 | 1, b.scales[5] = 0x40;   /* part 1: 1 and 0; to part 5: 3 and 1 */
    b.scales[9] = 0x9A;                           /* part 5: 3 * 16 + 10 and 16 + 9 */
    b.nibbles[7] = 0xE3, b.nibbles[64 + 7] = 0x42;
    b.high[7] = 1 << 0 | 1 << 1 | 1 << 5;
    format_q5_k.decode(&b, values_of, magnitudes_of);
    ASSERT(values_of[7] == 33 * 19 - 2 * 5 && magnitudes_of[7] == 33 * 19 + 2 * 5);
    ASSERT(values_of[6] == -10 && values_of[32 + 7] == 30);
    ASSERT(values_of[5 * 32 + 7] == 58 * 20 - 2 * 25 && values_of[5 * 32 + 8] == -50);
    PASS();
}

TEST a_q6_k_block_decodes_as_worked_by_hand(void) {
    block_q6_k b = {.d = 0x3800}; /* 0.5 */
    b.scales[0] = 2, b.scales[4] = -3, b.scales[7] = 1, b.scales[11] = 4;
    b.low[0] = 0x5A;            /* value 0: 10; value 64: 5 */
    b.high[0] = 0x30 | 2;       /* value 0: 2; value 64: 3 */
    b.low[32 + 31] = 0x70;      /* value 127: 7 */
    b.high[31] = 0x40;          /* value 127: 1 */
    b.low[64 + 32 + 16] = 0x0C; /* value 128 + 32 + 16: 12 */
    b.high[32 + 16] = 3 << 2;   /* the same: 3 */
    format_q6_k.decode(&b, values_of, magnitudes_of);
    ASSERT(values_of[0] == 0.5 * 2 * (10 + 32 - 32));
    ASSERT(values_of[64] == 0.5 * -3 * (5 + 48 - 32));
    ASSERT(values_of[127] == 0.5 * 1 * (7 + 16 - 32));
    ASSERT(values_of[176] == 0.5 * 4 * (12 + 48 - 32));
    ASSERT(values_of[1] == 0.5 * 2 * -32 && values_of[255] == 0);
    ASSERT(magnitudes_of[64] == 31.5);
    PASS();
}

/* The K formats give up some of the extremes for a smaller error on the whole. */
TEST every_format_gives_back_zeros_and_nearly_what_it_was_given(void) {
    const struct {
        const weight_format *format;
        double step; /* the largest error, as a part of the largest value: 1 */
    } all[] = {{&format_f32, 0},           {&format_f16, 0x1p-11},
               {&format_q8_0, 0.57 / 127}, {&format_q4_0, 1.01 / 8},
               {&format_q4_1, 0.52 / 7.5}, {&format_q4_k, 0.95 / 7.5},
               {&format_q6_k, 1.2 / 32},   {&format_bf16, 0x1p-8},
               {&format_q5_0, 1.01 / 16},  {&format_q5_1, 0.53 / 15.5},
               {&format_q5_k, 1.15 / 15.5}};
    rng r = rng_new(5, "formats");
    for (size_t f = 0; f < sizeof all / sizeof *all; f++)
        for (int n = 0; n < 200; n++) {
            const weight_format *format = all[f].format;
            float v[BLOCK_MAX_VALUES];
            uint8_t block[BLOCK_MAX_BYTES];
            fill_f32(&r, n == 0 ? INPUT_ZEROS : INPUT_UNIFORM, v, format->values);
            format->encode(v, block);
            format->decode(block, values_of, magnitudes_of);
            for (size_t i = 0; i < format->values; i++) {
                double error = fabs(values_of[i] - (double)v[i]);
                ASSERTm(format->name, n == 0 ? error == 0 : error <= all[f].step);
                ASSERTm(format->name, magnitudes_of[i] >= fabs(values_of[i]));
            }
        }
    PASS();
}

/* Sums over the bytes that ggml's own quantisers make of the same 4096 values. */
TEST every_block_format_has_the_bytes_of_ggml(void) {
    static const struct {
        const weight_format *format;
        uint32_t hash;
    } all[] = {{&format_q4_0, 0xb6043884}, {&format_q4_1, 0xb103425a}, {&format_q5_0, 0x402c5fb5},
               {&format_q5_1, 0x1bb6b689}, {&format_q8_0, 0xc1306c0a}, {&format_q4_k, 0xddb99fd6},
               {&format_q5_k, 0xefd7ab94}, {&format_q6_k, 0x5f337460}};
    static float x[4096];
    uint32_t state = 1;
    for (int i = 0; i < 4096; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)((int32_t)(state >> 8) - (1 << 23)) / (float)(1 << (23 + i / 512));
    }
    for (size_t f = 0; f < sizeof all / sizeof *all; f++) {
        const weight_format *format = all[f].format;
        uint32_t hash = 2166136261u;
        for (size_t i = 0; i < 4096; i += format->values) {
            uint8_t block[BLOCK_MAX_BYTES];
            format->encode(x + i, block);
            for (size_t k = 0; k < format->bytes; k++)
                hash = (hash ^ block[k]) * 16777619u;
        }
        ASSERT_EQ_FMTm(format->name, all[f].hash, hash, "%08x");
    }
    PASS();
}

SUITE(formats_suite) {
    RUN_TEST(a_q4_0_block_decodes_as_worked_by_hand);
    RUN_TEST(a_q4_0_block_encodes_as_worked_by_hand);
    RUN_TEST(q4_0_saturates_beyond_half);
    RUN_TEST(a_q4_1_block_is_as_worked_by_hand);
    RUN_TEST(a_q5_0_block_is_as_worked_by_hand);
    RUN_TEST(a_q5_1_block_is_as_worked_by_hand);
    RUN_TEST(a_bfloat_is_the_upper_half_of_a_float);
    RUN_TEST(a_q8_0_block_is_as_worked_by_hand);
    RUN_TEST(a_q4_k_block_decodes_as_worked_by_hand);
    RUN_TEST(a_q5_k_block_decodes_as_worked_by_hand);
    RUN_TEST(a_q6_k_block_decodes_as_worked_by_hand);
    RUN_TEST(every_format_gives_back_zeros_and_nearly_what_it_was_given);
    RUN_TEST(every_block_format_has_the_bytes_of_ggml);
}
