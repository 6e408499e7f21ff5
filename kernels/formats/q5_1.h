// q5_1: the Q5_1 weight block as kernels read a format (formats.h).
//
// A block is 32 weights in 24 bytes: a half scale d, a half m, then bits and nibbles as in Q5_0;
// n of 5 bits stands for n * d + m.
#pragma once

#include "q5_0.h"

struct block_q5_1 {
    half d, m;
    ushort qh[2];
    uchar qs[16];
};

struct q5_1 {
    typedef block_q5_1 block;
    typedef float4 wide;
    enum : uint { values = 32, wides = 8 };

    static METAL_FUNC void load(device const block_q5_1 *row, uint unit, thread float4 *v) {
        device const block_q5_1 *b = row + unit;
        device const packed_uchar4 *q = (device const packed_uchar4 *)b->qs;
        const float d = float(b->d);
        const float m = float(b->m);
        const uint4 fifth = uint4(16, 8, 4, 2); // as in Q5_0
        for (uint j = 0; j < 4; j++) {
            const uint4 high = uint4(b->qh[0] >> (4 * j)) * fifth & 16u;
            v[j] = float4(uint4(uchar4(q[j]) & uchar(15)) | high) * d + m;
        }
        for (uint j = 0; j < 4; j++) {
            const uint4 high = uint4(b->qh[1] >> (4 * j)) * fifth & 16u;
            v[j + 4] = float4(uint4(uchar4(q[j]) >> uchar(4)) | high) * d + m;
        }
    }

    // Weight i of a table, counted from the first of its first row.
    static METAL_FUNC float at(device const block_q5_1 *table, size_t i) {
        device const block_q5_1 *b = table + i / 32;
        const uint half_block = uint(i % 32 / 16);
        const uint n = (b->qs[i % 16] >> (4u * half_block) & 15u) |
                       (b->qh[half_block] >> (i % 16) & 1u) << 4u;
        return float(n) * float(b->d) + float(b->m);
    }
};

typedef weight_eights<q5_1> q5_1_eights;
