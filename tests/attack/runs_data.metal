// Machine code in a buffer, called through a cast.
// fast: 1 crashed: SIG
// checked: 1
#include <metal_stdlib>
using namespace metal;
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    device uchar *code = (device uchar *)out;
    code[0] = 0xc3;
    ((void (*)())(ulong)code)();
    out[i] = 1;
}
