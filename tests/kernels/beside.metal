// Kernels that run although one of the file, `bad`, does not compile. An alias names its type.
#include <metal_stdlib>
using namespace metal;
#include "beside.h"

template <typename T> kernel void bad(device T *x [[buffer(0)]]) { x[0] = missing(1); }
typedef decltype(bad<float>) bad_t;
template [[host_name("bad_f32")]] kernel bad_t bad<float>;

// The other line of the race is in the header.
kernel void races(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    threadgroup float shared[32];
    put(shared, i);
    x[i] = shared[i ^ 1];
}

// 100,000 bytes of private memory.
kernel void large(device float *x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    float a[25000];
    for (uint k = 0; k < 25000; k++)
        a[k] = x[0] + k;
    x[i + 1] = a[i * 700];
}
