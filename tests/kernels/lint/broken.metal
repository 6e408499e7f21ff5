#include <metal_stdlib>
using namespace metal;

kernel void fine(device float *x [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    x[i] = 1.0f;
}

kernel void broken(device float *x [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    x[i] = no_such_function(1.0f); // mistake
}

template <typename T>
kernel void generic(device T *x [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
    x[i] = T(1) << T(2); // mistake where T is float
}

template [[host_name("generic_int")]] kernel void generic<int>(device int *x [[buffer(0)]],
                                                               uint i
                                                               [[thread_position_in_threadgroup]]);
template [[host_name("generic_float")]] kernel void
generic<float>(device float *x [[buffer(0)]], uint i [[thread_position_in_threadgroup]]);
