// A function pointer made of a number.
// fast: 1 crashed: SIG
#include <metal_stdlib>
using namespace metal;
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = ((int (*)(const char *))(ulong)(0x401000 + i))(WITNESS);
}
