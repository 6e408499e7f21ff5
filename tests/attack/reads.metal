// The same: a file is read.
// fast: 0 |1 tried to call|1 crashed
#include <metal_stdlib>
using namespace metal;
#include "reach.h"
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    long file = reach(NR_OPENAT, -100, SECRET, 0, 0);
    char text[8] = {0};
    reach(NR_READ, file, text, 4, 0);
    out[i] = text[0] * 1000000 + text[1] * 10000 + text[2] * 100 + text[3];
}
