#include <metal_stdlib>
using namespace metal;

constant bool has_bias [[function_constant(0)]];

kernel void twice(device const float *x [[buffer(0)]],
                  device const float *y [[buffer(1)]],
                  device float *z [[buffer(1)]], // mistake
                  threadgroup float *a [[threadgroup(0)]],
                  threadgroup float *b [[threadgroup(0)]], // mistake
                  uint i [[thread_position_in_threadgroup]]) {
    a[i] = x[i];
    b[i] = y[i];
    z[i] = a[i] + b[i];
}

kernel void gated(device const float *x [[buffer(0)]],
                  device const float *bias [[buffer(1), function_constant(has_bias)]],
                  device float *y [[buffer(1), function_constant(has_bias)]],
                  uint i [[thread_position_in_threadgroup]]) {
    if (has_bias)
        y[i] = x[i] + bias[i];
}
