// A gigabyte of private memory per thread.
// base: residual_add
// refused: compile
// because: more than any memory holds
#include <metal_stdlib>
using namespace metal;

kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    float kept[1 << 28];
    for (uint k = 0; k < (1u << 28); k += 4096)
        kept[k] = a[i];
    out[i] = kept[(i & 3) << 12] + b[i];
}
