// A line that is split hides the word.
// fast: 1 assembly is not part of MSL
// checked: 1 assembly is not part of MSL
#include <metal_stdlib>
using namespace metal;
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    a\
sm volatile("nop");
    out[i] = 1;
}
