// near: rows of a matrix brought near the threads that need them.
//
// A device may have memory beside that of a threadgroup, and copies into it that run by themselves,
// without threads or registers: rows are on their way before the launch before has ended, and the next
// launch's while this one computes. Where there is none, rows are read where they are.
#pragma once

#ifdef __ASSAY__
#define HAS_NEAR ASSAY_HAS_NEAR
#define NEAR_MEMORY(bytes) ASSAY_NEAR_MEMORY(bytes)
#define NEAR_BEGIN() ASSAY_NEAR_BEGIN()
#define NEAR_EXPECT(bytes) ASSAY_NEAR_EXPECT(bytes)
#define NEAR_COPY(to, from, bytes) ASSAY_NEAR_COPY(to, from, bytes)
#define NEAR_PREFETCH(from, bytes) ASSAY_NEAR_PREFETCH(from, bytes)
#define NEAR_WAIT(phase) ASSAY_NEAR_WAIT(phase)
#else
#define HAS_NEAR false
#define NEAR_MEMORY(bytes) nullptr
#define NEAR_BEGIN() ((void)0)
#define NEAR_EXPECT(bytes) ((void)0)
#define NEAR_COPY(to, from, bytes) ((void)0)
#define NEAR_PREFETCH(from, bytes) ((void)0)
#define NEAR_WAIT(phase) ((void)0)
#endif

// Among the words of a row, from one of them on: a half, a signed byte, and four words that are a uint4.
inline float near_half(threadgroup const uint *at, int i) {
    return float(((threadgroup const half *)at)[i]);
}
inline float near_half(device const uint *at, int i) {
    return float(((device const half *)at)[i]);
}
inline int near_char(threadgroup const uint *at, int i) {
    return ((threadgroup const char *)at)[i];
}
inline int near_char(device const uint *at, int i) {
    return ((device const char *)at)[i];
}
inline uint4 near_quad(threadgroup const uint *at) {
    return *(threadgroup const uint4 *)at;
}
inline uint4 near_quad(device const uint *at) {
    return *(device const uint4 *)at;
}

// The rows of a threadgroup among all: `rows` of them, and for the first ones one more, so that cores do
// not wait for each other.
struct near_share {
    uint first, count;

    METAL_FUNC near_share(uint rows, uint all, uint group, uint groups) {
        const uint more = all - rows * groups;
        first = group * rows + min(group, more);
        count = rows + (group < more ? 1 : 0);
    }
};

// Rows of at most Q uint4s, of which there is room for R; if there are more, those follow once all threads
// have read the first ones. A row and the next are an odd number of uint4s apart, so that the same
// words of 8 rows are in different banks.
template <uint R, uint Q, bool HasMemory = HAS_NEAR> struct near_rows {
    static_assert(R <= 32, "a lane copies a row");
    typedef threadgroup const uint *row;
    device const uint4 *from;
    threadgroup uint4 *memory;
    uint quads; // of a row

    METAL_FUNC near_rows(device const uint4 *first, uint row_quads) {
        from = first;
        quads = row_quads;
        memory = (threadgroup uint4 *)NEAR_MEMORY(16 * R * (Q | 1));
    }
    METAL_FUNC void copy(uint first, uint end, uint thread_index) {
        if (thread_index == 0)
            NEAR_EXPECT(16 * quads * (end - first));
        simdgroup_barrier(mem_flags::mem_none);
        if (first + thread_index < end)
            NEAR_COPY(memory + thread_index * (quads | 1),
                      from + size_t(first + thread_index) * quads, 16 * quads);
    }
    // Every thread of the threadgroup; a barrier follows.
    METAL_FUNC void start(uint count, uint thread_index) {
        if (thread_index == 0)
            NEAR_BEGIN();
        if (thread_index < 32)
            copy(0, min(count, R), thread_index);
        if (R + thread_index < count)
            NEAR_PREFETCH(from + size_t(R + thread_index) * quads, 16 * quads);
    }
    METAL_FUNC void wait() const { NEAR_WAIT(0); }
    // Every thread, before any row from R on.
    METAL_FUNC void go_on(uint count, uint thread_index) {
        if (count <= R)
            return;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (thread_index < 32)
            copy(R, count, thread_index);
        NEAR_WAIT(1);
    }
    METAL_FUNC row get_row(uint i) const {
        return (row)(memory + (i < R ? i : i - R) * (quads | 1));
    }
};

template <uint R, uint Q> struct near_rows<R, Q, false> {
    typedef device const uint *row;
    device const uint4 *from;
    uint quads;

    METAL_FUNC near_rows(device const uint4 *first, uint row_quads) {
        from = first;
        quads = row_quads;
    }
    METAL_FUNC void start(uint, uint) {}
    METAL_FUNC void wait() const {}
    METAL_FUNC void go_on(uint, uint) {}
    METAL_FUNC row get_row(uint i) const { return (row)(from + size_t(i) * quads); }
};
