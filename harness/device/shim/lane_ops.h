// lane_ops: what simdgroup functions are made of, whatever the lanes run on: which values they take,
// the operations of reductions and scans, what stands for a lane that takes no part.
#pragma once
#pragma clang system_header

#include "../msl/limits.h"
#include "integer.h"

namespace assay {

template <class V> struct scalar_of { using type = V; };
template <class T, int n> struct scalar_of<metal::vec<T, n>> { using type = T; };

// Types that lanes exchange: scalars and vectors.
template <class V> using if_lane_value = metal::enable_if_t<(count_of<V>::value > 0), int>;

constexpr uint no_lane = MSL_LANES;

// What a lane receives from one that takes no part: all ones, a NaN where it is a float. Written and
// chosen as bytes: to the compiler of fast math a NaN is a value that cannot be.
template <class V> METAL_FUNC void put_absent(V *at) {
    __builtin_memset(at, metal::is_same_v<typename scalar_of<V>::type, bool> ? 1 : 0xff, sizeof(V));
}

// ----------------------------------------------------------------------------- reductions, scans
// The identity leaves every value as it is, -0 and NaN included. Where a value combined with itself
// is itself, that of any lane that takes part will do.
struct op_sum {
    template <class T> static METAL_FUNC T identity(T) {
        return metal::is_integral_v<T> ? to<T>(0) : to<T>(-0.0f);
    }
    template <class T> static METAL_FUNC T apply(T a, T b) {
        if constexpr (metal::is_integral_v<T>)
            return static_cast<T>(static_cast<metal::make_unsigned_t<T>>(a) +
                                  static_cast<metal::make_unsigned_t<T>>(b));
        else
            return static_cast<T>(a + b);
    }
};
struct op_product {
    template <class T> static METAL_FUNC T identity(T) { return to<T>(1); }
    template <class T> static METAL_FUNC T apply(T a, T b) {
        // Twice the width: two ushort would be multiplied as int and overflow.
        if constexpr (metal::is_integral_v<T>)
            return static_cast<T>(static_cast<ulong>(a) * static_cast<ulong>(b));
        else
            return static_cast<T>(a * b);
    }
};
#define ASSAY_CHOICE(name)                                                                         \
    struct op_##name {                                                                             \
        template <class T> static METAL_FUNC T identity(T present) { return present; }             \
        template <class T> static METAL_FUNC T apply(T a, T b) { return metal::name(a, b); }       \
    };
ASSAY_CHOICE(max)
ASSAY_CHOICE(min)
#undef ASSAY_CHOICE

#define ASSAY_BITWISE(name, op, neutral)                                                           \
    struct op_##name {                                                                             \
        template <class T> static METAL_FUNC T identity(T present) { return neutral; }             \
        template <class T> static METAL_FUNC T apply(T a, T b) {                                   \
            using U = metal::make_unsigned_t<T>;                                                   \
            return __builtin_bit_cast(                                                             \
                T, static_cast<U>(__builtin_bit_cast(U, a) op __builtin_bit_cast(U, b)));          \
        }                                                                                          \
    };
ASSAY_BITWISE(and, &, present)
ASSAY_BITWISE(or, |, present)
ASSAY_BITWISE(xor, ^, to<T>(0))
#undef ASSAY_BITWISE

} // namespace assay
