// Code that is compiled otherwise.
// fast: 1 '#pragma clang optimize
// checked: 1 '#pragma clang optimize
#include <metal_stdlib>
using namespace metal;
#pragma clang optimize off
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = 1;
}
