// q4_1: the Q4_1 weight block as kernels read a format (formats.h).
//
// A block is 32 weights in 20 bytes: a half scale d, a half m, then 16 bytes of nibbles in the order
// of Q4_0; nibble n stands for n * d + m.
#pragma once

#include "q4_0.h"

struct block_q4_1 {
    half d, m;
    uchar qs[16];
};

inline float2 get_d_and_m(device const block_q4_1 *b) {
    return float2(float(b->d), float(b->m));
}

struct q4_1 : nibble_weights<block_q4_1> {
    // Weight i of a table, counted from the first of its first row.
    static METAL_FUNC float at(device const block_q4_1 *table, size_t i) {
        device const block_q4_1 *b = table + i / 32;
        return get_number(table, i) * float(b->d) + float(b->m);
    }
};

typedef nibble_eights<block_q4_1, 0> q4_1_eights;
