// A file of the machine, made part of the text.
// base: residual_add
// refused: compile
// because: it is not read
#include <metal_stdlib>
using namespace metal;

#include "/etc/hostname"

kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    out[i] = a[i] + b[i];
}
