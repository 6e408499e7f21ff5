// Nothing is written: the output may be right already.
// base: residual_add
// refused: check
// because: never written
#include <metal_stdlib>
using namespace metal;

kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    if (a[i] + b[i] == 12345.0f)
        out[i] = 12345.0f;
}
