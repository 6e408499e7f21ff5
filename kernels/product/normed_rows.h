// normed_rows: several rows of Q4_0 weights times one x by one simdgroup, with the norm of x in the same
// pass: what rmsnorm_matvec, qkv_rope_append and gate_up_silu share.
#pragma once

#include "../formats/q4_0.h"

// R rows times x * norm_w, N half blocks per lane and turn, and the squares of x, of which every lane
// sums those that it loads. As lanes load all of x between them, simd_sum(squares) is what a norm
// needs, and the norm is a factor of the sums. Past the end of a row the last half block is loaded
// again and left out. A kernel calls take for its first turn, which loads only weights, then
// PREFETCHED, then finish.
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
