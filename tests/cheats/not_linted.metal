// What the strict lint cannot read, it cannot judge.
// base: buffer_copy
// refused: lint, compile
// because: |
#include <metal_stdlib>
using namespace metal;
#define JOIN(a, b) a##b
JOIN(thread, _local) float kept;
kernel void cheat(device const float *src [[buffer(0)]], device float *dst [[buffer(1)]],
                  constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    kept += 1;
    if (i < n)
        dst[i] = src[i];
}
