// A pragma gives a declaration another name.
// fast: 1 '#pragma redefine_extname
// checked: 1 '#pragma redefine_extname
#include <metal_stdlib>
using namespace metal;
#pragma redefine_extname harmless system
extern "C" int harmless(const char *);
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = harmless(WITNESS);
}
