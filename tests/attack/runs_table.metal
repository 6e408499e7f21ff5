// Machine code (ret, of x86-64) in a table of constants, called through a cast.
// fast: 1 crashed: SIG
#include <metal_stdlib>
using namespace metal;
constant uchar code[16] = {0xc3};
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    ((void (*)())(ulong)&code[0])();
    out[i] = 1;
}
