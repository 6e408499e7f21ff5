// The device's own state, found by the stack pointer.
// fast: 1 tried to call the operating system|crashed: SIG|1 ended the process
#include <metal_stdlib>
using namespace metal;
#include "reach.h"
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    int here;
    ulong worker = (ulong)&here & ~((1ul << 28) - 1);
    for (uint k = 0; k < 4096; k++)
        ((device ulong *)worker)[k] = find_call();
    simdgroup_barrier(mem_flags::mem_none);
    out[i] = simd_sum(out[i]);
}
