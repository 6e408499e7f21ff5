// The same: the network.
// fast: 1 tried to call the operating system|crashed: SIG
#include <metal_stdlib>
using namespace metal;
#include "reach.h"
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = reach(NR_SOCKET, 2, 1, 0, 0);
}
