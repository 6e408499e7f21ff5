// matvec_near: y = W x and y += W x for one token, of rows that are brought near (near.h), multiplied as
// bytes (bytes.h). For GPUs that read weights faster than they decode them. Needs matvec_rows.h.
//
// N is a format by blocks of 256 columns, of which a turn takes 64:
//   N::block_bytes  of 256 columns; a row is whole uint4s
//   N::rows         for which there is room near (near.h)
//   N::lane_block   where the weights of a lane in a block of a row are, and what it keeps of it: find()
//                   finds them, take() has the bytes of a turn and returns their scale (bytes.h)
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

// A threadgroup of 16 simdgroups computes its share of the rows (near.h), at most 32. A simdgroup has 256
// columns of all of them, so in_dim is at most 4096. Two threadgroups, of this launch and of the next,
// are to find room on a core: hence 1024.
template <typename N, bool accumulate> [[kernel, max_total_threads_per_threadgroup(1024)]] void
matvec_near(device const typename N::block *w [[buffer(0)]], device const float *x [[buffer(1)]],
            device float *y [[buffer(2)]], constant uint &out_dim [[buffer(3)]],
            constant uint &in_dim [[buffer(4)]], constant uint &rows [[buffer(6)]],
            uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]],
            uint thread_index [[thread_index_in_threadgroup]],
            uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    typedef byte_products<NEAR_TURNS, N::has_offsets> products;
    typedef near_rows<N::rows, NEAR_TEAMS * N::block_bytes / 16> near_type;
    enum : uint { tiles = N::rows == NEAR_ROWS ? 2 : 1 }; // of 16 rows, at once
    threadgroup uint2 digits[NEAR_TEAMS * products::memory];
    threadgroup float2 powers[NEAR_TEAMS * products::blocks];
    threadgroup float shared[NEAR_TEAMS * NEAR_ROWS];
    const near_share share(rows, out_dim, group, groups);
    const uint count = share.count;
    const uint row_quads = in_dim / 256 * N::block_bytes / 16;
    const uint part = lane % 4;
    near_type near((device const uint4 *)w + size_t(share.first) * row_quads, row_quads);
    near.start(count, thread_index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    device const float4 *mine = (device const float4 *)(x + 256 * min(sg, in_dim / 256 - 1));
    EARLY_COPIES(1);
    const float4 first = mine[lane / 4 * 8 + part];
    const float4 last = mine[lane / 4 * 8 + part + 4];
    const uint signs = opaque(0x80808080u, in_dim + lane);
    float totals[4] = {};
    products p;
    p.digits = digits + sg * products::memory;
    p.powers = powers + sg * products::blocks;
    p.put(first, last, lane);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    near.wait();
    for (uint tile = 0; tile < 2; tile += tiles) {
        if (tile > 0)
            near.go_on(count, thread_index);
        if (sg >= in_dim / 256)
            continue;
        typename N::template lane_block<typename near_type::row> own[tiles][2];
        for (uint i = 0; i < tiles; i++)
            for (uint r = 0; r < 2; r++) {
                const uint slot = 16 * (tile + i) + 8 * r + lane / 4;
                own[i][r].find(near.get_row(min(slot, count - 1)), sg, part);
            }
        for (uint turn = 0; turn < NEAR_TURNS; turn++)
            for (uint i = 0; i < tiles; i++) {
                byte_pair w[2];
                const typename N::scale scales[2] = {own[i][0].take(turn, part, signs, w[0]),
                                                     own[i][1].take(turn, part, signs, w[1])};
                p.add(w, scales, turn, lane, totals + 2 * (tile + i));
            }
    }
    for (uint i = 0; i < 4; i++)
        totals[i] *= p.get_factor(lane);
    shared[sg * NEAR_ROWS + 8 * part + lane / 4] = near_gather(totals, part);
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
