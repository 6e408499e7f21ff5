// matvec_q4_0_accumulate: y += W x, with W (out_dim, in_dim) in Q4_0 blocks.
//
// A projection whose result goes into the residual stream needs no buffer, no launch and no traffic
// for the addition: the row is added where it would have been stored. Reads each weight once, x
// once a row from cache, reads and writes 4 bytes a row.
#include <metal_stdlib>
using namespace metal;

#include "q4_0.h"

#include "matvec_rows.h"

// A threadgroup of 256 makes 8 rows, a simdgroup each; a thread takes blocks lane, lane + 32, ...
kernel void matvec_q4_0_accumulate(device const block_q4_0 *w [[buffer(0)]],
                                   device const float *x [[buffer(1)]],
                                   device float *y [[buffer(2)]],
                                   constant uint &out_dim [[buffer(3)]],
                                   constant uint &in_dim [[buffer(4)]],
                                   uint group [[threadgroup_position_in_grid]],
                                   uint sg [[simdgroup_index_in_threadgroup]],
                                   uint lane [[thread_index_in_simdgroup]]) {
    const uint row = group * 8 + sg;
    if (row >= out_dim)
        return;
    const uint blocks = in_dim / 32;
    device const block_q4_0 *w_row = w + size_t(row) * blocks;
    float sum = 0.0f;
    for (uint b = lane; b < blocks; b += 32)
        sum += q4_0_dot(w_row + b, (device const float4 *)(x + 32 * b));
    sum = simd_sum(sum);
    if (lane == 0)
        y[row] += sum;
}

// A threadgroup of 128 makes 16 rows: each of its 4 simdgroups makes 4 at once, as
// matvec_q4_0_rowblock does.
kernel void matvec_q4_0_accumulate_rowblock(device const block_q4_0 *w [[buffer(0)]],
                                            device const float *x [[buffer(1)]],
                                            device float *y [[buffer(2)]],
                                            constant uint &out_dim [[buffer(3)]],
                                            constant uint &in_dim [[buffer(4)]],
                                            uint group [[threadgroup_position_in_grid]],
                                            uint sg [[simdgroup_index_in_threadgroup]],
                                            uint lane [[thread_index_in_simdgroup]]) {
    const uint first = (group * 4 + sg) * 4;
    if (first >= out_dim)
        return;
    const uint blocks = in_dim / 32;
    const uint part = lane % 2;
    const uint last = out_dim - 1;
    device const block_q4_0 *w0 = w + size_t(first) * blocks;
    device const block_q4_0 *w1 = w + size_t(min(first + 1, last)) * blocks;
    device const block_q4_0 *w2 = w + size_t(min(first + 2, last)) * blocks;
    device const block_q4_0 *w3 = w + size_t(min(first + 3, last)) * blocks;
    float4 sums = float4(0.0f);
    for (uint b = lane / 2; b < blocks; b += 16) {
        const q4_0_half_input input = q4_0_load_half(x + 32 * b, part);
        sums.x += q4_0_half_dot(w0 + b, part, input);
        sums.y += q4_0_half_dot(w1 + b, part, input);
        sums.z += q4_0_half_dot(w2 + b, part, input);
        sums.w += q4_0_half_dot(w3 + b, part, input);
    }
    sums = simd_sum(sums);
    if (lane < 4 && first + lane < out_dim)
        y[first + lane] += sums[lane];
}

// For many tokens: what they do is said in matvec_rows.h.
template [[host_name("multi_token_matvec_q4_0_accumulate")]] kernel
    decltype(multi_token<q4_0, true>) multi_token<q4_0, true>;
template [[host_name("multi_token_matvec_q4_0_accumulate_reuse")]] kernel
    decltype(reuse<q4_0, true>) reuse<q4_0, true>;
template [[host_name("multi_token_matvec_q4_0_accumulate_alone")]] kernel
    decltype(alone<q4_0, true>) alone<q4_0, true>;
