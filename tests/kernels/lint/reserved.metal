#include <metal_stdlib>
using namespace metal;

kernel void names(device float *x [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    float __hidden = 1.0f; // a warning
    uint thread = i;       // mistake
    x[thread] = __hidden;  // mistake
}
