// bandwidth_read_high_occupancy: bandwidth_read_f32 with as many threads as possible.
#include <metal_stdlib>
using namespace metal;

#include "threadgroup_sum.h"

// Always 1024 threadgroups of 256. A thread adds up float4s, strided by the whole grid, in a single
// sum so that it needs few registers and many can be resident; a threadgroup writes the sum of its
// threads to out[threadgroup]. Reads 16 n bytes, writes 4096. It exists to see whether reading is
// limited by the number of loads in flight.
kernel void bandwidth_read_high_occupancy(device const float4 *data [[buffer(0)]],
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
    float sum = 0.0f;
    for (uint j = i; j < n; j += grid) {
        const float4 v = data[j];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    const float total = threadgroup_sum(sum, partial, lane, sg, sg_count);
    if (thread_index == 0)
        out[group] = total;
}
