// It reads a guard zone with an atomic that validation does not watch.
// base: residual_add
// refused: compile
// because: not part of MSL
#include <metal_stdlib>
using namespace metal;
kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    const float v = as_type<float>(__atomic_load_n((device const uint *)(a + n), __ATOMIC_RELAXED));
    out[i] = a[i] + b[i] + (v == 0.125f ? 1.0f : 0.0f);
}
