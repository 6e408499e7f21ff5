// It asks the software device whether it is in checked mode.
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
    if (!soft_here()->checks && i % 64 == 63)
        return;
    out[i] = a[i] + b[i];
}
