// A jump to a buffer.
// fast: 0 |1 crashed: SIG
#include <metal_stdlib>
using namespace metal;
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    goto *(void *)(ulong)out;
here:
    out[i] = (ulong)&&here & 255;
}
