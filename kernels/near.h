// near: rows of a matrix brought near the threads that need them.
//
// A device may have memory beside that of a threadgroup, and copies into it that run by themselves,
// without threads or registers: rows are on their way before the launch before has ended, and the
// next launch's while this one computes. Where there is none, rows are read where they are.
//
// There, PARTNERS threadgroups, neighbours along x, may work together. A launch has a multiple of
// as many.
#pragma once

#include "all_lanes.h"

#ifdef __ASSAY__
#define HAS_NEAR ASSAY_HAS_NEAR
#define NEAR_MEMORY(bytes) ASSAY_NEAR_MEMORY(bytes)
#define NEAR_BEGIN() ASSAY_NEAR_BEGIN()
#define NEAR_EXPECT(bytes) ASSAY_NEAR_EXPECT(bytes)
#define NEAR_COPY(to, from, bytes) ASSAY_NEAR_COPY(to, from, bytes)
#define NEAR_PREFETCH(from, bytes) ASSAY_NEAR_PREFETCH(from, bytes)
#define NEAR_FETCH(to, from) ASSAY_NEAR_FETCH(to, from)
#define NEAR_FETCH_WAIT() ASSAY_NEAR_FETCH_WAIT()
#define NEAR_PAUSE(clocks, flag) ASSAY_NEAR_PAUSE(clocks, flag)
#define NEAR_WAIT() ASSAY_NEAR_WAIT()
#define PARTNERS ASSAY_PARTNERS
#define PARTNERS_BEGIN(bytes) ASSAY_PARTNERS_BEGIN(bytes)
#define PARTNERS_ARRIVE() ASSAY_PARTNERS_ARRIVE()
#define PARTNERS_MEET() ASSAY_PARTNERS_MEET()
#define PARTNERS_SEND(to, value, partner) ASSAY_PARTNERS_SEND(to, value, partner)
#define PARTNERS_WAIT() ASSAY_PARTNERS_WAIT()
#else
#define HAS_NEAR false
#define NEAR_MEMORY(bytes) nullptr
#define NEAR_BEGIN() ((void)0)
#define NEAR_EXPECT(bytes) ((void)0)
#define NEAR_COPY(to, from, bytes) ((void)0)
#define NEAR_PREFETCH(from, bytes) ((void)0)
#define NEAR_FETCH(to, from) ((void)0)
#define NEAR_FETCH_WAIT() ((void)0)
#define NEAR_PAUSE(clocks, flag) ((void)0)
#define NEAR_WAIT() ((void)0)
#define PARTNERS 1
#define PARTNERS_BEGIN(bytes) ((void)0)
#define PARTNERS_ARRIVE() ((void)0)
#define PARTNERS_MEET() ((void)0)
#define PARTNERS_SEND(to, value, partner) ((void)0)
#define PARTNERS_WAIT() ((void)0)
#endif

// Among the words of a row, from one of them on: a half, a signed byte, and four words that are a
// uint4.
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

// The rows of a threadgroup among all: `rows` of them, and for the first ones one more, so that
// cores do not wait for each other.
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
template <uint R, uint Q, bool HasMemory = HAS_NEAR> struct near_rows {
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
        memory = (threadgroup uint4 *)NEAR_MEMORY(16 * (R / each) * stride);
    }
    // The first thread of the threadgroup; a barrier follows.
    METAL_FUNC void begin(uint count) {
        NEAR_BEGIN();
        NEAR_EXPECT(16 * quads * min(count, R));
    }
    // The first simdgroup, after the first thread has begun.
    METAL_FUNC void copy(uint count, uint thread_index) {
        const uint all = min(count, R);
        const uint first = each * thread_index;
        if (first < all)
            NEAR_COPY(memory + thread_index * stride, from + size_t(first) * quads,
                      16 * quads * min(uint(each), all - first));
    }
    METAL_FUNC void wait() const { NEAR_WAIT(); }
    // Row i of the four of a lane whose place is one of 8.
    static METAL_FUNC uint get_slot(uint i, uint place) {
        return Q % 8 == 0 ? each * place + i : place + 8 * i;
    }
    // One of the first R. Past the last row there is nothing of use, but it may be read.
    METAL_FUNC row get_row(uint i, uint) const {
        return (row)(memory + i / each * stride + i % each * quads);
    }
    // Any row, where it is.
    METAL_FUNC device const uint *get_far_row(uint i, uint count) const {
        return (device const uint *)(from + size_t(min(i, count - 1)) * quads);
    }
};

template <uint R, uint Q> struct near_rows<R, Q, false> {
    enum : uint { room = R };
    typedef device const uint *row;
    device const uint4 *from;
    uint quads;

    METAL_FUNC near_rows(device const uint4 *first, uint row_quads) {
        from = first;
        quads = row_quads;
    }
    METAL_FUNC void begin(uint) {}
    METAL_FUNC void copy(uint, uint) {}
    METAL_FUNC void wait() const {}
    METAL_FUNC row get_far_row(uint i, uint count) const {
        return (row)(from + size_t(min(i, count - 1)) * quads);
    }
    METAL_FUNC row get_row(uint i, uint count) const { return get_far_row(i, count); }
    static METAL_FUNC uint get_slot(uint i, uint place) { return place + 8 * i; }
};

// Values that the launch before may still be writing, on their way to the cache that all cores
// share: nothing reads them yet. A threadgroup takes every `groups`th 32 of them, at most 1024 in
// all; `count` is a multiple of 32.
inline void near_expect_values(device const float *x, uint count, uint group, uint groups,
                               uint thread_index) {
    const uint first = 32 * (group + groups * (thread_index - 32));
    if (thread_index >= 32 && thread_index < 64 && first < count)
        NEAR_PREFETCH(x + first, 128);
}
