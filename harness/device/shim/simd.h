// simd: the simdgroup, quadgroup and barrier functions of MSL under their names.
//
// Which lane gives what to whom is in lanes.h; how it gets there is the target's (exchange.h). Every
// function here is inlined into the kernel, so that each call is a meeting of its own. simd_ and
// quad_ are one family, for groups of 32 and of 4 lanes.
#pragma once
#pragma clang system_header

#include "lanes.h"
#include "scopes.h"

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
