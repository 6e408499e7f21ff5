// matvec_q4_0_batched: three products with the same x in one launch, with W in Q4_0 blocks: query,
// key and value, or (with an empty third) gate and up.
//
// It exists because a launch costs as much as a small matrix: 192 rows of 576 are 60 KB. Moves as
// much as three separate products, but x comes from cache for two of them.
#include <metal_stdlib>
using namespace metal;

#include "../formats/q4_0.h"
#include "row.h"

// One of the three matrices, and one of its rows.
struct product {
    device const block_q4_0 *w;
    device float *y;
    uint row, rows;
};

// Row `row` of all three, stacked. Rows past the end belong to the last matrix that has any; only
// the third may have none.
inline product find_product(device const block_q4_0 *wa,
                            device const block_q4_0 *wb,
                            device const block_q4_0 *wc,
                            device float *ya,
                            device float *yb,
                            device float *yc,
                            uint4 dims,
                            uint row) {
    if (row < dims.x)
        return {wa, ya, row, dims.x};
    row -= dims.x;
    if (row < dims.y || dims.z == 0)
        return {wb, yb, row, dims.y};
    return {wc, yc, row - dims.y, dims.z};
}

// A threadgroup of 256 computes 8 of the stacked rows, one simdgroup each; a thread takes blocks
// lane, lane + 32, ... dims: rows of a, b and c, then in_dim.
kernel void matvec_q4_0_batched(device const block_q4_0 *wa [[buffer(0)]],
                                device const block_q4_0 *wb [[buffer(1)]],
                                device const block_q4_0 *wc [[buffer(2)]],
                                device const float *x [[buffer(3)]],
                                device float *ya [[buffer(4)]],
                                device float *yb [[buffer(5)]],
                                device float *yc [[buffer(6)]],
                                constant uint4 &dims [[buffer(7)]],
                                uint group [[threadgroup_position_in_grid]],
                                SIMDGROUP_PLACE) {
    const product p = find_product(wa, wb, wc, ya, yb, yc, dims, group * 8 + sg);
    if (p.row >= p.rows)
        return;
    const plain_input<float4> input = {x};
    const float sum = dot_row<q4_0>(p.w, input, p.row, dims.w, lane);
    if (lane == 0)
        p.y[p.row] = sum;
}
