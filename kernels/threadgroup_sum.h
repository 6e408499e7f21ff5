// threadgroup_sum: a sum over all threads of a threadgroup, for kernels that need one.
#pragma once

// The sum of one value per thread over the threadgroup, returned to every thread. partial has room
// for one float per simdgroup and must not be touched again before another barrier.
inline float threadgroup_sum(float value, threadgroup float *partial, uint lane, uint sg,
                             uint sg_count) {
    value = simd_sum(value);
    if (lane == 0)
        partial[sg] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float total = 0.0f;
    for (uint s = 0; s < sg_count; s++)
        total += partial[s];
    return total;
}
