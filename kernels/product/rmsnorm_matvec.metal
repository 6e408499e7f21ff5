// rmsnorm_matvec: y = W rmsnorm(x), the norm and the projection that follows it in one launch.
//
// Both kinds read the weights once, x and norm_w once per row or once per threadgroup from cache,
// and write 4 bytes per row. They save a launch and a buffer of normalised x; the price is that the
// same norm is computed again and again.
#include <metal_stdlib>
using namespace metal;

#include "../prefetch.h"
#include "../formats/floats.h"
#include "../formats/q4_0.h"
#include "row.h"
#include "normed_rows.h"
#include "../threadgroup_sum.h"

// x / rms * norm_w, computed when needed.
template <typename V> struct normal_input {
    device const float *x;
    device const float *norm_w;
    float inverse;
    V at(uint i) const {
        return *(device const V *)(x + i) * inverse * *(device const V *)(norm_w + i);
    }
    normal_input from(uint i) const { return {x + i, norm_w + i, inverse}; }
};

// A threadgroup is one simdgroup and computes one row. Its lanes first sum the squares of all of x,
// then take units lane, lane + 32, ... of the row. The norm is computed out_dim times: a loss with
// more than a few rows, which is why it is measured.
template <typename F>
kernel void rmsnorm_matvec(NORMED_MATVEC_ARGUMENTS(typename F::block),
                           uint row [[threadgroup_position_in_grid]],
                           uint lane [[thread_index_in_simdgroup]]) {
    float squares = 0.0f;
    for (uint i = lane; i < in_dim; i += 32)
        squares += x[i] * x[i];
    squares = simd_sum(squares);
    const float inverse = rsqrt(squares / float(in_dim) + eps);
    const normal_input<typename F::wide> input = {x, norm_w, inverse};
    const float sum = dot_row<F>(w, input, row, in_dim, lane);
    if (lane == 0)
        y[row] = sum;
}

KERNEL("rmsnorm_matvec_q4_0", rmsnorm_matvec<q4_0>)
KERNEL("rmsnorm_matvec_f32", rmsnorm_matvec<f32_single>)

// x in threadgroup memory.
struct threadgroup_input {
    threadgroup const float *x;
    float4 at(uint i) const { return *(threadgroup const float4 *)(x + i); }
    threadgroup_input from(uint i) const { return {x + i}; }
};

// A threadgroup of 256 computes 8 rows, one simdgroup each, and the norm once for all of them: its
// threads sum the squares together and leave the normalised x in threadgroup memory, where the rows
// read it. `normal` has room for hidden floats, which with `partial` must fit the 32 KB of a
// threadgroup: product_record refuses a hidden that does not. The norm is computed
// out_dim / 8 times.
kernel void megakernel_rmsnorm_matvec(device const float *x [[buffer(0)]],
                                      device const float *norm_w [[buffer(1)]],
                                      device const block_q4_0 *w [[buffer(2)]],
                                      device float *y [[buffer(3)]],
                                      constant uint &hidden [[buffer(4)]],
                                      constant float &eps [[buffer(5)]],
                                      constant uint &out_dim [[buffer(6)]],
                                      threadgroup float *normal [[threadgroup(0)]],
                                      uint group [[threadgroup_position_in_grid]],
                                      THREAD_PLACE) {
    threadgroup float partial[8];
    float squares = 0.0f;
    for (uint i = thread_index; i < hidden; i += 256)
        squares += x[i] * x[i];
    squares = threadgroup_sum(squares, partial, lane, sg, 8);
    const float inverse = rsqrt(squares / float(hidden) + eps);
    for (uint i = thread_index; i < hidden; i += 256)
        normal[i] = x[i] * inverse * norm_w[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint row = group * 8 + sg;
    if (row >= out_dim)
        return;
    const threadgroup_input input = {normal};
    const float sum = dot_row<q4_0>(w, input, row, hidden, lane);
    if (lane == 0)
        y[row] = sum;
}

// A threadgroup of 128 computes 16 rows: each of its 4 simdgroups computes 4 at once and the norm in
// the same pass over x (normed_rows.h), so that nothing waits for the norm. It is computed out_dim / 4
// times, at the price of a multiplication and an addition per value of x. Rows past the end are
// replaced by the last one.
kernel void rmsnorm_matvec_q4_0_onepass(NORMED_MATVEC_ARGUMENTS(block_q4_0),
                                        uint group [[threadgroup_position_in_grid]],
                                        SIMDGROUP_PLACE) {
    const uint first = (group * 4 + sg) * 4;
    if (first >= out_dim)
        return;
    q4_0_normed_rows<4, 1> all;
    all.norm_w = norm_w;
    all.blocks = in_dim / 32;
    all.lane = lane;
    all.sixteen = get_sixteen(in_dim);
    for (uint r = 0; r < 4; r++)
        all.rows[r] = w + size_t(min(first + r, out_dim - 1)) * all.blocks;
    all.take(0);
    PREFETCHED(1 << 1 | 1 << 2);
    all.finish(x);
    const float inverse = rsqrt(simd_sum(all.squares) / float(in_dim) + eps);
    for (uint r = 0; r < 4; r++) {
        const float sum = simd_sum(all.sums[r]);
        if (lane == r && first + r < out_dim)
            y[first + r] = sum * inverse;
    }
}
