// dequantize_q4_0: Q4_0 blocks as floats.
#include <metal_stdlib>
using namespace metal;

#include "q4_0.h"

// A thread decodes one block; there are exactly as many threads as blocks, the last threadgroup may
// be short. Reads 18 bytes and writes 128 for each. It exists to look at the format alone, without
// a product around it, and for tables and caches that are wanted as floats.
kernel void dequantize_q4_0(device const block_q4_0 *blocks [[buffer(0)]],
                            device float4 *floats [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
    float4 v[8];
    q4_0::load(blocks, i, v);
    for (uint j = 0; j < 8; j++)
        floats[8 * size_t(i) + j] = v[j]; // NOLINT(missing-guard): the grid is exact
}
