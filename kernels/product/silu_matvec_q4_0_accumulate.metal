// silu_matvec_q4_0_accumulate: y += W (silu(gate) * up), with W (out_dim, in_dim) in Q4_0 blocks.
#include <metal_stdlib>
using namespace metal;

#include "../formats/q4_0.h"
#include "row.h"

// silu(gate) * up, computed when needed. As in ffn_silu, a very negative gate gives -0.
struct silu_input {
    device const float *gate;
    device const float *up;
    float4 at(uint i) const {
        const float4 g = *(device const float4 *)(gate + i);
        return g / (1.0f + exp(-g)) * *(device const float4 *)(up + i);
    }
    silu_input from(uint i) const { return {gate + i, up + i}; }
};

// A threadgroup of 256 computes 8 rows, one simdgroup each; a thread takes blocks lane, lane + 32,
// ... and computes the 32 activations of each by itself. Moves the weights once, gate and up once
// per row from cache, reads and writes 4 bytes per row. It exists to save the launch of ffn_silu
// and the buffer between; the price is in_dim exponentials per row instead of once.
kernel void silu_matvec_q4_0_accumulate(device const block_q4_0 *w [[buffer(0)]],
                                        device const float *gate [[buffer(1)]],
                                        device const float *up [[buffer(2)]],
                                        device float *y [[buffer(3)]],
                                        constant uint &out_dim [[buffer(4)]],
                                        constant uint &in_dim [[buffer(5)]],
                                        uint group [[threadgroup_position_in_grid]],
                                        SIMDGROUP_PLACE) {
    const uint row = group * 8 + sg;
    if (row >= out_dim)
        return;
    const silu_input input = {gate, up};
    const float sum = dot_row<q4_0>(w, input, row, in_dim, lane);
    if (lane == 0)
        y[row] += sum;
}
