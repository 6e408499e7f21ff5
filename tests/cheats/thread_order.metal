// A thread continues what the one before it has stored.
// base: residual_add
// refused: validate
// because: race
#include <metal_stdlib>
using namespace metal;

kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    out[i] = a[i] + b[i];
    if (i > 0 && out[i - 1] != out[i - 1] + 1.0e30f)
        out[i] = a[i] + b[i];
}
