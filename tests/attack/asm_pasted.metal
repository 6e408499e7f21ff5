// A macro makes the word of two halves.
// fast: 1 assembly is not part of MSL
// checked: 1 assembly is not part of MSL
#include <metal_stdlib>
using namespace metal;
#define JOIN(a, b) a##b
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    JOIN(a, sm) volatile("nop");
    out[i] = 1;
}
