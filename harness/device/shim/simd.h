// simd: the simdgroup, quadgroup and barrier functions of MSL.
//
// Here is which values lanes exchange, with which operations, and which lane gives what to whom; how it
// gets there is the target's (exchange.h): reduce_lanes, scan_lanes, take_from, take_first, ask, and the
// barriers. Every function is inlined into the kernel, so that each call is a meeting of its own. simd_
// and quad_ are one family, for groups of 32 and of 4 lanes.
#pragma once
#pragma clang system_header

#include "../msl/limits.h"
#include "math.h"

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

#include "exchange.h"

namespace assay {

// Where a lane of a group takes its value from. Lanes that would reach over the edge keep theirs; a
// source outside the group is no_lane and more.
template <int group> METAL_FUNC uint source_at(uint index) {
    return index < group ? lane_index() / group * group + index : no_lane + index;
}
template <int group> METAL_FUNC uint source_xor(uint mask) {
    const uint lane = lane_index();
    return source_at<group>((lane % group) ^ mask);
}
template <int group> METAL_FUNC uint source_up(uint delta) {
    const uint lane = lane_index();
    return lane % group >= delta ? lane - delta : lane;
}
template <int group> METAL_FUNC uint source_down(uint delta) {
    const uint lane = lane_index();
    return lane % group + delta < group ? lane + delta : lane;
}
template <int group> METAL_FUNC uint source_rotate(uint delta) {
    const uint lane = lane_index();
    return lane / group * group + (lane + delta) % group;
}

// Shift in segments of `modulo` lanes; what comes in over the edge is taken from `filling`.
template <int group, class V> METAL_FUNC V shift_and_fill(V value, V filling, uint delta,
                                                          uint modulo, bool up, const char *name) {
    const uint lane = lane_index();
    const uint place = lane % modulo, same = delta | modulo << 16;
    const uint source = lane - place + (up ? place - delta : place + delta) % modulo;
    const bool inside = up ? place >= delta : place + delta < modulo;
    const V shifted = take_from<group>(value, inside ? source : lane, name, same);
    const V filled = take_from<group>(filling, inside ? lane : source, name, same);
    return inside ? shifted : filled;
}

} // namespace assay

#define ASSAY_REDUCE(prefix, group, name)                                                          \
    template <class T, assay::if_lane_value<T> = 0> METAL_FUNC T prefix##_##name(T data) {         \
        return assay::reduce_lanes<assay::op_##name, group>(data);                                 \
    }
#define ASSAY_SCAN(prefix, group, name)                                                            \
    template <class T, assay::if_lane_value<T> = 0>                                                \
    METAL_FUNC T prefix##_prefix_inclusive_##name(T data) {                                        \
        return assay::scan_lanes<assay::op_##name, group, true>(data);                             \
    }                                                                                              \
    template <class T, assay::if_lane_value<T> = 0>                                                \
    METAL_FUNC T prefix##_prefix_exclusive_##name(T data) {                                        \
        return assay::scan_lanes<assay::op_##name, group, false>(data);                            \
    }
#define ASSAY_SHUFFLE(function, group, source, same)                                               \
    template <class T, assay::if_lane_value<T> = 0> METAL_FUNC T function(T data, ushort n) {      \
        return assay::take_from<group>(data, assay::source, #function, same);                      \
    }
#define ASSAY_FILL(function, group, up)                                                            \
    template <class T, assay::if_lane_value<T> = 0>                                                \
    METAL_FUNC T function(T data, T filling_data, ushort delta, ushort modulo = group) {           \
        return assay::shift_and_fill<group>(data, filling_data, delta, modulo, up, #function);     \
    }

#define ASSAY_LANE_FUNCTIONS(prefix, group)                                                        \
    ASSAY_REDUCE(prefix, group, sum)                                                               \
    ASSAY_REDUCE(prefix, group, product)                                                           \
    ASSAY_REDUCE(prefix, group, max)                                                               \
    ASSAY_REDUCE(prefix, group, min)                                                               \
    ASSAY_REDUCE(prefix, group, and)                                                               \
    ASSAY_REDUCE(prefix, group, or)                                                                \
    ASSAY_REDUCE(prefix, group, xor)                                                               \
    ASSAY_SCAN(prefix, group, sum)                                                                 \
    ASSAY_SCAN(prefix, group, product)                                                             \
    ASSAY_SHUFFLE(prefix##_shuffle, group, source_at<group>(n), 0)                                 \
    ASSAY_SHUFFLE(prefix##_broadcast, group, source_at<group>(n), n)                               \
    ASSAY_SHUFFLE(prefix##_shuffle_xor, group, source_xor<group>(n), n)                            \
    ASSAY_SHUFFLE(prefix##_shuffle_up, group, source_up<group>(n), n)                              \
    ASSAY_SHUFFLE(prefix##_shuffle_down, group, source_down<group>(n), n)                          \
    ASSAY_SHUFFLE(prefix##_shuffle_rotate_up, group, source_rotate<group>(group - n % group), n)   \
    ASSAY_SHUFFLE(prefix##_shuffle_rotate_down, group, source_rotate<group>(n), n)                 \
    ASSAY_FILL(prefix##_shuffle_and_fill_up, group, true)                                          \
    ASSAY_FILL(prefix##_shuffle_and_fill_down, group, false)                                       \
    template <class T, assay::if_lane_value<T> = 0>                                                \
    METAL_FUNC T prefix##_broadcast_first(T data) {                                                \
        return assay::take_first<group>(data);                                                     \
    }                                                                                              \
                                                                                                   \
    class prefix##_vote {                                                                          \
      public:                                                                                      \
        typedef uint64_t vote_t;                                                                   \
        METAL_FUNC constexpr explicit prefix##_vote(vote_t v = 0) : votes(v) {}                    \
        METAL_FUNC constexpr explicit operator vote_t() const { return votes; }                    \
        METAL_FUNC constexpr bool all() const { return votes == ~0u >> (MSL_LANES - group); }      \
        METAL_FUNC constexpr bool any() const { return votes != 0; }                               \
                                                                                                   \
      private:                                                                                     \
        vote_t votes;                                                                              \
    };                                                                                             \
    METAL_FUNC prefix##_vote prefix##_ballot(bool expression) {                                    \
        return prefix##_vote(assay::ask<group>(expression));                                       \
    }                                                                                              \
    METAL_FUNC prefix##_vote prefix##_active_threads_mask() {                                      \
        return prefix##_ballot(true);                                                              \
    }                                                                                              \
    METAL_FUNC bool prefix##_any(bool expression) {                                                \
        return assay::ask<group>(expression) != 0;                                                 \
    }                                                                                              \
    METAL_FUNC bool prefix##_all(bool expression) {                                                \
        return assay::ask<group>(!expression) == 0;                                                \
    }                                                                                              \
    METAL_FUNC bool prefix##_is_first() {                                                          \
        const uint place = assay::lane_index() % group;                                            \
        const uint active = assay::ask<group>(true);                                               \
        return place == static_cast<uint>(__builtin_ctz(active));                                  \
    }

namespace metal {

ASSAY_LANE_FUNCTIONS(simd, 32)
ASSAY_LANE_FUNCTIONS(quad, 4)

// --------------------------------------------------------------------------------------- barriers
#define ASSAY_BARRIER(group, ...)                                                                  \
    METAL_FUNC void group##_barrier(mem_flags flags __VA_ARGS__) {                                 \
        assay::wait_for_##group(static_cast<uint>(flags));                                         \
    }
#define ASSAY_BARRIERS(group)                                                                      \
    ASSAY_BARRIER(group)                                                                           \
    ASSAY_BARRIER(group, , thread_scope)                                                           \
    ASSAY_BARRIER(group, , memory_scope)
ASSAY_BARRIERS(threadgroup)
ASSAY_BARRIERS(simdgroup)
#undef ASSAY_BARRIERS
#undef ASSAY_BARRIER

} // namespace metal

#undef ASSAY_REDUCE
#undef ASSAY_SCAN
#undef ASSAY_SHUFFLE
#undef ASSAY_FILL
#undef ASSAY_LANE_FUNCTIONS
