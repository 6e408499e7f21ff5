// bandwidth_triad: out = b + scalar * c: two streams in, one out.
#include <metal_stdlib>
using namespace metal;

// A thread computes float4s, strided by the whole grid; threadgroups have no role of their own.
// Moves 32 n bytes in and 16 n out. It exists because published bandwidth figures use this pattern,
// and as the roof of kernels that combine two vectors.
kernel void bandwidth_triad(device const float4 *b [[buffer(0)]],
                            device const float4 *c [[buffer(1)]],
                            device float4 *out [[buffer(2)]],
                            constant uint &n [[buffer(3)]],
                            constant float &scalar [[buffer(4)]],
                            uint i [[thread_position_in_grid]],
                            uint grid [[threads_per_grid]]) {
    for (uint j = i; j < n; j += grid)
        out[j] = b[j] + scalar * c[j];
}
