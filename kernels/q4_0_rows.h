// q4_0_rows: several rows of Q4_0 weights times one x by one simdgroup, for GPUs with wide memory:
// what matvec_q4_0, rmsnorm_matvec, qkv_rope_append and gate_up_silu share.
//
// A lane takes half blocks: two neighbours share a block, so that a row of 576 (36 half blocks)
// occupies all 32 lanes. Its 16 values of x are loaded once for all rows.
//
// With nibbles as 16 + n (nibbles.h) the product of a half block is sum((16 + n) * x) - 24 * sum(x),
// and the last part is the same for all rows.
#pragma once

#include "formats/q4_0.h"
#include "nibbles.h"

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

// For matvec_lean.h.
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

// R rows times x * norm_w, N half blocks per lane and turn, and the squares of x, of which every lane
// sums those that it loads. As lanes load all of x between them, simd_sum(squares) is what a norm
// needs, and the norm is a factor of the sums. Past the end of a row the last half block is loaded
// again and left out. A kernel calls take for its first turn, which loads only weights, then
// EARLY_LOADS, then finish.
template <uint R, uint N> struct q4_0_normed_rows {
    device const block_q4_0 *rows[R];
    device const float *norm_w;
    uint blocks, lane;
    uint sixteen;
    q4_0_half_bits bits[N][R];
    float4 norm[N][4];
    float sums[R];
    float squares;

    METAL_FUNC void take(uint first) {
        for (uint i = 0; i < N; i++)
            if (first + 16 * i < blocks) {
                const uint b = min(first + 16 * i + lane / 2, blocks - 1);
                device const float4 *n = (device const float4 *)(norm_w + 32 * b) + lane % 2 * 2;
                for (uint r = 0; r < R; r++)
                    bits[i][r] = q4_0_take_half(rows[r] + b, lane % 2);
                norm[i][0] = n[0];
                norm[i][1] = n[1];
                norm[i][2] = n[4];
                norm[i][3] = n[5];
            }
    }

    METAL_FUNC void add(device const float *x, uint first) {
        for (uint i = 0; i < N; i++)
            if (first + 16 * i < blocks) {
                const uint b = first + 16 * i + lane / 2;
                device const float4 *v =
                    (device const float4 *)(x + 32 * min(b, blocks - 1)) + lane % 2 * 2;
                const float4 a = v[0];
                const float4 c = v[1];
                const float4 d = v[4];
                const float4 f = v[5];
                const float4 s = (a * a + c * c) + (d * d + f * f);
                squares += b < blocks ? (s.x + s.y) + (s.z + s.w) : 0.0f;
                const q4_0_half_input input = q4_0_arrange_half(a * norm[i][0], c * norm[i][1],
                                                                d * norm[i][2], f * norm[i][3]);
                for (uint r = 0; r < R; r++) {
                    const float product = q4_0_half_product(bits[i][r], input, sixteen);
                    sums[r] += b < blocks ? product : 0.0f;
                }
            }
    }

    METAL_FUNC void finish(device const float *x) {
        for (uint r = 0; r < R; r++)
            sums[r] = 0.0f;
        squares = 0.0f;
        add(x, 0);
        for (uint first = 16 * N; first < blocks; first += 16 * N) {
            take(first);
            add(x, first);
        }
    }
};
