// bulk_formats: weights as bulk.h multiplies them, by blocks of 256 columns, of which a turn takes 64.
//   N::block_bytes  of 256 columns; a row is whole uint4s
//   N::pairs        pairs of rows of a tile: at most 8, or as many as there is shared memory for
//   N::long_pairs, N::long_blocks   the same of rows in chunks of columns, and the most blocks of a chunk
//   N::cluster_pairs, N::cluster_blocks   the same of rows that a cluster shares, and of a share
//   N::lane_block   the weights of a lane in a block of a row: load() finds them, take() has the bytes
//                   of a turn and returns their scale (mma_bytes.h), finish() makes a sum of such
//                   turns the lane's share of the block's
//   N::scale        byte_scale, unsigned_scale or byte_halves
//   N::get_unit     what a byte of 1 stands for, times its scale
//   N::turns_at_once  whose weights are loaded together
//   N::needs_registers  decoding takes so many registers that addresses are recomputed for each tile
//   N::has_offsets  there is a minimum of each 32 columns: get_offsets() has its bytes, and
//                   finish_offset() makes a sum of their products the same as finish()
//   N::has_neighbours  the 8 columns of a lane in 32 are neighbours, so that it loads their bytes, two words,
//                   at once, else two times 4 that are 16 apart. Which they are does not change a sum,
//                   if x is taken so too.
#pragma once

#include "../formats/q4_0.h"
#include "../formats/q4_k.h"
#include "../formats/q5_k.h"
#include "../formats/q6_k.h"
#include "../formats/q8_0.h"
#include "mma_bytes.h"

typedef threadgroup const uint *bulk_row;

// A half, two words and a signed byte of a row, counted from one of its words on.
inline float get_half(bulk_row at, int i) {
    return float(((threadgroup const half *)at)[i]);
}
inline uint2 get_words(bulk_row at, int i) {
    return *(threadgroup const uint2 *)(at + i);
}
inline int get_char(bulk_row at, int i) {
    return ((threadgroup const char *)at)[i];
}

// Pairs of rows, the same of short and of long ones: Q6_K alone has others.
template <uint Pairs> struct bulk_rows_of {
    enum : uint { pairs = Pairs, long_pairs = Pairs, cluster_pairs = Pairs };
    enum : uint { long_blocks = 14, cluster_blocks = 16 };
};

// Q4_0: a lane's 8 weights of a block are 4 of its bytes,
// of which the higher nibble becomes 16 times the weight.
struct q4_0_bulk : bulk_rows_of<8> {
    typedef block_q4_0 block;
    typedef byte_scale scale;
    enum : uint {
        block_bytes = 144,
        turns_at_once = 4,
        has_offsets = false,
        has_neighbours = false
    };
    enum : bool { needs_registers = false };

    static METAL_FUNC float get_unit() { return 0.0625f; }
    struct lane_block {
        bulk_row at;
        METAL_FUNC void load(bulk_row row, uint i, uint part) { at = row + 36 * i + part; }
        METAL_FUNC scale take(uint turn, uint part, uint signs, thread byte_pair &w) const {
            const bulk_row pair = at + 9 * turn;
            const uint words[2] = {q4_0_get_word(pair, 0), q4_0_get_word(pair, 1)};
            for (uint b = 0; b < 2; b++) {
                w.at[b][0] = get_lower_bytes(words[b], signs);
                w.at[b][1] = get_upper_bytes(words[b], signs);
            }
            return {get_half(pair, int(part / 2 * 9) - int(2 * part))};
        }
        METAL_FUNC float finish(float total, uint) const { return total; }
    };
};

// Q8_0: weights are bytes. Of the two blocks of a turn, the first is half a word off.
struct q8_0_bulk : bulk_rows_of<5> {
    typedef block_q8_0 block;
    typedef byte_scale scale;
    enum : uint {
        block_bytes = 272,
        turns_at_once = 4,
        has_offsets = false,
        has_neighbours = false
    };
    enum : bool { needs_registers = false };

    static METAL_FUNC float get_unit() { return 1.0f; }
    struct lane_block {
        bulk_row at;
        METAL_FUNC void load(bulk_row row, uint i, uint part) { at = row + 68 * i + part; }
        METAL_FUNC scale take(uint turn, uint part, uint, thread byte_pair &w) const {
            const bulk_row pair = at + 17 * turn;
            for (uint side = 0; side < 2; side++) {
                w.at[0][side] = pair[4 * side] >> 16u | pair[4 * side + 1] << 16u;
                w.at[1][side] = pair[9 + 4 * side];
            }
            return {get_half(pair, int(part / 2 * 17) - int(2 * part))};
        }
        METAL_FUNC float finish(float total, uint) const { return total; }
    };
};

// What Q4_K and Q5_K have at the beginning of a block: scales and minima of 8 parts of 32, 6 bits each
// (q4_k::get_scale_and_min). A turn is parts 2i and 2i + 1, of which a lane has a scale of one.
struct k_bulk_lane {
    bulk_row at;    // of the lane's nibbles
    uint d;         // and dmin
    uint scales[2]; // of turns 0 and 1, 2 and 3: 16 bits each
    uint minima;    // of parts 0 to 3, or 4 to 7 in odd lanes: bytes

    METAL_FUNC void load_head(bulk_row block, uint part) {
        const uint4 head = *(threadgroup const uint4 *)block;
        const uint own[2] = {head.y >> (part / 2 * 8), head.w >> (part / 2 * 8)};
        d = head.x;
        scales[0] = q4_k::get_four(own[0], own[1], false) & 0x00FF00FFu;
        scales[1] = q4_k::get_four(own[0], own[1], true) & 0x00FF00FFu;
        minima = q4_k::get_four(head.z, head.w >> 4u, part % 2);
    }
    METAL_FUNC unsigned_scale get_scale(uint turn) const {
        return {int(turn % 2 ? scales[turn / 2] >> 16u : scales[turn / 2] & 0xFFFFu)};
    }
    // unit: what a byte of 1 stands for.
    METAL_FUNC float scale_sum(float total, float unit) const {
        return unit * float(as_type<half2>(d).x) * total;
    }
    METAL_FUNC uint get_offsets() const { return minima; }
    METAL_FUNC float finish_offset(float total) const {
        return -32.0f * float(as_type<half2>(d).y) * total;
    }
};

// Q4_K: upper nibbles are 16 times the weight.
struct q4_k_bulk : bulk_rows_of<8> {
    typedef block_q4_k block;
    typedef unsigned_scale scale;
    enum : uint { block_bytes = 144, turns_at_once = 2, has_offsets = true, has_neighbours = true };
    enum : bool { needs_registers = true };

    static METAL_FUNC float get_unit() { return 1.0f; }
    struct lane_block : k_bulk_lane {
        METAL_FUNC void load(bulk_row row, uint i, uint part) {
            load_head(row + 36 * i, part);
            at = row + 36 * i + 4 + 2 * part;
        }
        METAL_FUNC scale take(uint turn, uint, uint, thread byte_pair &w) const {
            const uint2 words = get_words(at, 8 * turn);
            for (uint side = 0; side < 2; side++) {
                const uint word = words[side];
                w.at[0][side] = word & 0x0F0F0F0Fu;
                w.at[1][side] = word & 0xF0F0F0F0u;
            }
            return get_scale(turn);
        }
        METAL_FUNC float finish(float total, uint part) const {
            return scale_sum(total, part < 2 ? 1.0f : 0.0625f);
        }
    };
};

// Q5_K: as Q4_K, and a fifth bit of part p is bit p of the 32 bytes before the nibbles. Bytes of the second
// block are twice the weight, so that the fifth bits of both are where the same shift has them.
struct q5_k_bulk : bulk_rows_of<8> {
    typedef block_q5_k block;
    typedef unsigned_scale scale;
    enum : uint { block_bytes = 176, turns_at_once = 2, has_offsets = true, has_neighbours = true };
    enum : bool { needs_registers = true };

    static METAL_FUNC float get_unit() { return 1.0f; }
    struct lane_block : k_bulk_lane {
        uint2 fifth;
        METAL_FUNC void load(bulk_row row, uint i, uint part) {
            load_head(row + 44 * i, part);
            at = row + 44 * i + 12 + 2 * part;
            fifth = get_words(at, -8);
        }
        METAL_FUNC scale take(uint turn, uint, uint, thread byte_pair &w) const {
            const uint2 words = get_words(at, 8 * turn);
            for (uint side = 0; side < 2; side++) {
                const uint word = words[side];
                const uint bits =
                    turn < 2 ? fifth[side] << (4u - 2u * turn) : fifth[side] >> (2u * turn - 4u);
                w.at[0][side] = (word & 0x0F0F0F0Fu) | (bits & 0x10101010u);
                w.at[1][side] = (word >> 3u & 0x1E1E1E1Eu) | (bits & 0x20202020u);
            }
            return get_scale(turn);
        }
        METAL_FUNC float finish(float total, uint part) const {
            return scale_sum(total, part < 2 ? 1.0f : 0.5f);
        }
    };
};

// Q6_K: a byte is 4 times the weight less its 32. Blocks are only 2-byte aligned, and every other one,
// which is odd, begins within a word.
//
// 64 columns are two blocks of 32, b = 0 and 1. Bytes 64 * (turn / 2) + 32 * b have their lower 4 bits, in
// the nibble that is turn % 2; the upper 2 are in bytes 128 + 32 * (turn / 2), four times two bits each.
template <bool is_odd> struct q6_k_lane_block {
    bulk_row at;

    METAL_FUNC void load(bulk_row row, uint i, uint part) { at = row + 210 * i / 4 + part; }
    METAL_FUNC uint get_word(uint i) const {
        return is_odd ? uint((ulong(at[4 * i + 1]) << 32u | at[4 * i]) >> 16u) : at[4 * i];
    }
    METAL_FUNC byte_halves take(uint turn, uint part, uint signs, thread byte_pair &w) const {
        byte_halves s;
        for (uint b = 0; b < 2; b++) {
            for (uint side = 0; side < 2; side++) {
                const uint four = get_word(4 * (turn / 2) + 2 * b + side);
                const uint two = get_word(8 + 2 * (turn / 2) + side)
                                 << (6 - 4 * (turn % 2) - 2 * b);
                const uint lower = (turn % 2 ? four >> 2u : four << 2u) & 0x3C3C3C3Cu;
                w.at[b][side] = lower ^ signs ^ (two & 0xC0C0C0C0u);
            }
            s.factors[b] = get_char(at, 192 + 4 * turn + 2 * b + part / 2 - 4 * part + 2 * is_odd);
        }
        return s;
    }
    METAL_FUNC float finish(float total, uint part) const {
        return get_half(at, 104 - int(2 * part) + is_odd) * total;
    }
};
struct q6_k_bulk {
    typedef block_q6_k block;
    typedef byte_halves scale;
    enum : uint { block_bytes = 210, pairs = 7, has_offsets = false, has_neighbours = false };
    enum : uint { long_pairs = 5, long_blocks = 16, turns_at_once = 2 };
    enum : bool { needs_registers = true };
    enum : uint { cluster_pairs = 8, cluster_blocks = 14 };

    static METAL_FUNC float get_unit() { return 0.25f; }
};

// The lane_block of a format, of even or odd blocks.
template <typename N, bool is_odd> struct bulk_lanes { typedef typename N::lane_block type; };
template <bool is_odd> struct bulk_lanes<q6_k_bulk, is_odd> {
    typedef q6_k_lane_block<is_odd> type;
};
