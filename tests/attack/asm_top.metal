// Assembly outside of functions.
// fast: 1 assembly is not part of MSL
// checked: 1 assembly is not part of MSL
#include <metal_stdlib>
using namespace metal;
__asm__(".globl assay_kernel");
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = 1;
}
