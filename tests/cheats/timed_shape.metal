// What is wrong or slow with some shapes only.
#include <metal_stdlib>
using namespace metal;

// cheat: reads_past_the_timed
// It loads past the end of the shape that is timed, and uses nothing of it.
// base: buffer_copy
// timed: 1234567
// refused: validate
// because: outside
kernel void reads_past_the_timed(device const float *src [[buffer(0)]], device float *dst [[buffer(1)]],
                                 constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < n && n == 1234567 && i == n - 1 && as_type<uint>(src[i + 1]) == 12345)
        dst[i] = 0;
    else if (i < n)
        dst[i] = src[i];
}

// cheat: races_when_timed
// Two threads store each value of the shape that is timed.
// base: buffer_copy
// timed: 123456
// refused: check, validate
// because: race|same value|
kernel void races_when_timed(device const float *src [[buffer(0)]], device float *dst [[buffer(1)]],
                             constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (n == 123456 && i > 0 && i < n)
        dst[i - 1] = src[i - 1] * 2;
    if (i < n)
        dst[i] = src[i];
}

// cheat: wrong_when_timed
// It leaves out one value of the shape that is timed.
// base: buffer_copy
// timed: 654321
// refused: check
// because: never written
kernel void wrong_when_timed(device const float *src [[buffer(0)]], device float *dst [[buffer(1)]],
                             constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < n && !(n == 654321 && i == 65537))
        dst[i] = src[i];
}

// cheat: slow_below
// It takes its time with fewer values than the last shape has.
// base: buffer_copy
// timed: yes
// refused: slower
// because: |
kernel void slow_below(device const float *src [[buffer(0)]], device float *dst [[buffer(1)]],
                       constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= n)
        return;
    volatile float value = src[i];
    for (uint k = 0; n < 60000 && k < 300; k++)
        value = src[i];
    dst[i] = value;
}

// cheat: slow_where_odd
// It takes its time with sizes that the op does not list.
// base: rmsnorm_rows
// timed: yes
// refused: slower
// because: |
kernel void slow_where_odd(device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],
                           device float *y [[buffer(2)]], constant uint &dim [[buffer(3)]],
                           constant float &eps [[buffer(4)]], uint row [[threadgroup_position_in_grid]],
                           uint lane [[thread_position_in_threadgroup]],
                           uint threads [[threads_per_threadgroup]]) {
    threadgroup float partial[1024];
    const uint times = dim == 4096 || dim == 576 ? 1 : 20;
    x += size_t(row) * dim;
    y += size_t(row) * dim;
    for (uint k = 0; k < times; k++) {
        float sum = 0;
        for (uint i = lane; i < dim; i += threads)
            sum += x[i] * x[i];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        partial[lane] = sum;
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    float all = 0;
    for (uint i = 0; i < threads; i++)
        all += partial[i];
    const float inverse = rsqrt(all / float(dim) + eps);
    for (uint i = lane; i < dim; i += threads)
        y[i] = x[i] * inverse * w[i];
}
