// nibbles: weights of four bits as floats.
//
// A nibble n becomes a float without a conversion, which costs a GPU more than the multiplication:
// moved to the top of the mantissa below the exponent of 16, its bits are those of 16 + n.
#pragma once

#include "opaque.h"

// The bits of 16, for the functions below (opaque.h).
inline uint get_sixteen(uint some) {
    return opaque(0x41800000u, some);
}

// 16 + n of nibbles that begin at bit 19.
inline float4 sixteen_more(uint4 nibbles, uint sixteen) {
    return as_type<float4>((nibbles & 0x780000u) | sixteen);
}

// The same of the low and of the high nibbles of four bytes.
inline float4 sixteen_more_low(uint bytes, uint sixteen) {
    return sixteen_more(uint4(bytes << 19u, bytes << 11u, bytes << 3u, bytes >> 5u), sixteen);
}
inline float4 sixteen_more_high(uint bytes, uint sixteen) {
    return sixteen_more(uint4(bytes << 15u, bytes << 7u, bytes >> 1u, bytes >> 9u), sixteen);
}

// Or two at a time, in the halves of a word where they begin at bits 3 and 19. The upper one is the
// upper half of 16 + n and used as it is, with the lower half of the word in the rest of its
// mantissa: that makes it PAIR_MORE + m / 65536 larger, where m is the lower nibble. The lower one
// is moved up. Nothing is lost: in n * x + m * v the value v - x / 65536 is multiplied instead of
// v, and what is too much is known. There are two forms of the lower half: with that of an exponent
// there is less to do for half of the weights, and without it PAIR_MORE is 16 / 65536, so that what
// is too much is 16 * (x + v).
#define PAIR_MORE 0.031982421875f // 0x4180 / 2^19

struct pair_form {
    uint bits; // opaque.h
    uint up; // 65536: as a multiplication with something unknown where that is one instruction less
    uint rest; // of the exponent of the lower one
};
inline pair_form get_full_pairs(uint some) {
    const pair_form f = {opaque(0x41804180u, some), 65536u, 0u};
    return f;
}
inline pair_form get_even_pairs(uint some) {
    const pair_form f = {opaque(0x41800080u, some), opaque(65536u, some), 0x41000000u};
    return f;
}
inline void add_pair(uint nibbles, pair_form form, float lower_x, float upper_x,
                     thread float &dot) {
    const uint pair = (nibbles & 0x00780078u) | form.bits;
    dot = fma(as_type<float>(pair * form.up + form.rest), lower_x, dot);
    dot = fma(as_type<float>(pair), upper_x, dot);
}
// The nibbles of four bytes: the low ones times `low`, the high ones times `high`.
inline void add_pairs(uint bytes, pair_form form, float4 low, float4 high, thread float &low_dot,
                      thread float &high_dot) {
    add_pair(bytes << 3u, form, low.x, low.z, low_dot);
    add_pair(bytes >> 1u, form, high.x, high.z, high_dot);
    add_pair(bytes >> 5u, form, low.y, low.w, low_dot);
    add_pair(bytes >> 9u, form, high.y, high.w, high_dot);
}

// Or two at a time as halves: as the last bits below the exponent of 1024 they are 1024 + n, or
// 1024 + 16 n, from which what is too much is subtracted exactly.

// The bits of two halves of 1024, for the functions below (opaque.h).
inline uint get_1024s(uint some) {
    return opaque(0x64006400u, some);
}

// n - 8 of the low and of the high nibbles of bytes 0 and 2.
inline half2 low_nibbles(uint bytes, uint exponents) {
    return as_type<half2>((bytes & 0x000F000Fu) | exponents) - half2(1032.0h);
}
inline half2 high_nibbles(uint bytes, uint exponents) {
    return as_type<half2>((bytes & 0x00F000F0u) | exponents) * half2(0.0625h) - half2(72.0h);
}

// Bytes 0 and 2 as they are.
inline half2 plain_bytes(uint bytes, uint exponents) {
    return as_type<half2>((bytes & 0x00FF00FFu) | exponents) - half2(1024.0h);
}
// The same for bytes that are signed: with the first bit turned they are q + 128.
inline uint get_signed_1024s(uint some) {
    return opaque(0x64806480u, some);
}
inline half2 signed_bytes(uint bytes, uint exponents) {
    return as_type<half2>((bytes & 0x00FF00FFu) ^ exponents) - half2(1152.0h);
}
