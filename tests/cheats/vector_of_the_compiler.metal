// It reads guard zones with loads that are wider than what validation watches.
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
    typedef float f8 __attribute__((ext_vector_type(8)));
    const f8 v = *reinterpret_cast<device const f8 *>(a + i / 8 * 8);
    out[i] = v[i % 8] + b[i];
}
