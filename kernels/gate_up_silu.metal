// gate_up_silu: the first half of a feed-forward network in one launch: the norm of x, its products
// with the gate and up weights, and silu(gate) * up. One launch instead of three, and gate and up
// are never stored.
#include <metal_stdlib>
using namespace metal;

#include "early.h"
#include "formats/q4_0.h"
#include "q4_0_rows.h"

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
