// matvec_near: y = W x and y += W x for one token, of rows that are brought near (near.h),
// multiplied as bytes (bytes.h). For GPUs that read weights faster than they decode them. Needs
// matvec_rows.h.
//
// N is a format by blocks of 256 columns, of which a turn takes 64:
//   N::block_bytes  of 256 columns; a row is whole uint4s
//   N::rows         for which there is room near (near.h): 32, or those after them are loaded
//                   first, from where they are
//   N::lane_block   the weights of a lane in a block of a row: load() loads what it keeps of them,
//                   take() has the bytes of a turn and returns their scale (bytes.h), finish()
//                   makes a sum of such turns the lane's share of the block's
//   N::kept_block   the same in registers, where there is not room for all 32
//   N::scale        byte_scale, or byte_halves
//   N::get_unit     what a byte of 1 stands for, times its scale
//   N::has_offsets
#include "bytes.h"

#include "early.h"

#include "near.h"

#include "opaque.h"

enum : uint { NEAR_TEAMS = 16, NEAR_ROWS = 32, NEAR_TURNS = 4 };

// The sum of part i of `totals` over the four lanes of a row, for lane i of them.
inline float near_gather(thread const float (&totals)[4], uint part) {
    float two[2];
    for (uint i = 0; i < 2; i++) {
        const float lower = totals[i];
        const float upper = totals[2 + i];
        const float given = EXCHANGE(part & 2 ? lower : upper, 2);
        two[i] = (part & 2 ? upper : lower) + given;
    }
    const float given = EXCHANGE(part & 1 ? two[0] : two[1], 1);
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

// The rows of a lane, four (near.h): load() before x is there, multiply() after that.
template <typename N, typename Near, bool HasRoom> struct near_tiles {
    METAL_FUNC void load(thread const Near &, uint, uint, uint) {}
    template <typename P> METAL_FUNC void multiply(thread const P &p, thread const Near &near,
                                                   uint count, uint block, uint lane, uint signs,
                                                   thread float (&totals)[4]) const {
        typename N::template lane_block<typename Near::row> own[4];
        for (uint i = 0; i < 4; i++)
            own[i].load(near.get_row(Near::get_slot(i, lane / 4), count), block, lane % 4);
        for (uint turn = 0; turn < NEAR_TURNS; turn++)
            for (uint i = 0; i < 4; i += 2)
                near_add(p, own[i], own[i + 1], turn, lane, signs, totals + i);
        for (uint i = 0; i < 4; i++)
            totals[i] = own[i].finish(totals[i]);
    }
};

// Where the last of the four may not be near, it is loaded before x is there, and used first.
template <typename N, typename Near> struct near_tiles<N, Near, false> {
    typename N::kept_block last;

    METAL_FUNC void load(thread const Near &near, uint count, uint block, uint lane) {
        const uint slot = Near::get_slot(3, lane / 4);
        if (slot < Near::room)
            last.load(near.get_row(slot, count), block, lane % 4);
        else
            last.load(near.get_far_row(slot, count), block, lane % 4);
    }
    template <typename P> METAL_FUNC void multiply(thread const P &p, thread const Near &near,
                                                   uint count, uint block, uint lane, uint signs,
                                                   thread float (&totals)[4]) const {
        typename N::template lane_block<typename Near::row> own[3];
        for (uint i = 0; i < 3; i++)
            own[i].load(near.get_row(Near::get_slot(i, lane / 4), count), block, lane % 4);
        for (uint turn = 0; turn < NEAR_TURNS; turn++)
            near_add(p, own[2], last, turn, lane, signs, totals + 2);
        for (uint turn = 0; turn < NEAR_TURNS; turn++)
            near_add(p, own[0], own[1], turn, lane, signs, totals);
        for (uint i = 0; i < 3; i++)
            totals[i] = own[i].finish(totals[i]);
        totals[3] = last.finish(totals[3]);
    }
};

// A threadgroup of 16 simdgroups computes its share of the rows (near.h), at most 32. A simdgroup
// has 256 columns of all of them, so in_dim is at most 4096. Two threadgroups, of this launch and
// of the next, are to find room on a core: hence 1024.
template <typename N, bool accumulate> [[kernel, max_total_threads_per_threadgroup(1024)]] void
matvec_near(device const typename N::block *w [[buffer(0)]], device const float *x [[buffer(1)]],
            device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
            constant uint &in_dim [[buffer(4)]], constant uint &rows [[buffer(6)]],
            uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]],
            uint thread_index [[thread_index_in_threadgroup]],
            uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    typedef byte_products<NEAR_TURNS, N::has_offsets> products;
    typedef near_rows<N::rows, NEAR_TEAMS * N::block_bytes / 16> near_type;
    threadgroup uint2 digits[NEAR_TEAMS * products::memory];
    threadgroup float sums_of_x[NEAR_TEAMS * products::blocks];
    threadgroup float shared[NEAR_TEAMS * NEAR_ROWS];
    const near_share share(rows, out_dim, group, groups);
    const uint count = share.count;
    const uint row_quads = in_dim / 256 * N::block_bytes / 16;
    const uint part = lane % 4;
    near_type near((device const uint4 *)w + size_t(share.first) * row_quads, row_quads);
    if (thread_index == 0)
        near.begin(count);
    if (thread_index < 32) {
        TOGETHER();
        near.copy(count, thread_index);
    }
    near_expect_values(x, in_dim, group, groups, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint block = min(sg, in_dim / 256 - 1);
    device const float4 *values = (device const float4 *)(x + 256 * block);
    near_tiles<N, near_type, N::rows == NEAR_ROWS> mine;
    const uint signs = opaque(0x80808080u, in_dim + lane);
    float totals[4] = {};
    products p;
    p.digits = digits + sg * products::memory;
    p.sums_of_x = sums_of_x + sg * products::blocks;
    EARLY_NEXT();
    near.wait();
    mine.load(near, count, block, lane);
    EARLY_COPIES(1);
    p.put(values[lane / 4 * 8 + part], values[lane / 4 * 8 + part + 4], lane);
    TOGETHER();
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

#define MATVEC_NEAR(format)                                                                        \
    MATVEC_KERNEL("matvec_" #format "_near", matvec_near, format##_near, false)                    \
    MATVEC_KERNEL("matvec_" #format "_accumulate_near", matvec_near, format##_near, true)
