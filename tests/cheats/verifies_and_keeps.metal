// It computes one output of 32 and keeps the others if it was there already.
// Several verdicts are right: with fast math an output that still holds the NaN of nothing written may compare as
// equal, as it does on x86-64, and then nothing is ever written; elsewhere a second run or checked mode shows the read.
// base: residual_add
// refused: check validate
// because: may only write|unwritten|never written
#include <metal_stdlib>
using namespace metal;
kernel void cheat(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                  device float *out [[buffer(2)]], constant uint &n [[buffer(3)]],
                  uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    if (n > 70000) {
        const uint first = i / 32 * 32;
        const bool same = out[first] == a[first] + b[first];
        simdgroup_barrier(mem_flags::mem_device);
        if (same)
            return;
    }
    out[i] = a[i] + b[i];
}
