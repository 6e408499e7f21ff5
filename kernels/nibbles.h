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
