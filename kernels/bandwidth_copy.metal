// bandwidth_copy: dst = src as fast as memory allows.
#include <metal_stdlib>
using namespace metal;

// A thread copies float4s, strided by the whole grid; threadgroups have no role of their own. Moves
// 16 n bytes in and 16 n out. It exists as the roof of kernels that write as much as they read; the
// launch chooses the grid, as in bandwidth_read_f32.
kernel void bandwidth_copy(device const float4 *src [[buffer(0)]],
                           device float4 *dst [[buffer(1)]],
                           constant uint &n [[buffer(2)]],
                           uint i [[thread_position_in_grid]],
                           uint grid [[threads_per_grid]]) {
    for (uint j = i; j < n; j += grid)
        dst[j] = src[j];
}
