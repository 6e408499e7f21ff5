// The input is changed so that an oracle that reads it later agrees.
// base: residual_add
// refused: check
// because: changed its input
#include <metal_stdlib>
using namespace metal;

kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    ((device float *)a)[i] = 0.0f;
    out[i] = b[i];
}
