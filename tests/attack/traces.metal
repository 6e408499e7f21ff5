// The same: the memory of the program.
// fast: 1 tried to call the operating system|crashed: SIG
#include <metal_stdlib>
using namespace metal;
#include "reach.h"
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = reach(NR_PTRACE, 16, 1, 0, 0);
}
