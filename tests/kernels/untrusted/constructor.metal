// Has a function that the loader would call.
#include <metal_stdlib>
using namespace metal;

constant float seven = 7;
__attribute__((constructor)) void boot() {
    *(volatile int *)16 = 1;
}
kernel void call(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = seven;
}
