// bandwidth_read_f16: reads memory as halves as fast as it can and proves that it did, by a sum.
#include <metal_stdlib>
using namespace metal;

#include "threadgroup_sum.h"

// A thread adds up half4s, strided by the whole grid, in float; a threadgroup writes the sum of its
// threads to out[threadgroup]. Reads 8 n bytes, writes 4 per threadgroup. It exists because loads
// of 8 bytes per thread, each with four conversions, may not reach the roof that loads of 16 do.
kernel void bandwidth_read_f16(device const half4 *data [[buffer(0)]],
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
        sums += float4(data[j]);
    const float sum = (sums.x + sums.y) + (sums.z + sums.w);
    const float total = threadgroup_sum(sum, partial, lane, sg, sg_count);
    if (thread_index == 0)
        out[group] = total;
}
