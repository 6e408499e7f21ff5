// residual_add: out = a + b.
#include <metal_stdlib>
using namespace metal;

// One thread per element. Moves 8 bytes in and 4 out per element. It exists as the unfused
// baseline: matvec_q4_0_accumulate does the same addition with no launch and no traffic of its own.
kernel void residual_add(device const float *a [[buffer(0)]],
                         device const float *b [[buffer(1)]],
                         device float *out [[buffer(2)]],
                         constant uint &n [[buffer(3)]],
                         uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    out[i] = a[i] + b[i];
}
