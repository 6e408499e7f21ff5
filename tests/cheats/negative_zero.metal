// It takes a negative zero for the end of something.
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
    out[i] = a[i] + b[i];
    if (as_type<uint>(a[i]) == 0x80000000u && b[i] != 0.0f)
        out[i] = 0.0f;
}
