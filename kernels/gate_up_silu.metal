// gate_up_silu: the first half of a feed-forward network in one launch: the norm of x, its products
// with the gate and up weights, and silu(gate) * up. One launch instead of three, and gate and up
// are never stored.
#include <metal_stdlib>
using namespace metal;

#include "formats/q4_0.h"

#include "early.h"
#include "q4_0_rows.h"
#include "scatter_sums.h"

#include "q4_0_tokens.h"

// A threadgroup of 128 computes 4 outputs: each of its 4 simdgroups computes the same row of gate
// and of up, with the norm in the same pass (q4_0_rows.h). Moves the weights once, x and norm_w
// once per output from cache. As in ffn_silu, a very negative gate gives -0.
kernel void gate_up_silu_q4_0(device const float *x [[buffer(0)]],
                         device const float *norm_w [[buffer(1)]],
                         device const block_q4_0 *w_gate [[buffer(2)]],
                         device const block_q4_0 *w_up [[buffer(3)]],
                         device float *out [[buffer(4)]],
                         constant uint &out_dim [[buffer(5)]],
                         constant uint &in_dim [[buffer(6)]],
                         constant float &eps [[buffer(7)]],
                         uint group [[threadgroup_position_in_grid]],
                         uint sg [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
    const uint row = group * 4 + sg;
    if (row >= out_dim)
        return;
    const uint blocks = in_dim / 32;
    q4_0_normed_rows<2, 2> both;
    both.rows[0] = w_gate + size_t(row) * blocks;
    both.rows[1] = w_up + size_t(row) * blocks;
    both.norm_w = norm_w;
    both.blocks = blocks;
    both.lane = lane;
    both.sixteen = get_sixteen(in_dim);
    both.take(0);
    EARLY_LOADS(1 << 1 | 1 << 2 | 1 << 3);
    both.finish(x);
    const float3 all = simd_sum(float3(both.sums[0], both.sums[1], both.squares));
    if (lane != 0)
        return;
    const float inverse = rsqrt(all.z / float(in_dim) + eps);
    const float gate = all.x * inverse;
    out[row] = gate / (1.0f + exp(-gate)) * (all.y * inverse);
}

// For many tokens: x (tokens, in_dim), out (tokens, out_dim). A threadgroup of 128 computes 2 * R
// outputs of 8 tokens: each of its 4 simdgroups computes R / 2 rows of gate and of up, with the
// norms in the same pass (q4_0_tokens.h). The second axis of the grid counts tiles of 8 tokens.
template <uint R>
kernel void gate_up_silu_tokens(device const float *x [[buffer(0)]],
                                device const float *norm_w [[buffer(1)]],
                                device const block_q4_0 *w_gate [[buffer(2)]],
                                device const block_q4_0 *w_up [[buffer(3)]],
                                device float *out [[buffer(4)]],
                                constant uint &out_dim [[buffer(5)]],
                                constant uint &in_dim [[buffer(6)]],
                                constant float &eps [[buffer(7)]],
                                constant uint &tokens [[buffer(8)]],
                                uint2 group [[threadgroup_position_in_grid]],
                                uint sg [[simdgroup_index_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]]) {
    const uint first = (group.x * 4 + sg) * (R / 2);
    if (first >= out_dim)
        return;
    device const block_q4_0 *rows[R];
    for (uint r = 0; r < R; r++)
        rows[r] = (r % 2 ? w_up : w_gate) + size_t(min(first + r / 2, out_dim - 1)) * (in_dim / 32);
    token_sums<R, true> sums;
    sums.take(rows, norm_w, in_dim, lane / 2, lane);
    EARLY_LOADS(1 << 1 | 1 << 2 | 1 << 3);
    sums.add(rows, x, norm_w, in_dim, group.y * TOKENS, tokens, lane);
    const float gate = finish<R>(sums, in_dim, eps, lane); // in lanes of even rows
    const token_place<R> place(lane);
    const float up = place.get_partner(gate);
    const uint token = group.y * TOKENS + place.token;
    const uint row = first + place.row / 2;
    if (place.is_first && place.row % 2 == 0 && row < out_dim && token < tokens)
        out[size_t(token) * out_dim + row] = gate / (1.0f + exp(-gate)) * up;
}

template [[host_name("gate_up_silu_q4_0_tokens")]] kernel
    decltype(gate_up_silu_tokens<2>) gate_up_silu_tokens<2>;
template [[host_name("gate_up_silu_q4_0_tokens_rows")]] kernel
    decltype(gate_up_silu_tokens<4>) gate_up_silu_tokens<4>;
