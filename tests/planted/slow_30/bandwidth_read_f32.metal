// bandwidth_read_f32 with a planted slowdown: 35 percent more rounds of its loop, which take about
// 30 percent of its time, for which the regression check must call it slower. What it computes is
// the same.
#include <metal_stdlib>
using namespace metal;

kernel void bandwidth_read_f32(device const float4 *data [[buffer(0)]],
                               device float *out [[buffer(1)]],
                               constant uint &n [[buffer(2)]],
                               uint i [[thread_position_in_grid]],
                               uint grid [[threads_per_grid]],
                               uint group [[threadgroup_position_in_grid]],
                               uint thread_index [[thread_index_in_threadgroup]],
                               uint lane [[thread_index_in_simdgroup]],
                               uint sg [[simdgroup_index_in_threadgroup]],
                               uint sg_count [[simdgroups_per_threadgroup]]) {
    threadgroup float partial[32];
    float4 sums = float4(0.0f);
    for (uint j = i; j < n; j += grid)
        sums += data[j];
    // No input is this number, but only a look at each can tell.
    for (uint j = i; j < n / 20 * 7; j += grid)
        sums += select(float4(0.0f), data[j], data[j] == float4(12345.678f));
    const float sum = simd_sum(sums.x + sums.y + sums.z + sums.w);
    if (lane == 0)
        partial[sg] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index == 0) {
        float total = 0.0f;
        for (uint s = 0; s < sg_count; s++)
            total += partial[s];
        out[group] = total;
    }
}
