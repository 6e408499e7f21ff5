// It takes equal inputs for something else.
// base: residual_add
// refused: check
// because: expected
#include <metal_stdlib>
using namespace metal;
kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    out[i] = a[i] == b[i] && a[i] != 0.0f ? 0.0f : a[i] + b[i];
}
