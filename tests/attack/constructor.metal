// Code that runs at loading.
// fast: 1 the attribute 'constructor' is not part of MSL
// checked: 1 the attribute 'constructor' is not part of MSL
#include <metal_stdlib>
using namespace metal;
[[gnu::constructor]] static void first() {}
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = 1;
}
