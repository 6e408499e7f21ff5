// near_formats: weights as near.h multiplies them, by blocks of 256 columns, of which a turn takes 64.
//   N::block_bytes  of 256 columns; a row is whole uint4s
//   N::pairs        pairs of rows of a tile: at most 8, or as many as there is shared memory for
//   N::lane_block   the weights of a lane in a block of a row: load() finds them, take() has the bytes
//                   of a turn and returns their scale (mma_bytes.h), finish() makes a sum of such
//                   turns the lane's share of the block's
//   N::scale        byte_scale, or byte_halves
//   N::get_unit     what a byte of 1 stands for, times its scale
//   N::has_offsets
#pragma once

#include "../formats/q4_0.h"
#include "../formats/q4_k.h"
#include "../formats/q6_k.h"
#include "../formats/q8_0.h"
#include "../product/few_words.h"
#include "mma_bytes.h"

typedef threadgroup const uint *near_row;

// A half and a signed byte of a row, counted from one of its words on.
inline float get_half(near_row at, int i) {
    return float(((threadgroup const half *)at)[i]);
}
inline int get_char(near_row at, int i) {
    return ((threadgroup const char *)at)[i];
}

// Q4_0: a lane's 8 weights of a block are 4 of its bytes,
// of which the higher nibble becomes 16 times the weight.
struct q4_0_near {
    typedef block_q4_0 block;
    typedef byte_scale scale;
    enum : uint { block_bytes = 144, pairs = 8, has_offsets = false };

    static METAL_FUNC float get_unit() { return 0.0625f; }
    struct lane_block {
        near_row at;
        METAL_FUNC void load(near_row row, uint i, uint part) { at = row + 36 * i + part; }
        METAL_FUNC scale take(uint turn, uint part, uint signs, thread byte_pair &w) const {
            const near_row pair = at + 9 * turn;
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

// Q8_0: weights are bytes. Of the two blocks of a turn, the first is half a word off.
struct q8_0_near {
    typedef block_q8_0 block;
    typedef byte_scale scale;
    enum : uint { block_bytes = 272, pairs = 5, has_offsets = false };

    static METAL_FUNC float get_unit() { return 1.0f; }
    struct lane_block {
        near_row at;
        METAL_FUNC void load(near_row row, uint i, uint part) { at = row + 68 * i + part; }
        METAL_FUNC scale take(uint turn, uint part, uint, thread byte_pair &w) const {
            const near_row pair = at + 17 * turn;
            for (uint side = 0; side < 2; side++) {
                w.at[0][side] = pair[4 * side] >> 16u | pair[4 * side + 1] << 16u;
                w.at[1][side] = pair[9 + 4 * side];
            }
            return {get_half(pair, int(part / 2 * 17) - int(2 * part)), 0.0f};
        }
        METAL_FUNC float finish(float total) const { return total; }
    };
};

// Q4_K: a turn is parts 2i and 2i + 1, and a byte 16
// times the nibble less 8, which is added to the part's minimum.
struct q4_k_near {
    typedef block_q4_k block;
    typedef byte_scale scale;
    enum : uint { block_bytes = 144, pairs = 8, has_offsets = true };

    static METAL_FUNC float get_unit() { return 0.0625f; }
    struct lane_block {
        near_row at;
        uint4 head; // d and dmin, and three words of scales
        METAL_FUNC void load(near_row row, uint i, uint part) {
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
    enum : uint { block_bytes = 210, pairs = 6, has_offsets = false };

    static METAL_FUNC float get_unit() { return 0.25f; }

    // 64 columns are two blocks of 32, b = 0 and 1. Bytes 64 * (turn / 2) + 32 * b have their lower
    // 4 bits, in the nibble that is turn % 2; the upper 2 are in bytes 128 + 32 * (turn / 2), four
    // times two bits each.
    struct lane_block {
        near_row at;
        uint part, shift;
        float d;

        METAL_FUNC void load(near_row row, uint i, uint own_part) {
            part = own_part;
            shift = i % 2 * 16;
            at = row + 210 * i / 4 + part;
            d = float(as_type<half2>(row[(105 * i + 104) / 2])[i % 2]);
        }
        METAL_FUNC uint get_word(uint i) const {
            return uint((ulong(at[4 * i + 1]) << 32u | at[4 * i]) >> shift);
        }
        METAL_FUNC scale take(uint turn, uint, uint signs, thread byte_pair &w) const {
            scale s;
            for (uint b = 0; b < 2; b++) {
                for (uint side = 0; side < 2; side++) {
                    const uint four = get_word(4 * (turn / 2) + 2 * b + side);
                    const uint two = get_word(8 + 2 * (turn / 2) + side)
                                     << (6 - 4 * (turn % 2) - 2 * b);
                    const uint lower = (turn % 2 ? four >> 2u : four << 2u) & 0x3C3C3C3Cu;
                    w.at[b][side] = (lower | (two & 0xC0C0C0C0u)) ^ signs;
                }
                s.factors[b] =
                    float(get_char(at, 192 + 4 * turn + 2 * b + part / 2 - 4 * part + shift / 8));
            }
            return s;
        }
        METAL_FUNC float finish(float total) const { return d * total; }
    };
};
