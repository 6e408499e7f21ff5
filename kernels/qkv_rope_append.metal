// qkv_rope_append: everything between the residual stream and attention in one launch: the norm of
// x, its products with the query, key and value weights, the rotation of query and key to the
// position, and the new row of both caches. One launch instead of four or five.
#include <metal_stdlib>
using namespace metal;

#include "early.h"
#include "formats/q4_0.h"
#include "q4_0_rows.h"

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
