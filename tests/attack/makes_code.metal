// The same: memory that can be executed.
// fast: 1 tried to call the operating system|crashed: SIG
#include <metal_stdlib>
using namespace metal;
#include "reach.h"
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = reach(NR_MPROTECT, (ulong)out & ~16383ul, 16384, 7, 0);
}
