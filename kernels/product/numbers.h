// numbers: formats in blocks of 32 weights as halves that are whole numbers, beside the scale of a block: for
// matrix.h. Numbers of up to 8 bits are exact as halves, which a weight, d n + m, is not.
//
// Two threads decode a block, 16 numbers each.
#pragma once

#include "../formats/formats.h"

// Four bits, each as bit 4 of a byte.
inline uint spread_fifth(uint bits) {
    return (bits & 15u) * 0x00204081u << 4u & 0x10101010u;
}

// What a thread keeps of a block until it decodes it.
struct number_bits {
    ushort q[8], fifth;
    half scale; // or the minimum
};

// Nibbles: low ones, or high ones. B: a block. What stands for 0 is `middle`, if there is no minimum.
template <typename B, bool HasFifth, bool HasMinimum, uint middle> struct nibble_numbers {
    typedef B block;
    enum : uint { centre = middle, has_minimum = HasMinimum };
    static METAL_FUNC ushort take(device const B *b, uint i, uint) {
        return ((device const ushort *)b->qs)[i];
    }
    static METAL_FUNC uint get(thread const number_bits &n, uint i, uint lane) {
        const uint low = (n.q[2 * i] | uint(n.q[2 * i + 1]) << 16u) >> (4u * lane) & 0x0F0F0F0Fu;
        return HasFifth ? low | spread_fifth(n.fifth >> (4 * i)) : low;
    }
};
struct byte_numbers {
    typedef block_q8_0 block;
    enum : uint { centre = 128, has_minimum = 0 };
    static METAL_FUNC ushort take(device const block *b, uint i, uint lane) {
        return ((device const ushort *)b->qs)[8 * lane + i];
    }
    static METAL_FUNC uint get(thread const number_bits &n, uint i, uint) {
        return (n.q[2 * i] | uint(n.q[2 * i + 1]) << 16u) ^ 0x80808080u;
    }
};
typedef nibble_numbers<block_q4_0, false, false, 8> q4_0_numbers;
typedef nibble_numbers<block_q4_1, false, true, 0> q4_1_numbers;
typedef nibble_numbers<block_q5_0, true, false, 16> q5_0_numbers;
typedef nibble_numbers<block_q5_1, true, true, 0> q5_1_numbers;
typedef byte_numbers q8_0_numbers;

// Fifth bits and the minimum, of blocks that have them.
template <typename B> METAL_FUNC ushort get_fifth(device const B *, uint) {
    return ushort(0);
}
METAL_FUNC ushort get_fifth(device const block_q5_0 *b, uint lane) {
    return b->qh[lane];
}
METAL_FUNC ushort get_fifth(device const block_q5_1 *b, uint lane) {
    return b->qh[lane];
}
template <typename B> METAL_FUNC half get_scale(device const B *b, uint) {
    return b->d;
}
METAL_FUNC half get_scale(device const block_q4_1 *b, uint lane) {
    return (&b->d)[lane];
}
METAL_FUNC half get_scale(device const block_q5_1 *b, uint lane) {
    return (&b->d)[lane];
}

// Two bytes as halves: below the exponent of 1024, a whole number is added to it.
inline half2 get_halves(uint two, uint centre) {
    const uint bits = (two & 0xFFu) | (two & 0xFF00u) << 8u | 0x64006400u;
    return as_type<half2>(bits) - half2(half(float(1024 + centre)));
}

// As tile.h reads a format. A row of 32 halves is followed by its scale and its minimum.
template <typename F> struct tile_numbers {
    typedef typename F::block block;
    enum : uint { values = 32, lanes = 2, has_minimum = F::has_minimum };
    typedef number_bits part;
    static METAL_FUNC part fetch(device const block *row, uint step, uint, uint lane) {
        device const block *b = row + step;
        part p;
        for (uint i = 0; i < 8; i++)
            p.q[i] = F::take(b, i, lane);
        p.fifth = get_fifth(b, lane);
        p.scale = get_scale(b, lane);
        return p;
    }
    static METAL_FUNC void put(part p, uint lane, threadgroup float4 *at) {
        threadgroup half4 *to = (threadgroup half4 *)at;
        for (uint i = 0; i < 4; i++) {
            const uint four = F::get(p, i, lane);
            to[4 * lane + i] =
                half4(get_halves(four, F::centre), get_halves(four >> 16u, F::centre));
        }
        if (has_minimum || lane == 0)
            ((threadgroup half *)at)[32 + lane] = p.scale;
    }
};
