#include <metal_stdlib>
using namespace metal;

kernel void uncompilable(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    out[i] = not_declared + 1;
}
