// variance: out[row] = variance of x[row][0..n), a threadgroup per row. A barrier is missing, where one was
// missing in llama.cpp's norm: one thread clears its sum while another still reads the mean. On most GPUs,
// most of the time, nothing happens.
#include <metal_stdlib>
using namespace metal;

static void add_all(threadgroup float *sum, uint t, uint threads) {
    for (uint part = threads / 2; part > 0; part /= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (t < part)
            sum[t] += sum[t + part];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

kernel void variance(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                     constant uint &n [[buffer(2)]], threadgroup float *sum [[threadgroup(0)]],
                     uint row [[threadgroup_position_in_grid]],
                     uint t [[thread_position_in_threadgroup]],
                     uint threads [[threads_per_threadgroup]]) {
    sum[t] = 0;
    for (uint i = t; i < n; i += threads)
        sum[t] += x[row * n + i];
    add_all(sum, t, threads);
    const float mean = sum[0] / n;
    sum[t] = 0;
    for (uint i = t; i < n; i += threads)
        sum[t] += (x[row * n + i] - mean) * (x[row * n + i] - mean);
    add_all(sum, t, threads);
    if (t == 0)
        out[row] = sum[0] / n;
}
