// q5_k: the Q5_K weight block as kernels read a format (formats.h). Scales and minima are those of
// q4_k.h.
//
// A block is 256 weights in 176 bytes: as Q4_K, with a fifth bit. Bit p of byte l of qh is that of
// weight l of part p.
#pragma once

#include "q4_k.h"

struct block_q5_k {
    half d, dmin;
    uchar scales[12];
    uchar qh[32];
    uchar qs[128];
};

struct q5_k {
    typedef block_q5_k block;
    typedef float4 wide;
    enum : uint { values = 256, wides = 8 };

    static METAL_FUNC void load(device const block_q5_k *row, uint unit, thread float4 *v) {
        device const block_q5_k *b = row + unit / 8;
        const uint part = unit % 8;
        const uchar2 s = q4_k::get_scale_and_min(b->scales, part);
        const float d = float(b->d) * float(s.x);
        const float m = float(b->dmin) * float(s.y);
        device const packed_uchar4 *low = (device const packed_uchar4 *)b->qs + 8 * (part / 2);
        device const packed_uchar4 *high = (device const packed_uchar4 *)b->qh;
        for (uint j = 0; j < 8; j++) {
            const uint4 n = (uint4(uchar4(low[j])) >> (4u * (part % 2)) & 15u) |
                            (uint4(uchar4(high[j])) >> part & 1u) << 4u;
            v[j] = float4(n) * d - m;
        }
    }

    // Weight i of a table, counted from the first of its first row.
    static METAL_FUNC float at(device const block_q5_k *table, size_t i) {
        device const block_q5_k *b = table + i / 256;
        const uint part = i % 256 / 32;
        const uchar2 s = q4_k::get_scale_and_min(b->scales, part);
        const uint n = (b->qs[32 * (part / 2) + i % 32] >> (4u * (part % 2)) & 15u) |
                       (b->qh[i % 32] >> part & 1u) << 4u;
        return float(n) * (float(b->d) * float(s.x)) - float(b->dmin) * float(s.y);
    }
};

// For product/per_thread.h: as of Q4_K, with a fifth bit.
struct q5_k_eights {
    typedef block_q5_k block;
    enum : uint { values = 256, eights = 8, scales = 2, has_minimum = 1 };
    enum : uint { has_bytes = 0 };
    static METAL_FUNC uint place(uint part, uint i) { return 64 * part + 8 * i; }
    static METAL_FUNC void get(device const block_q5_k *b, uint part, thread eight_floats *n) {
        for (uint i = 0; i < 4; i++) {
            const eight_ints bytes = load_ints(b->qs + 32 * part + 8 * i);
            const eight_ints high = load_ints(b->qh + 8 * i) >> int(2 * part);
            n[i] = to_floats((bytes & 15) | (high << 4 & 16));
            n[i + 4] = to_floats((bytes >> 4) | (high << 3 & 16));
        }
    }
    static METAL_FUNC float2 get_scale(device const block_q5_k *b, uint part, uint s) {
        const uchar2 scale = q4_k::get_scale_and_min(b->scales, 2 * part + s);
        return float2(float(b->d) * float(scale.x), -float(b->dmin) * float(scale.y));
    }
};
