// A label gives a declaration another name.
// fast: 1 assembly is not part of MSL
// checked: 1 assembly is not part of MSL
#include <metal_stdlib>
using namespace metal;
extern "C" int harmless(const char *) __asm("system");
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = harmless(WITNESS);
}
