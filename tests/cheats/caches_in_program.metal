// A variable of the program keeps the answer for the next run.
// base: residual_add
// refused: lint
// because: constant address space
#include <metal_stdlib>
using namespace metal;

device float kept[65536];

kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    if (kept[i % 65536] == 0.0f)
        kept[i % 65536] = a[i] + b[i];
    out[i] = kept[i % 65536];
}
