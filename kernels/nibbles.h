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

// Nibbles by way of halfs, two per operation: below the exponent of 1024, the bits of a nibble at bit 0
// are those of 1024 + n, and at bit 4 those of 1024 + 16 n. Both become n - 8, exactly. Of four bytes,
// the low and the high nibbles of bytes 0 and 2, and of 1 and 3.
struct nibbles_less_eight {
    half2 low_even, high_even, low_odd, high_odd;
    METAL_FUNC nibbles_less_eight(uint bytes, uint some) {
        const uint bits = opaque(0x64006400u, some);
        const uint odd = bytes >> 8u;
        low_even = as_type<half2>((bytes & 0x000F000Fu) | bits) - half2(1032.0h);
        low_odd = as_type<half2>((odd & 0x000F000Fu) | bits) - half2(1032.0h);
        high_even = as_type<half2>((bytes & 0x00F000F0u) | bits) * half2(0.0625h) - half2(72.0h);
        high_odd = as_type<half2>((odd & 0x00F000F0u) | bits) * half2(0.0625h) - half2(72.0h);
    }
};
