/* quant: the weight formats, decoded and encoded the plain way.
 *
 * A matrix is rows of blocks; a block is a few bytes that encode `values` weights. Plain floats
 * are blocks of one. What is the same for all formats is in weight_format: kernels' launches,
 * oracles and cases go through that and know no layout. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/check/weight_format.h"

enum {
    Q4_0_VALUES = 32,
    Q4_1_VALUES = 32,
    Q5_0_VALUES = 32,
    Q5_1_VALUES = 32,
    Q8_0_VALUES = 32,
    Q4_K_VALUES = 256,
    Q5_K_VALUES = 256,
    Q6_K_VALUES = 256
};
enum { BLOCK_MAX_VALUES = 256, BLOCK_MAX_BYTES = 210 };

/* d, dmin and m are fp16 bits. */

/* The low nibble of byte j is value j, the high nibble is value j + 16; n means (n - 8) d. */
typedef struct {
    uint16_t d;
    uint8_t nibbles[16];
} block_q4_0;

/* Nibbles as in Q4_0; n means n d + m. */
typedef struct {
    uint16_t d, m;
    uint8_t nibbles[16];
} block_q4_1;

/* Nibbles as in Q4_0; bit i of the 32 of `high`, counted from the lowest of its first byte, is the
 * fifth bit of value i. n of 5 bits means (n - 16) d, or n d + m. */
typedef struct {
    uint16_t d;
    uint8_t high[4], nibbles[16];
} block_q5_0;

typedef struct {
    uint16_t d, m;
    uint8_t high[4], nibbles[16];
} block_q5_1;

/* Value i is q[i] d. */
typedef struct {
    uint16_t d;
    int8_t q[32];
} block_q8_0;

/* Eight parts of 32 values, each with a scale s and a minimum m of 6 bits; n means
 * n s d - m dmin. Parts 2p and 2p + 1 share bytes 32p to 32p + 31: low and high nibbles. */
typedef struct {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t nibbles[128];
} block_q4_k;

/* As Q4_K with a fifth bit: bit p of byte l of `high` is that of value l of part p. */
typedef struct {
    uint16_t d, dmin;
    uint8_t scales[12], high[32];
    uint8_t nibbles[128];
} block_q5_k;

/* Sixteen parts of 16 values, each with a signed scale s; a value is (n - 32) s d, with the lower 4
 * bits of n in `low`, the upper 2 in `high`. In each half of the block (64 bytes of low, 32 of
 * high) values l, l + 32, l + 64 and l + 96 share byte l of high, from its lowest bits up; the low
 * nibbles of bytes l and l + 32 of low are values l and l + 32, the high nibbles the other two. */
typedef struct {
    uint8_t low[128], high[64];
    int8_t scales[16];
    uint16_t d;
} block_q6_k;

_Static_assert(sizeof(block_q4_0) == 18 && sizeof(block_q4_1) == 20 && sizeof(block_q8_0) == 34 &&
                   sizeof(block_q5_0) == 22 && sizeof(block_q5_1) == 24 &&
                   sizeof(block_q4_k) == 144 && sizeof(block_q5_k) == 176 &&
                   sizeof(block_q6_k) == 210,
               "blocks are packed");

extern const weight_format format_f32, format_f16, format_bf16, format_q8_0, format_q4_0,
    format_q4_1, format_q5_0, format_q5_1, format_q4_k, format_q5_k, format_q6_k;

/* Bytes of a (rows, columns) matrix. Columns must be whole blocks. */
size_t format_get_bytes(const weight_format *f, size_t rows, size_t columns);
