// A static variable keeps the answer for the next run.
// base: residual_add
// refused: lint
// because: cannot be declared static
#include <metal_stdlib>
using namespace metal;

inline float remember(float value) {
    static float kept = 0.0f;
    if (kept == 0.0f)
        kept = value;
    return kept;
}

kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    out[i] = remember(a[i] + b[i]);
}
