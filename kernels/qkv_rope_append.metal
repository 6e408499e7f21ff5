// qkv_rope_append: everything between the residual stream and attention in one launch: the norm of
// x, its products with the query, key and value weights, the rotation of query and key to the
// position, and the new row of both caches. One launch instead of four or five.
#include <metal_stdlib>
using namespace metal;

#include "formats/q4_0.h"

#include "early.h"
#include "q4_0_rows.h"
#include "scatter_sums.h"

#include "q4_0_tokens.h"

// A threadgroup of 128 computes 8 of the stacked rows of q, k and v: each of its 4 simdgroups
// computes a pair of neighbours, which are rotated together. q_dim and kv_dim are multiples of
// head_dim, which is even, so that a pair never spans two matrices. The norm is computed by every
// simdgroup, in the pass over x that the product makes anyway. Moves the weights once, x and norm_w
// once per pair of rows from cache. freqs (head_dim / 2): how far one position turns each pair.
kernel void qkv_rope_append_q4_0(device const float *x [[buffer(0)]],
                            device const float *norm_w [[buffer(1)]],
                            device const block_q4_0 *wq [[buffer(2)]],
                            device const block_q4_0 *wk [[buffer(3)]],
                            device const block_q4_0 *wv [[buffer(4)]],
                            device float *q [[buffer(5)]],
                            device float *k_cache [[buffer(6)]],
                            device float *v_cache [[buffer(7)]],
                            device const float *freqs [[buffer(8)]],
                            constant uint &q_dim [[buffer(9)]],
                            constant uint &kv_dim [[buffer(10)]],
                            constant uint &in_dim [[buffer(11)]],
                            constant uint &head_dim [[buffer(12)]],
                            constant float &eps [[buffer(13)]],
                            constant uint &pos [[buffer(14)]],
                            uint group [[threadgroup_position_in_grid]],
                            uint sg [[simdgroup_index_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]]) {
    const uint stacked = (group * 4 + sg) * 2;
    if (stacked >= q_dim + 2 * kv_dim)
        return;
    const bool is_q = stacked < q_dim;
    const bool is_v = stacked >= q_dim + kv_dim;
    const uint row = stacked - (is_q ? 0 : is_v ? q_dim + kv_dim : q_dim);
    const uint blocks = in_dim / 32;
    device const block_q4_0 *w = (is_q ? wq : is_v ? wv : wk) + size_t(row) * blocks;
    q4_0_normed_rows<2, 2> both;
    both.rows[0] = w;
    both.rows[1] = w + blocks;
    both.norm_w = norm_w;
    both.blocks = blocks;
    both.lane = lane;
    both.sixteen = get_sixteen(in_dim);
    both.take(0);
    const float angle = float(pos) * freqs[row % head_dim / 2];
    const float c = precise::cos(angle);
    const float s = precise::sin(angle);
    EARLY_LOADS(1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8);
    both.finish(x);
    const float3 all = simd_sum(float3(both.sums[0], both.sums[1], both.squares));
    if (lane != 0)
        return;
    const float inverse = rsqrt(all.z / float(in_dim) + eps);
    const float a = all.x * inverse;
    const float b = all.y * inverse;
    device float *out = is_q ? q + row : (is_v ? v_cache : k_cache) + size_t(pos) * kv_dim + row;
    if (is_v) {
        out[0] = a;
        out[1] = b;
        return;
    }
    out[0] = a * c - b * s;
    out[1] = a * s + b * c;
}

// For many tokens: x (tokens, in_dim), q (tokens, q_dim); token t goes to row pos + t of the caches.
// A threadgroup of 128 computes 4 * R of the stacked rows for 8 tokens: each of its 4 simdgroups R,
// with the norms in the same pass (q4_0_tokens.h). The second axis of the grid counts tiles of 8
// tokens.
template <uint R>
kernel void qkv_rope_append_tokens(device const float *x [[buffer(0)]],
                                   device const float *norm_w [[buffer(1)]],
                                   device const block_q4_0 *wq [[buffer(2)]],
                                   device const block_q4_0 *wk [[buffer(3)]],
                                   device const block_q4_0 *wv [[buffer(4)]],
                                   device float *q [[buffer(5)]],
                                   device float *k_cache [[buffer(6)]],
                                   device float *v_cache [[buffer(7)]],
                                   device const float *freqs [[buffer(8)]],
                                   constant uint &q_dim [[buffer(9)]],
                                   constant uint &kv_dim [[buffer(10)]],
                                   constant uint &in_dim [[buffer(11)]],
                                   constant uint &head_dim [[buffer(12)]],
                                   constant float &eps [[buffer(13)]],
                                   constant uint &pos [[buffer(14)]],
                                   constant uint &tokens [[buffer(15)]],
                                   uint2 group [[threadgroup_position_in_grid]],
                                   uint sg [[simdgroup_index_in_threadgroup]],
                                   uint lane [[thread_index_in_simdgroup]]) {
    const uint first = (group.x * 4 + sg) * R;
    const uint all = q_dim + 2 * kv_dim;
    if (first >= all)
        return;
    device const block_q4_0 *rows[R];
    for (uint r = 0; r < R; r++) {
        const uint row = min(first + r, all - 1);
        rows[r] = row < q_dim            ? wq + size_t(row) * (in_dim / 32)
                  : row < q_dim + kv_dim ? wk + size_t(row - q_dim) * (in_dim / 32)
                                         : wv + size_t(row - q_dim - kv_dim) * (in_dim / 32);
    }
    token_sums<R, true> sums;
    sums.take(rows, norm_w, in_dim, lane / 2, lane);
    EARLY_LOADS(1 << 1 | 1 << 2 | 1 << 3 | 1 << 4);
    sums.add(rows, x, norm_w, in_dim, group.y * TOKENS, tokens, lane);
    const float mine = finish<R>(sums, in_dim, eps, lane);
    const token_place<R> place(lane);
    const float other = place.get_partner(mine);
    const uint token = group.y * TOKENS + place.token;
    const uint stacked = first + place.row;
    if (!place.is_first || stacked >= all || token >= tokens)
        return;
    if (stacked >= q_dim + kv_dim) {
        v_cache[size_t(pos + token) * kv_dim + stacked - q_dim - kv_dim] = mine;
        return;
    }
    const uint row = stacked < q_dim ? stacked : stacked - q_dim;
    const float angle = float(pos + token) * freqs[row % head_dim / 2];
    const float c = precise::cos(angle);
    const float s = precise::sin(angle);
    const float turned = row % 2 ? other * s + mine * c : mine * c - other * s;
    if (stacked < q_dim)
        q[size_t(token) * q_dim + row] = turned;
    else
        k_cache[size_t(pos + token) * kv_dim + row] = turned;
}

template [[host_name("qkv_rope_append_q4_0_tokens")]] kernel
    decltype(qkv_rope_append_tokens<2>) qkv_rope_append_tokens<2>;
template [[host_name("qkv_rope_append_q4_0_tokens_rows")]] kernel
    decltype(qkv_rope_append_tokens<4>) qkv_rope_append_tokens<4>;
