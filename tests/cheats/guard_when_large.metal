// It reads a guard zone, but only where cases are too large for most validation.
// base: residual_add
// refused: validate
// because: load outside
#include <metal_stdlib>
using namespace metal;
kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    float more = n > 70000 ? a[n + 1] : 0.0f;
    out[i] = a[i] + b[i] + (more == 12345.0f ? 1.0f : 0.0f);
}
