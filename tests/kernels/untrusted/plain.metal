// Harmless; its launch says where to read and write. EXTRA and SHIFT come from the command line.
#include <metal_stdlib>
#include "extra.h"
using namespace metal;

kernel void call(device const void *in [[buffer(0)]], device void *out [[buffer(1)]],
                 device float *rest [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    ((device float *)out)[i] = ((device const float *)in)[i + SHIFT] * EXTRA;
    rest[i] = float(i);
}
