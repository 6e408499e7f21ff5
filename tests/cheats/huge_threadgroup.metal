// More threadgroup memory than a GPU has, to bring the harness down.
// base: residual_add
// refused: lint
// because: threadgroup-memory
#include <metal_stdlib>
using namespace metal;

kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    threadgroup float kept[1 << 20];
    kept[i % (1 << 20)] = a[i];
    out[i] = kept[i % (1 << 20)] + b[i];
}
