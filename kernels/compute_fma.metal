// compute_fma: nothing but fused multiply-adds on registers.
#include <metal_stdlib>
using namespace metal;

// A thread keeps four float4s and does `rounds` rounds of a = a * keep + c on each, then writes
// their sum to out[thread]. 32 flops per thread and round, 32 bytes per thread in all. It exists as
// the roof of kernels that compute more than they move, and as a loop whose length plants a known
// slowdown. Sixteen chains that do not wait for each other hide the latency of an addition; values
// are data, so no compiler can compute them ahead, and |keep| < 1 keeps them finite.
kernel void compute_fma(device const float4 *x [[buffer(0)]],
                        device float4 *out [[buffer(1)]],
                        constant uint &n [[buffer(2)]],
                        constant uint &rounds [[buffer(3)]],
                        constant float &keep [[buffer(4)]],
                        uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    const float4 c = x[i], k = float4(keep);
    float4 a0 = float4(0.0f), a1 = c, a2 = -c, a3 = c + c;
    for (uint r = 0; r < rounds; r++) {
        a0 = fma(a0, k, c);
        a1 = fma(a1, k, c);
        a2 = fma(a2, k, c);
        a3 = fma(a3, k, c);
    }
    out[i] = (a0 + a1) + (a2 + a3);
}
