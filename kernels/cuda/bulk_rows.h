// bulk_rows: rows of a matrix in dynamic shared memory, brought there by bulk copies (TMA).
//
// One thread initialises an mbarrier and tells it how many bytes to expect; the TMA then copies whole
// rows from global memory, without threads or registers, and the threads wait for the mbarrier. The
// copies begin before the launch before has ended, those of the next launch while this one computes.
#pragma once

// The rows of a thread block among all: `rows` of them, and for the first ones one more, so that SMs
// do not wait for each other.
struct near_share {
    uint first, count;

    METAL_FUNC near_share(uint rows, uint all, uint group, uint groups) {
        const uint more = all - rows * groups;
        first = group * rows + min(group, more);
        count = rows + (group < more ? 1 : 0);
    }
};

// Rows of at most Q uint4s, of which there is room for R. Four that follow each other are a copy:
// fewer copies begin sooner. After each there is a uint4, so that the same words of eight rows that
// are read together, those of get_slot with the same i, are in different banks.
template <uint R, uint Q> struct near_rows {
    enum : uint { room = R, each = 4, stride = each * Q + 1 };
    static_assert(R % each == 0 && R <= 32 * each, "a lane makes a copy");
    static_assert(Q % 2 == 0, "get_slot knows no other banks");
    typedef threadgroup const uint *row;
    device const uint4 *from;
    threadgroup uint4 *memory;
    uint quads; // of a row: at most Q

    METAL_FUNC near_rows(device const uint4 *first, uint row_quads) {
        from = first;
        quads = row_quads;
        memory = (threadgroup uint4 *)cuda::get_shared_memory<16 * (R / each) * stride>();
    }
    // The first thread of the block; a barrier follows.
    METAL_FUNC void begin(uint count) {
        cuda::init_mbarrier();
        cuda::expect_bytes(16 * quads * min(count, R));
    }
    // The first warp, after the first thread has begun.
    METAL_FUNC void copy(uint count, uint thread_index) {
        const uint all = min(count, R);
        const uint first = each * thread_index;
        if (first < all)
            cuda::copy_bulk(memory + thread_index * stride, from + size_t(first) * quads,
                            16 * quads * min(uint(each), all - first));
    }
    // Row i of the four of a lane whose place is one of 8.
    static METAL_FUNC uint get_slot(uint i, uint place) {
        return Q % 8 == 0 ? each * place + i : place + 8 * i;
    }
    // One of the first R. Past the last row there is nothing of use, but it may be read.
    METAL_FUNC row get_row(uint i) const {
        return (row)(memory + i / each * stride + i % each * quads);
    }
    // Any row, in global memory.
    METAL_FUNC device const uint *get_far_row(uint i, uint count) const {
        return (device const uint *)(from + size_t(min(i, count - 1)) * quads);
    }
};

// Values that the launch before may still be writing, on their way to the L2 cache: nothing reads
// them yet. A block takes every `groups`th 32 of them, at most 1024 in all; `count` is a multiple of
// 32.
inline void near_expect_values(device const float *x, uint count, uint group, uint groups,
                               uint thread_index) {
    const uint first = 32 * (group + groups * (thread_index - 32));
    if (thread_index >= 32 && thread_index < 64 && first < count)
        cuda::prefetch_bulk(x + first, 128);
}
