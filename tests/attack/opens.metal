// The C library found through memcpy: a new file.
// fast: 1 tried to call the operating system|crashed: SIG
// checked: 1
#include <metal_stdlib>
using namespace metal;
#include "reach.h"
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = reach(NR_OPENAT, -100, WITNESS, 0101, 0644);
}
