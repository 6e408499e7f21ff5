// The same in the spelling of C++.
// fast: 1 the attribute 'section' is not part of MSL
// checked: 1 the attribute 'section' is not part of MSL
#include <metal_stdlib>
using namespace metal;
[[gnu::__section__(".text")]] constant uchar code[] = {0x0f, 0x05, 0xc3};
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    ((void (*)())code)();
    out[i] = 1;
}
