// dequantize: decodes blocks to floats.
#include <metal_stdlib>
using namespace metal;

#include "formats/q4_0.h"
#include "formats/q8_0.h"

// One thread per block of 32; there are exactly as many threads as blocks, the last threadgroup may
// be short. Reads a block and writes 128 bytes per thread. It exists to check a format by itself,
// without a product around it, and for tables and caches that are needed as floats.
template <typename F>
kernel void dequantize(device const typename F::block *blocks [[buffer(0)]],
                       device float4 *floats [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
    float4 v[8];
    F::load(blocks, i, v);
    for (uint j = 0; j < 8; j++)
        floats[8 * size_t(i) + j] = v[j]; // NOLINT(missing-guard): the grid is exact
}

template [[host_name("dequantize_q4_0")]] kernel decltype(dequantize<q4_0>) dequantize<q4_0>;
template [[host_name("dequantize_q8_0")]] kernel decltype(dequantize<q8_0>) dequantize<q8_0>;
