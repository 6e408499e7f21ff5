// matvec_near: y = W x and y += W x for one token: rows in shared memory by bulk copies (TMA,
// bulk_rows.h), multiplied by tensor cores as bytes (mma_bytes.h). For GPUs that read weights faster
// than they decode them.
//
// N is a format by blocks of 256 columns, of which a turn takes 64:
//   N::block_bytes  of 256 columns; a row is whole uint4s
//   N::rows         for which there is room in shared memory: 32, or those after them are loaded
//                   first, from global memory
//   N::lane_block   the weights of a lane in a block of a row: load() loads what it keeps of them,
//                   take() has the bytes of a turn and returns their scale (mma_bytes.h), finish()
//                   makes a sum of such turns the lane's share of the block's
//   N::kept_block   the same in registers, where there is not room for all 32
//   N::scale        byte_scale, or byte_halves
//   N::get_unit     what a byte of 1 stands for, times its scale
//   N::has_offsets
#include <metal_stdlib>
using namespace metal;

#include "../product/few_words.h"
#include "../formats/q4_0.h"
#include "../formats/q4_k.h"
#include "../formats/q6_k.h"
#include "../product/row.h"
#include "../opaque.h"
#include "bulk_rows.h"
#include "mma_bytes.h"

enum : uint { NEAR_TEAMS = 16, NEAR_ROWS = 32, NEAR_TURNS = 4 };

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
        typename N::template lane_block<typename Near::row> own[4];
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
        typename N::template lane_block<typename Near::row> own[3];
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
        cuda::sync_warp();
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

// Formats ---------------------------------------------------------------------------------------

// A half and a signed byte of a row, counted from one of its words on.
inline float get_half(threadgroup const uint *at, int i) {
    return float(((threadgroup const half *)at)[i]);
}
inline float get_half(device const uint *at, int i) {
    return float(((device const half *)at)[i]);
}
inline int get_char(threadgroup const uint *at, int i) {
    return ((threadgroup const char *)at)[i];
}

// Q4_0: a lane's 8 weights of a block are 4 of its bytes,
// of which the higher nibble becomes 16 times the weight.
struct q4_0_near {
    typedef block_q4_0 block;
    typedef byte_scale scale;
    enum : uint { block_bytes = 144, rows = 32, has_offsets = false };

    static METAL_FUNC float get_unit() { return 0.0625f; }
    template <typename Row> struct lane_block {
        Row at;
        METAL_FUNC void load(Row row, uint i, uint part) { at = row + 36 * i + part; }
        METAL_FUNC scale take(uint turn, uint part, uint signs, thread byte_pair &w) const {
            const Row pair = at + 9 * turn;
            const uint words[2] = {q4_0_get_word(pair, 0), q4_0_get_word(pair, 1)};
            for (uint b = 0; b < 2; b++) {
                w.at[b][0] = get_lower_bytes(words[b], signs);
                w.at[b][1] = get_upper_bytes(words[b], signs);
            }
            return {get_half(pair, int(part / 2 * 9) - int(2 * part)), 0.0f};
        }
        METAL_FUNC float finish(float total) const { return total; }
    };
};

// Q4_K: a turn is parts 2i and 2i + 1, and a byte 16
// times the nibble less 8, which is added to the part's minimum.
struct q4_k_near {
    typedef block_q4_k block;
    typedef byte_scale scale;
    enum : uint { block_bytes = 144, rows = 32, has_offsets = true };

    static METAL_FUNC float get_unit() { return 0.0625f; }
    template <typename Row> struct lane_block {
        Row at;
        uint4 head; // d and dmin, and three words of scales
        METAL_FUNC void load(Row row, uint i, uint part) {
            head = *(threadgroup const uint4 *)(row + 36 * i);
            at = row + 36 * i + 4 + part;
        }
        METAL_FUNC scale take(uint turn, uint part, uint signs, thread byte_pair &w) const {
            for (uint side = 0; side < 2; side++) {
                const uint word = at[8 * turn + 4 * side];
                w.at[0][side] = get_lower_bytes(word, signs);
                w.at[1][side] = get_upper_bytes(word, signs);
            }
            return get_scale(turn, part);
        }
        // See q4_k::get_scale_and_min.
        METAL_FUNC scale get_scale(uint turn, uint part) const {
            const uint shift = 16 * (turn % 2) + part / 2 * 8;
            const uint scales[3] = {head.y, head.z, head.w};
            uint factor = scales[0] >> shift & 63u;
            uint least = scales[1] >> shift & 63u;
            if (turn >= 2) {
                factor = (scales[2] >> shift & 15u) | (scales[0] >> shift >> 2u & 48u);
                least = (scales[2] >> shift >> 4u & 15u) | (scales[1] >> shift >> 2u & 48u);
            }
            const float2 d = float2(as_type<half2>(head.x));
            const float each = d.x * float(factor);
            return {each, fma(128.0f, each, -16.0f * d.y * float(least))};
        }
        METAL_FUNC float finish(float total) const { return total; }
    };
};

// Q6_K: a byte is 4 times the weight less its 32. Blocks
// are only 2-byte aligned, and every other one begins within a word.
struct q6_k_near {
    typedef block_q6_k block;
    typedef byte_halves scale;
    enum : uint { block_bytes = 210, rows = 28, has_offsets = false };

    static METAL_FUNC float get_unit() { return 0.25f; }

    // 64 columns are two blocks of 32, b = 0 and 1. Bytes 64 * (turn / 2) + 32 * b have their lower
    // 4 bits, in the nibble that is turn % 2; the upper 2 are in bytes 128 + 32 * (turn / 2), four
    // times two bits each.
    template <typename B>
    static METAL_FUNC scale take_bytes(thread const B &from, uint turn, uint signs,
                                       thread byte_pair &w) {
        scale s;
        for (uint b = 0; b < 2; b++) {
            for (uint side = 0; side < 2; side++) {
                const uint four = from.get_word(4 * (turn / 2) + 2 * b + side);
                const uint two = from.get_word(8 + 2 * (turn / 2) + side)
                                 << (6 - 4 * (turn % 2) - 2 * b);
                w.at[b][side] =
                    (((turn % 2 ? four >> 2u : four << 2u) & 0x3C3C3C3Cu) | (two & 0xC0C0C0C0u)) ^
                    signs;
            }
            s.factors[b] = float(from.get_scale(turn, b));
        }
        return s;
    }
    template <typename Row> struct lane_block {
        Row at;
        uint part, shift;
        float d;

        METAL_FUNC void load(Row row, uint i, uint own_part) {
            part = own_part;
            shift = i % 2 * 16;
            at = row + 210 * i / 4 + part;
            d = get_half(row, 105 * i + 104);
        }
        METAL_FUNC uint get_word(uint i) const {
            return uint((ulong(at[4 * i + 1]) << 32u | at[4 * i]) >> shift);
        }
        METAL_FUNC int get_scale(uint turn, uint b) const {
            return get_char(at, 192 + 4 * turn + 2 * b + part / 2 - 4 * part + shift / 8);
        }
        METAL_FUNC scale take(uint turn, uint, uint signs, thread byte_pair &w) const {
            return take_bytes(*this, turn, signs, w);
        }
        METAL_FUNC float finish(float total) const { return d * total; }
    };
    // The same in registers.
    struct kept_block {
        uint words[12], scales[4]; // the lane's scales are bytes 0 and 2
        float d;

        template <typename Row> METAL_FUNC void load(Row row, uint i, uint part) {
            lane_block<Row> from;
            from.load(row, i, part);
            for (uint k = 0; k < 12; k++)
                words[k] = from.get_word(k);
            from.at += 48 - part;
            for (uint turn = 0; turn < 4; turn++) {
                const ulong two = ulong(from.at[turn + 1]) << 32u | from.at[turn];
                scales[turn] = uint(two >> (from.shift + part / 2 * 8));
            }
            d = from.d;
        }
        METAL_FUNC uint get_word(uint i) const { return words[i]; }
        METAL_FUNC int get_scale(uint turn, uint b) const {
            return as_type<char4>(scales[turn])[2 * b];
        }
        METAL_FUNC scale take(uint turn, uint, uint signs, thread byte_pair &w) const {
            return take_bytes(*this, turn, signs, w);
        }
        METAL_FUNC float finish(float total) const { return d * total; }
    };
};

#define MATVEC_NEAR(format)                                                                        \
    MATVEC_KERNEL("matvec_" #format "_near", matvec_near, format##_near, false)                    \
    MATVEC_KERNEL("matvec_" #format "_accumulate_near", matvec_near, format##_near, true)

MATVEC_NEAR(q4_0)
MATVEC_NEAR(q4_k)
MATVEC_NEAR(q6_k)
