// q4_0_tiles: Q4_0 as tiles read it (tiles.h): two threads per row, half a block each, loaded ahead.
#pragma once

#include "q4_0_rows.h"

// 8 weights of a block: those of a word of nibbles (few.h).
struct q4_0_few {
    typedef block_q4_0 block;
    struct part {
        ushort low, high;
        half d;
    };
    static METAL_FUNC part take(device const block_q4_0 *b, uint pair) {
        device const ushort *q = (device const ushort *)b->qs + 2 * pair;
        const part p = {q[0], q[1], b->d};
        return p;
    }
    static METAL_FUNC float scale(part p) { return float(p.d); }
    static METAL_FUNC void decode(part p, uint some, thread float *w) {
        decode_word(uint(p.low) | uint(p.high) << 16u, some, w);
    }
    static METAL_FUNC void decode_word(uint bytes, uint some, thread float *w) {
        const uint exponents = get_1024s(some);
        for (uint odd = 0; odd < 2; odd++) {
            const half2 low = low_nibbles(bytes >> 8u * odd, exponents);
            const half2 high = high_nibbles(bytes >> 8u * odd, exponents);
            w[odd] = low.x;
            w[odd + 2] = low.y;
            w[odd + 4] = high.x;
            w[odd + 6] = high.y;
        }
    }
};

struct q4_0_tiles {
    typedef block_q4_0 block;
    typedef q4_0_few few;
    enum : uint { values = 32, lanes = 2 };
    typedef q4_0_half_bits part;
    static METAL_FUNC part fetch(device const block_q4_0 *row, uint step, uint, uint lane) {
        return q4_0_take_half(row + step, lane);
    }
    static METAL_FUNC void put(part p, uint lane, threadgroup float4 *at) {
        float4 w[4];
        q4_0_decode_half(p, get_sixteen(0), w);
        at += 2 * lane;
        at[0] = float4(w[0].x, w[1].x, w[0].y, w[1].y);
        at[1] = float4(w[0].z, w[1].z, w[0].w, w[1].w);
        at[4] = float4(w[2].x, w[3].x, w[2].y, w[3].y);
        at[5] = float4(w[2].z, w[3].z, w[2].w, w[3].w);
    }
};
