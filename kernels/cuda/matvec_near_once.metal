// matvec_near_once: y = W x and y += W x for one token, as near.h does it, where a thread block has at most
// 32 rows: all of them are on their way at once, and a lane multiplies four together. A product of few rows
// alone is thus faster than by tiles (H200, memory cold: 4096x4096 in Q4_0 3.3 us instead of 4.5).
#include <metal_stdlib>
using namespace metal;

#include "../opaque.h"
#include "../product/row.h"
#include "bulk_rows.h"
#include "mma_bytes.h"
#include "near_formats.h"

enum : uint { NEAR_TEAMS = 16, NEAR_ROWS = 32, NEAR_TURNS = 4 };

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

// The sum of part i of `totals` over the four lanes of a row, for lane i of them.
inline float near_gather(thread const float (&totals)[4], uint part) {
    float two[2];
    for (uint i = 0; i < 2; i++) {
        const float lower = totals[i];
        const float upper = totals[2 + i];
        const float given = cuda::shuffle_xor(part & 2 ? lower : upper, 2);
        two[i] = (part & 2 ? upper : lower) + given;
    }
    const float given = cuda::shuffle_xor(part & 1 ? two[0] : two[1], 1);
    return (part & 1 ? two[1] : two[0]) + given;
}

// Adds the products of a turn of 16 rows.
template <typename P, typename A, typename B>
inline void near_add(thread const P &p, thread const A &first, thread const B &second, uint turn,
                     uint lane, uint signs, thread float *totals) {
    byte_pair w[2];
    const auto one = first.take(turn, lane % 4, signs, w[0]);
    const decltype(one) scales[2] = {one, second.take(turn, lane % 4, signs, w[1])};
    p.add(w, scales, turn, lane, totals);
}

// The rows of a lane, four: load() before x is there, multiply() after that.
template <typename N, typename Near, bool HasRoom> struct near_tiles {
    METAL_FUNC void load(thread const Near &, uint, uint, uint) {}
    template <typename P> METAL_FUNC void multiply(thread const P &p, thread const Near &near,
                                                   uint count, uint block, uint lane, uint signs,
                                                   thread float (&totals)[4]) const {
        typename N::lane_block own[4];
        for (uint i = 0; i < 4; i++)
            own[i].load(near.get_row(Near::get_slot(i, lane / 4)), block, lane % 4);
        for (uint turn = 0; turn < NEAR_TURNS; turn++)
            for (uint i = 0; i < 4; i += 2)
                near_add(p, own[i], own[i + 1], turn, lane, signs, totals + i);
        for (uint i = 0; i < 4; i++)
            totals[i] = own[i].finish(totals[i]);
    }
};

// Where there may be no room for the last of the four, it is loaded before x is there, and used first.
template <typename N, typename Near> struct near_tiles<N, Near, false> {
    typename N::kept_block last;

    METAL_FUNC void load(thread const Near &near, uint count, uint block, uint lane) {
        const uint slot = Near::get_slot(3, lane / 4);
        if (slot < Near::room)
            last.load(near.get_row(slot), block, lane % 4);
        else
            last.load(near.get_far_row(slot, count), block, lane % 4);
    }
    template <typename P> METAL_FUNC void multiply(thread const P &p, thread const Near &near,
                                                   uint count, uint block, uint lane, uint signs,
                                                   thread float (&totals)[4]) const {
        typename N::lane_block own[3];
        for (uint i = 0; i < 3; i++)
            own[i].load(near.get_row(Near::get_slot(i, lane / 4)), block, lane % 4);
        for (uint turn = 0; turn < NEAR_TURNS; turn++)
            near_add(p, own[2], last, turn, lane, signs, totals + 2);
        for (uint turn = 0; turn < NEAR_TURNS; turn++)
            near_add(p, own[0], own[1], turn, lane, signs, totals);
        for (uint i = 0; i < 3; i++)
            totals[i] = own[i].finish(totals[i]);
        totals[3] = last.finish(totals[3]);
    }
};

// A thread block of 16 warps computes its share of the rows, at most 32. A warp has 256 columns of all
// of them, so in_dim is at most 4096. Two blocks, of this launch and of the next, are to find room on
// an SM: hence 1024.
template <typename N, bool accumulate> [[kernel, max_total_threads_per_threadgroup(1024)]] void
matvec_near_once(device const typename N::block *w [[buffer(0)]],
                 device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                 constant uint &out_dim [[buffer(3)]], constant uint &in_dim [[buffer(4)]],
                 uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]],
                 uint thread_index [[thread_index_in_threadgroup]],
                 uint sg [[simdgroup_index_in_threadgroup]],
                 uint lane [[thread_index_in_simdgroup]]) {
    typedef byte_products<NEAR_TURNS, N::has_offsets> products;
    typedef near_rows<N::once_rows, NEAR_TEAMS * N::block_bytes / 16> near_type;
    threadgroup uint2 digits[NEAR_TEAMS * products::memory];
    threadgroup float sums_of_x[NEAR_TEAMS * products::blocks];
    threadgroup float shared[NEAR_TEAMS * NEAR_ROWS];
    const near_share share(out_dim, group, groups);
    const uint count = share.count;
    const uint row_quads = in_dim / 256 * N::block_bytes / 16;
    const uint part = lane % 4;
    near_type near((device const uint4 *)w + size_t(share.first) * row_quads, row_quads);
    if (thread_index == 0)
        near.begin(count);
    if (thread_index < 32) {
        cuda::sync_warp();
        near.copy(count, thread_index);
    }
    near_expect_values(x, in_dim, group, groups, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint block = min(sg, in_dim / 256 - 1);
    device const float4 *values = (device const float4 *)(x + 256 * block);
    near_tiles<N, near_type, N::once_rows == NEAR_ROWS> mine;
    const uint signs = opaque(0x80808080u, in_dim + lane);
    float totals[4] = {};
    products p;
    p.digits = digits + sg * products::memory;
    p.sums_of_x = sums_of_x + sg * products::blocks;
    cuda::launch_dependents();
    cuda::wait_for_copies();
    mine.load(near, count, block, lane);
    cuda::wait_for_launch<1>();
    p.put(values[lane / 4 * 8 + part], values[lane / 4 * 8 + part + 4], lane);
    cuda::sync_warp();
    mine.multiply(p, near, count, block, lane, signs, totals);
    for (uint i = 0; i < 4; i++)
        totals[i] = p.finish(totals[i], lane);
    const float total = near_gather(totals, part);
    shared[sg * NEAR_ROWS + near_type::get_slot(part, lane / 4)] = sg > block ? 0.0f : total;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index < count) {
        float sum = 0.0f;
        for (uint team = 0; team < NEAR_TEAMS; team++)
            sum += shared[team * NEAR_ROWS + thread_index];
        put<accumulate>(y + share.first + thread_index, sum * N::get_unit());
    }
}

#define MATVEC_NEAR_ONCE(format)                                                                   \
    MATVEC_KERNEL("matvec_" #format "_near_once", matvec_near_once, format##_near, false)          \
    MATVEC_KERNEL("matvec_" #format "_accumulate_near_once", matvec_near_once, format##_near, true)

MATVEC_NEAR_ONCE(q4_0)
MATVEC_NEAR_ONCE(q4_k)
MATVEC_NEAR_ONCE(q6_k)
