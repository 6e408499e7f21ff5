// The word comes from the command line.
// fast: 1 assembly is not part of MSL
// checked: 1 assembly is not part of MSL
// more: -D WORD=asm
#include <metal_stdlib>
using namespace metal;
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    WORD volatile("nop");
    out[i] = 1;
}
