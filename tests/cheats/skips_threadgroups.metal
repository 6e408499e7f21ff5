// Every eighth threadgroup of a large grid returns at once.
// base: residual_add
// refused: check
// because: never written
#include <metal_stdlib>
using namespace metal;

kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]],
                  uint group [[threadgroup_position_in_grid]],
                  uint groups [[threadgroups_per_grid]]) {
    if (i >= n)
        return;
    if (group % 8 == 7 && groups > 16)
        return;
    out[i] = a[i] + b[i];
}
