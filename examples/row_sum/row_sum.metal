#include <metal_stdlib>
using namespace metal;

/* y[row] = sum of x[row][0..n): one simdgroup per row, each lane adds every 32nd value. */
kernel void row_sum(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                    constant uint &n [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                    uint lane [[thread_index_in_simdgroup]]) {
    float sum = 0;
    for (uint i = lane; i < n; i += 32)
        sum += x[row * n + i];
    sum = simd_sum(sum);
    if (lane == 0)
        y[row] = sum;
}
