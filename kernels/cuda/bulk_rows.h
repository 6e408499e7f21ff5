// bulk_rows: what kernels share whose rows come to dynamic shared memory by bulk copies (TMA).
//
// One thread initialises an mbarrier and tells it how many bytes to expect; the TMA then copies whole
// rows from global memory, without threads or registers, and the threads wait for the mbarrier. The
// copies begin before the launch before has ended, those of the next launch while this one computes.
#pragma once

// The rows of a thread block among all: as many as every other has, and for the first ones one more, so
// that SMs do not wait for each other.
struct block_share {
    uint first, count;

    METAL_FUNC block_share(uint all, uint group, uint groups) {
        const uint rows = all / groups;
        const uint more = all % groups;
        first = group * rows + min(group, more);
        count = rows + (group < more ? 1 : 0);
    }
};

// Values that the launch before may still be writing, on their way to the L2 cache: nothing reads
// them yet. A block takes every `groups`th 32 of them, at most 1024 in all; `count` is a multiple of
// 32.
inline void prefetch_values(device const float *x, uint count, uint group, uint groups,
                            uint thread_index) {
    const uint first = 32 * (group + groups * (thread_index - 32));
    if (thread_index >= 32 && thread_index < 64 && first < count)
        cuda::prefetch_bulk(x + first, 128);
}
