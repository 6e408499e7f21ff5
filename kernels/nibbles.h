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

// Or two at a time, as the halves of a word whose nibbles begin at bits 3 and 19: each is the upper
// half of 16 + n. The lower one is moved up before it is used. The upper one is used as it is, with
// the lower one as the rest of its mantissa, which makes it larger by PAIR_MORE + m / 65536, where m
// is the other nibble. That is no loss: the first part is known, and for the second x / 65536 is
// taken from the value that m is multiplied with, where x is that of n.
#define PAIR_MORE 0.031982421875f // 0x4180 / 2^19

inline uint get_pair_of_sixteens(uint some) {
    return opaque(0x41804180u, some);
}
inline void add_pair(uint nibbles, uint sixteens, float lower_x, float upper_x, thread float &dot) {
    const uint pair = (nibbles & 0x00780078u) | sixteens;
    dot = fma(as_type<float>(pair << 16u), lower_x, dot);
    dot = fma(as_type<float>(pair), upper_x, dot);
}
// The nibbles of four bytes: the low ones times `low`, the high ones times `high`.
inline void add_pairs(uint bytes, uint sixteens, float4 low, float4 high, thread float &low_dot,
                      thread float &high_dot) {
    add_pair(bytes << 3u, sixteens, low.x, low.z, low_dot);
    add_pair(bytes >> 1u, sixteens, high.x, high.z, high_dot);
    add_pair(bytes >> 5u, sixteens, low.y, low.w, low_dot);
    add_pair(bytes >> 9u, sixteens, high.y, high.w, high_dot);
}

// Or two at a time as halves: as the last bits below the exponent of 1024 they are 1024 + n, or
// 1024 + 16 n, from which what is too much is subtracted exactly.

// The bits of two halves of 1024, for the functions below (opaque.h).
inline uint get_1024s(uint some) {
    return opaque(0x64006400u, some);
}

// n - zero of the low nibbles of bytes 0 and 2.
inline half2 low_nibbles(uint bytes, half zero, uint exponents) {
    return as_type<half2>((bytes & 0x000F000Fu) | exponents) - half2(1024.0h + zero);
}
// 16 (n - zero) of the high ones.
inline half2 high_nibbles(uint bytes, half zero, uint exponents) {
    return as_type<half2>((bytes & 0x00F000F0u) | exponents) - half2(1024.0h + 16.0h * zero);
}
// The same without the 16: less to do where products of both meet.
inline half2 high_nibbles_once(uint bytes, half zero, uint exponents) {
    return as_type<half2>((bytes & 0x00F000F0u) | exponents) * half2(0.0625h) - half2(64.0h + zero);
}

// Adds (n - zero) * x of four bytes' nibbles: the low ones times `low`, 16 times the high ones
// times `high`.
inline void add_nibbles(uint bytes, half zero, uint exponents, float4 low, float4 high,
                        thread float &low_dot, thread float &high_dot) {
    const uint odd = bytes >> 8u;
    const half2 a = low_nibbles(bytes, zero, exponents);
    const half2 b = low_nibbles(odd, zero, exponents);
    const half2 c = high_nibbles(bytes, zero, exponents);
    const half2 d = high_nibbles(odd, zero, exponents);
    low_dot = fma(float(a.x), low.x, low_dot);
    high_dot = fma(float(c.x), high.x, high_dot);
    low_dot = fma(float(b.x), low.y, low_dot);
    high_dot = fma(float(d.x), high.y, high_dot);
    low_dot = fma(float(a.y), low.z, low_dot);
    high_dot = fma(float(c.y), high.z, high_dot);
    low_dot = fma(float(b.y), low.w, low_dot);
    high_dot = fma(float(d.y), high.w, high_dot);
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
