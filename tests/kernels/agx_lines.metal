// For test_agx.c: a kernel whose lines are told apart by the instructions that only they need.
#include <metal_stdlib>
using namespace metal;

kernel void told_apart(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                       device const int *n [[buffer(2)]], uint i [[thread_position_in_grid]],
                       uint t [[thread_index_in_threadgroup]]) {
    threadgroup float held[256];
    float sum = 0.0f;
    for (int k = 0; k < n[i]; k++)
        sum = fma(x[k], 3.0f, sum);
    held[t] = exp2(sum);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float other = log2(held[255 - t]);
    if (other > 4.0f)
        other = rsqrt(other);
    y[i] = other;
}
