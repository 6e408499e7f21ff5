// It asks which compiler reads it where a reader of texts takes a digit separator for a quote.
// base: residual_add
// refused: lint
// because: environment
#include <metal_stdlib>
using namespace metal;
kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    uint zero = 1'0 - 10; out[i] = __clang_major__ > 3 ? a[i] + b[i] : 0.0f; zero += 1'0;
}
