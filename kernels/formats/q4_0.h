// q4_0: the Q4_0 weight block and its dot products, shared by the kernels that read such weights.
//
// A block is 32 weights in 18 bytes: a half scale d, then 16 bytes. The low nibble of byte j is
// weight j, the high nibble weight j + 16; nibble n stands for (n - 8) * d. Blocks are only 2-byte
// aligned, so nothing wider than a ushort may be loaded from one. x must be 16-byte aligned.
#pragma once

#include "../bytes.h"
#include "../eight.h"
#include "../nibbles.h"

struct block_q4_0 {
    half d;
    uchar qs[16];
};

// The dot product of a block with 32 values of x, four at a time, from single bytes.
inline float q4_0_dot(device const block_q4_0 *b, device const float4 *x) {
    float4 dots = float4(0.0f);
    for (uint j = 0; j < 4; j++) {
        const uint4 n = uint4(b->qs[4 * j], b->qs[4 * j + 1], b->qs[4 * j + 2], b->qs[4 * j + 3]);
        dots += (float4(n & 15u) - 8.0f) * x[j];
        dots += (float4(n >> 4u) - 8.0f) * x[j + 4];
    }
    return float(b->d) * (dots.x + dots.y + dots.z + dots.w);
}

// 16 values of x as half a block needs them: those of one half of the bytes, low and high nibbles.
// `eights` is 8 times their sum: with it a row needs no subtraction per weight, because
// sum((n - 8) * x) = sum(n * x) - 8 * sum(x), and the last part is the same for all rows.
struct q4_0_half_input {
    float4 low_even, low_odd, high_even, high_odd;
    float eights;
};

// a and b: the first and last four of the values of the low nibbles; c and d those of the high
// ones.
inline q4_0_half_input q4_0_arrange_half(float4 a, float4 b, float4 c, float4 d) {
    const float4 s = (a + b) + (c + d);
    const q4_0_half_input h = {float4(a.x, a.z, b.x, b.z), float4(a.y, a.w, b.y, b.w),
                               float4(c.x, c.z, d.x, d.z), float4(c.y, c.w, d.y, d.w),
                               8.0f * ((s.x + s.y) + (s.z + s.w))};
    return h;
}

// part is 0 or 1: which 8 of the 16 bytes. x points to the block's first value.
inline q4_0_half_input q4_0_load_half(device const float *x, uint part) {
    device const float4 *v = (device const float4 *)x + 2 * part;
    return q4_0_arrange_half(v[0], v[1], v[4], v[5]);
}

// The dot product of half a block with its input. A ushort holds, from its lowest nibble up,
// weights 2i, 2i + 16, 2i + 1 and 2i + 17: four of them give four vectors by masks and shifts
// alone.
inline float q4_0_half_dot(device const block_q4_0 *b, uint part, thread const q4_0_half_input &x) {
    device const ushort *q = (device const ushort *)b->qs + 4 * part;
    const uint4 n = uint4(q[0], q[1], q[2], q[3]);
    float4 dots = float4(n & 15u) * x.low_even;
    dots += float4((n >> 8u) & 15u) * x.low_odd;
    dots += float4((n >> 4u) & 15u) * x.high_even;
    dots += float4(n >> 12u) * x.high_odd;
    return float(b->d) * ((dots.x + dots.y) + (dots.z + dots.w) - x.eights);
}

// d and m of a block whose nibbles stand for n * d + m. n * d - 8 * d in one operation rounds only once,
// at the end: it is (n - 8) * d to the bit.
inline float2 get_d_and_m(device const block_q4_0 *b) {
    const float d = float(b->d);
    return float2(d, -8.0f * d);
}

// Blocks of 32 nibbles as kernels read a format (formats.h).
template <typename B> struct nibble_weights {
    typedef B block;
    typedef float4 wide;
    enum : uint { values = 32, wides = 8 };

    static METAL_FUNC void load(device const B *row, uint unit, thread float4 *v) {
        device const B *b = row + unit;
        device const packed_uchar4 *q = (device const packed_uchar4 *)b->qs;
        const float2 dm = get_d_and_m(b);
        const float4 d = float4(dm.x);
        const float4 m = float4(dm.y);
        for (uint j = 0; j < 4; j++) {
            const uint4 n = uint4(uchar4(q[j]));
            v[j] = fma(float4(n & 15u), d, m);
            v[j + 4] = fma(float4(n >> 4u), d, m);
        }
    }
    // Number i of a table, and its block.
    static METAL_FUNC float get_number(device const B *table, size_t i) {
        return float(table[i / 32].qs[i % 16] >> (4u * uint(i % 32 / 16)) & 15u);
    }
};

struct q4_0 : nibble_weights<block_q4_0> {
    // Weight i of a table, counted from the first of its first row.
    static METAL_FUNC float at(device const block_q4_0 *table, size_t i) {
        return (get_number(table, i) - 8.0f) * float(table[i / 32].d);
    }
};

// By halves of blocks: two neighbours share a block, so that a row of 576 (36 half blocks) occupies
// all 32 lanes. With nibbles as 16 + n (nibbles.h) the product of a half block is
// sum((16 + n) * x) - 24 * sum(x), and the last part is the same for all rows.

// Half a block as it is in memory.
struct q4_0_half_bits {
    ushort q[4];
    half d;
};

inline q4_0_half_bits q4_0_take_half(device const block_q4_0 *b, uint part) {
    device const ushort *q = (device const ushort *)b->qs + 4 * part;
    const q4_0_half_bits w = {{q[0], q[1], q[2], q[3]}, b->d};
    return w;
}

// 16 weights, in the order of q4_0_half_input: even and odd values of the low and high nibbles.
// (16 + n) * d - 24 * d in one operation is exactly (n - 8) * d.
inline void q4_0_decode_half(thread const q4_0_half_bits &h, uint sixteen, thread float4 *w) {
    const uint4 n = uint4(h.q[0], h.q[1], h.q[2], h.q[3]);
    const float4 d = float4(float(h.d));
    const float4 m = -24.0f * d;
    w[0] = fma(sixteen_more(n << 19u, sixteen), d, m);
    w[1] = fma(sixteen_more(n << 11u, sixteen), d, m);
    w[2] = fma(sixteen_more(n << 15u, sixteen), d, m);
    w[3] = fma(sixteen_more(n << 7u, sixteen), d, m);
}

inline float q4_0_half_product(thread const q4_0_half_bits &w, thread const q4_0_half_input &x,
                               uint sixteen) {
    const uint4 n = uint4(w.q[0], w.q[1], w.q[2], w.q[3]);
    float4 dots = sixteen_more(n << 19u, sixteen) * x.low_even;
    dots = fma(sixteen_more(n << 11u, sixteen), x.low_odd, dots);
    dots = fma(sixteen_more(n << 15u, sixteen), x.high_even, dots);
    dots = fma(sixteen_more(n << 7u, sixteen), x.high_odd, dots);
    return float(w.d) * ((dots.x + dots.y) + (dots.z + dots.w) - 3.0f * x.eights);
}

// For product/vec16.h.
struct q4_0_parts {
    typedef block_q4_0 block;
    typedef q4_0_half_bits bits;
    typedef q4_0_half_input input;
    enum : uint { values = 32, lanes = 2 };
    static METAL_FUNC input load(device const float *x, uint part) {
        return q4_0_load_half(x, part);
    }
    static METAL_FUNC bits take(device const block_q4_0 *b, uint part) {
        return q4_0_take_half(b, part);
    }
    static METAL_FUNC float multiply(thread const bits &w, thread const input &x, uint some) {
        return q4_0_half_product(w, x, get_sixteen(some));
    }
};

// 8 weights of a block: those of a word of nibbles (product/skinny.h).
struct q4_0_skinny {
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

// Four bytes of nibbles of the first or second of two blocks, which are 9 words: those that begin
// at word 0 of them, or as many words further as `from` is. The first block begins within a word.
template <typename Row> inline uint q4_0_get_word(Row from, uint b) {
    return b ? from[5] : from[0] >> 16u | from[1] << 16u;
}

// For product/tile.h: two threads per row, half a block each.
struct q4_0_tiles {
    typedef block_q4_0 block;
    typedef q4_0_skinny skinny;
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

// For product/per_thread.h. What stands for 0 is `middle`, or there is a minimum.
template <typename B, uint middle> struct nibble_eights {
    typedef B block;
    enum : uint { values = 32, eights = 4, scales = 1, has_minimum = middle == 0 };
    enum : uint { has_bytes = 1, zero = middle };
    static METAL_FUNC uint place(uint, uint i) { return 8 * i; }
    static METAL_FUNC void get(device const B *b, uint, thread eight_floats *n) {
        load_nibbles<middle>(b->qs, n);
    }
    static METAL_FUNC void get_bytes(device const B *a, device const B *b, uint,
                                     thread sixteen_bytes *n) {
        const byte_rows q(a->qs, b->qs);
        for (uint i = 0; i < 2; i++) {
            n[i] = get_low_nibbles(q.halves[i]);
            n[i + 2] = get_high_nibbles(q.halves[i]);
        }
    }
    static METAL_FUNC float2 get_scale(device const B *b, uint, uint) {
        return has_minimum ? get_d_and_m(b) : float2(float(b->d), 0.0f);
    }
};
typedef nibble_eights<block_q4_0, 8> q4_0_eights;
