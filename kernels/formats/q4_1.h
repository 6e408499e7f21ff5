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

struct q4_1 {
    typedef block_q4_1 block;
    typedef float4 wide;
    enum : uint { values = 32, wides = 8 };

    static METAL_FUNC void load(device const block_q4_1 *row, uint unit, thread float4 *v) {
        device const block_q4_1 *b = row + unit;
        device const packed_uchar4 *q = (device const packed_uchar4 *)b->qs;
        const float4 d = float4(float(b->d));
        const float4 m = float4(float(b->m));
        for (uint j = 0; j < 4; j++) {
            const uint4 n = uint4(uchar4(q[j]));
            v[j] = fma(float4(n & 15u), d, m);
            v[j + 4] = fma(float4(n >> 4u), d, m);
        }
    }

    // Weight i of a table, counted from the first of its first row.
    static METAL_FUNC float at(device const block_q4_1 *table, size_t i) {
        device const block_q4_1 *b = table + i / 32;
        const uint n = b->qs[i % 16] >> (4u * uint(i % 32 / 16)) & 15u;
        return float(n) * float(b->d) + float(b->m);
    }
};

// For product/per_thread.h.
struct q4_1_eights {
    typedef block_q4_1 block;
    enum : uint { values = 32, eights = 4, scales = 1, has_minimum = 1 };
    enum : uint { has_bytes = 1, zero = 0 };
    static METAL_FUNC uint place(uint, uint i) { return 8 * i; }
    static METAL_FUNC void get(device const block_q4_1 *b, uint, thread eight_floats *n) {
        load_nibbles<0>(b->qs, n);
    }
    static METAL_FUNC void get_bytes(device const block_q4_1 *a, device const block_q4_1 *b, uint,
                                     thread sixteen_bytes *n) {
        const byte_rows q(a->qs, b->qs);
        for (uint i = 0; i < 2; i++) {
            n[i] = get_low_nibbles(q.halves[i]);
            n[i + 2] = get_high_nibbles(q.halves[i]);
        }
    }
    static METAL_FUNC float2 get_scale(device const block_q4_1 *b, uint, uint) {
        return float2(float(b->d), float(b->m));
    }
};
