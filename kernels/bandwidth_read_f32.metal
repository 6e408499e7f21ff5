// bandwidth_read_f32: reads memory as fast as it can and proves that it did, by a sum.
#include <metal_stdlib>
using namespace metal;

// A thread adds up float4s, strided by the whole grid; a threadgroup writes the sum of its threads
// to out[threadgroup]. Reads 16 n bytes, writes 4 per threadgroup. It exists to measure the roof
// that matvec times are compared with. Every float reaches a sum that is checked, so no compiler
// can drop a load; the launch chooses the grid, because how many threads it takes to saturate
// memory is part of the question.
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
