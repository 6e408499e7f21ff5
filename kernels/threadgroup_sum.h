// threadgroup_sum: a sum over all threads of a threadgroup, for kernels that need one.
#pragma once

// The sum of one value, or vector, per thread over the threadgroup, returned to every thread. partial
// has room for one T per simdgroup and must not be touched again before another barrier.
template <typename T>
METAL_FUNC T threadgroup_sum(T value, threadgroup T *partial, uint lane, uint sg, uint sg_count) {
    value = simd_sum(value);
    if (lane == 0)
        partial[sg] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    T total = 0.0f;
    for (uint s = 0; s < sg_count; s++)
        total += partial[s];
    return total;
}
