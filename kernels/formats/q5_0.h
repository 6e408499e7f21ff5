// q5_0: the Q5_0 weight block as kernels read a format (formats.h).
//
// A block is 32 weights in 22 bytes: a half scale d, 32 bits, then 16 bytes of nibbles in the order
// of Q4_0. Bit i is the fifth bit of weight i; n of 5 bits stands for (n - 16) * d. Blocks are only
// 2-byte aligned, so the bits come as two ushorts.
#pragma once

#include "../eight.h"

struct block_q5_0 {
    half d;
    ushort qh[2];
    uchar qs[16];
};

// The weight that a number of a block stands for.
template <typename V> inline V weigh(device const block_q5_0 *b, V n) {
    return (n - 16.0f) * float(b->d);
}

// Blocks of 32 numbers of five bits.
template <typename B> struct five_bit_weights {
    typedef B block;
    typedef float4 wide;
    enum : uint { values = 32, wides = 8 };

    static METAL_FUNC void load(device const B *row, uint unit, thread float4 *v) {
        device const B *b = row + unit;
        device const packed_uchar4 *q = (device const packed_uchar4 *)b->qs;
        const uint4 fifth = uint4(16, 8, 4, 2); // times bit 0, 1, 2, 3: each comes to bit 4
        for (uint j = 0; j < 4; j++) {
            const uint4 high = uint4(b->qh[0] >> (4 * j)) * fifth & 16u;
            v[j] = weigh(b, float4(uint4(uchar4(q[j]) & uchar(15)) | high));
        }
        for (uint j = 0; j < 4; j++) {
            const uint4 high = uint4(b->qh[1] >> (4 * j)) * fifth & 16u;
            v[j + 4] = weigh(b, float4(uint4(uchar4(q[j]) >> uchar(4)) | high));
        }
    }

    // Weight i of a table, counted from the first of its first row.
    static METAL_FUNC float at(device const B *table, size_t i) {
        device const B *b = table + i / 32;
        const uint half_block = uint(i % 32 / 16);
        const uint n =
            (b->qs[i % 16] >> (4u * half_block) & 15u) | (b->qh[half_block] >> (i % 16) & 1u) << 4u;
        return weigh(b, float(n));
    }
};
typedef five_bit_weights<block_q5_0> q5_0;

// For product/per_thread.h, of a format by blocks of 32 that needs nothing better: as weights.
template <typename F> struct weight_eights {
    typedef typename F::block block;
    enum : uint { values = 32, eights = 4, scales = 1, has_minimum = 0 };
    enum : uint { has_bytes = 0 };
    static METAL_FUNC uint place(uint, uint i) { return 8 * i; }
    static METAL_FUNC void get(device const block *b, uint, thread eight_floats *n) {
        float4 v[8];
        F::load(b, 0, v);
        for (uint i = 0; i < eights; i++)
            join(v[2 * i], v[2 * i + 1], n[i]);
    }
    static METAL_FUNC float2 get_scale(device const block *, uint, uint) {
        return float2(1.0f, 0.0f);
    }
};
typedef weight_eights<q5_0> q5_0_eights;
