// exchange: what happens when the lanes of a simdgroup have met: reductions, scans, shuffles, votes.
//
// Each `serve` here runs once for all lanes (meet.h), with the values they posted and the mask of
// those that take part, and writes a result for each. They are not inlined, so that a call in a
// kernel costs little code.
//
// Reductions go over a fixed tree with the identity in the place of absent lanes: the result
// depends on which lanes take part, never on scheduling.
#pragma once
#pragma clang system_header

#include "meet.h"

#define ASSAY_SERVE static __attribute__((noinline, no_sanitize("thread", "undefined")))

namespace assay {

// The lanes' values as one run of scalars; absent lanes hold the identity. A vec<T, 3> has a fourth
// scalar, its padding, which is carried along.
template <class Op, int group, class V> struct slots {
    using T = typename scalar_of<V>::type;
    static constexpr int width = sizeof(V) / sizeof(T);
    alignas(64) T value[SOFT_LANES * width];

    METAL_FUNC void fill(const V *in, soft_u32 party) {
        __builtin_memcpy(value, in, sizeof value);
        for (soft_u32 absent = ~party; absent; absent &= absent - 1) {
            const int lane = __builtin_ctz(absent), first = lane / group * group;
            const soft_u32 present = party >> first & (~0u >> (SOFT_LANES - group));
            const int other = present ? first + __builtin_ctz(present) : lane;
            for (int c = 0; c < width; ++c)
                value[lane * width + c] = Op::identity(value[other * width + c]);
        }
    }
    METAL_FUNC V get(soft_u32 lane) const {
        V v;
        __builtin_memcpy(&v, value + lane * width, sizeof v);
        return v;
    }
};

template <class Op, int group, class V>
ASSAY_SERVE void reduce(const V *in, V *out, soft_u32 party) {
    __attribute__((uninitialized)) slots<Op, group, V> s;
    s.fill(in, party);
    for (int step = group / 2; step > 0; step /= 2)
        for (int first = 0; first < SOFT_LANES; first += group)
            for (int i = first * s.width; i < (first + step) * s.width; ++i)
                s.value[i] = Op::apply(s.value[i], s.value[i + step * s.width]);
    for (soft_u32 lane = 0; lane < SOFT_LANES; ++lane)
        out[lane] = s.get(lane / group * group);
}

// Inclusive: up to and with the lane itself. Lane after lane: the order is part of the result.
template <class Op, int group, bool inclusive, class V>
ASSAY_SERVE void scan(const V *in, V *out, soft_u32 party) {
    __attribute__((uninitialized)) slots<Op, group, V> s;
    s.fill(in, party);
    using T = typename scalar_of<V>::type;
    T *result = reinterpret_cast<T *>(out);
    for (int first = 0; first < SOFT_LANES; first += group)
        for (int c = 0; c < s.width; ++c) {
            T sum = Op::identity(T());
            if constexpr (!inclusive)
                sum = Op::apply(sum, to<T>(metal::is_same_v<Op, op_sum> ? 0 : 1));
            for (int lane = first; lane < first + group; ++lane) {
                const T next = Op::apply(sum, s.value[lane * s.width + c]);
                result[lane * s.width + c] = inclusive ? next : sum;
                sum = next;
            }
        }
}

template <class Op, int group, class V> METAL_FUNC V reduce_lanes(V value) {
    return meet<V>(value, reduce<Op, group, V>);
}
template <class Op, int group, bool inclusive, class V> METAL_FUNC V scan_lanes(V value) {
    return meet<V>(value, scan<Op, group, inclusive, V>);
}

// ---------------------------------------------------------------------------------------- shuffle
template <class V> struct posted {
    V value;
    soft_u32 source;
#if defined(ASSAY_CHECKED)
    soft_u32 same; // what all lanes of the group must have given: a broadcast's lane, a delta, a mask
#endif
};

#if defined(ASSAY_CHECKED)
#define ASSAY_POST(value, source, same) {value, source, same}
// A finding of one of the lanes that met: the one that serves speaks for it.
METAL_FUNC void tell_of_lane(soft_u32 lane, soft_u32 what, soft_u64 value, const char *name) {
    soft_worker *w = soft_here();
    soft_simdgroup *g = w->running;
    const soft_u32 self = g->current;
    g->current = lane;
    w->checks->mishap(w, what, value, name, g->site[lane] + 1);
    g->current = self;
}

// Every lane's source must be there.
template <int group, class V> ASSAY_SERVE void
check_sources(const posted<V> *in, soft_u32 party, const char *name) {
    for (soft_u32 lane = 0; lane < SOFT_LANES; ++lane) {
        if (!(party >> lane & 1))
            continue;
        const soft_u32 source = in[lane].source, base = lane / group * group;
        const soft_u32 first = base + static_cast<soft_u32>(__builtin_ctz(party >> base));
        if (source >= no_lane)
            tell_of_lane(lane, SOFT_NO_LANE, source - no_lane, name);
        else if (!(party >> source & 1))
            tell_of_lane(lane, SOFT_INACTIVE, source, name);
        else if (in[lane].same != in[first].same)
            tell_of_lane(lane, SOFT_VARIES, source, name);
    }
}
#define ASSAY_CHECK_SOURCES(in, party, name) check_sources<group>(in, party, name)
#else
#define ASSAY_POST(value, source, same) {value, source}
#define ASSAY_CHECK_SOURCES(in, party, name) ((void)(name))
#endif

template <class V> ASSAY_SERVE void deliver(const posted<V> *in, V *out, soft_u32 party) {
    for (soft_u32 lane = 0; lane < SOFT_LANES; ++lane) {
        const soft_u32 source = in[lane].source;
        const bool present = source < SOFT_LANES && (party >> source & 1);
        if (present)
            __builtin_memcpy(&out[lane], &in[source].value, sizeof(V));
        else
            put_absent(&out[lane]);
    }
}

template <int group, class V>
METAL_FUNC V take_from(V value, soft_u32 source, const char *name, soft_u32 same) {
    (void)same;
    return meet<V>(posted<V> ASSAY_POST(value, source, same),
                   [name](const posted<V> *in, V *out, soft_u32 party)
                       __attribute__((always_inline, nodebug, no_sanitize("thread", "undefined"))) {
                           ASSAY_CHECK_SOURCES(in, party, name);
                           deliver<V>(in, out, party);
                       });
}
#undef ASSAY_CHECK_SOURCES
#undef ASSAY_POST

template <int group, class V> ASSAY_SERVE void deliver_first(const V *in, V *out, soft_u32 party) {
    for (soft_u32 lane = 0; lane < SOFT_LANES; ++lane) {
        const soft_u32 base = lane / group * group;
        const soft_u32 present = party >> base;
        const soft_u32 first = present ? static_cast<soft_u32>(__builtin_ctz(present)) : 0;
        out[lane] = in[(base + first) % SOFT_LANES];
    }
}

template <int group, class V> METAL_FUNC V take_first(V value) {
    return meet<V>(value, deliver_first<group, V>);
}

// ------------------------------------------------------------------------------------------ votes
// Posted as numbers: an absent lane's byte is a left-over that need not be a bool.
template <int group> ASSAY_SERVE void vote(const uchar *in, soft_u32 *out, soft_u32 party) {
    soft_u32 yes = 0;
    for (soft_u32 lane = 0; lane < SOFT_LANES; ++lane)
        yes |= (in[lane] & 1u) << lane;
    yes &= party;
    for (soft_u32 lane = 0; lane < SOFT_LANES; ++lane)
        out[lane] = yes >> (lane / group * group) & (~0u >> (SOFT_LANES - group));
}

// The votes of this lane's group, its first lane in bit 0.
template <int group> METAL_FUNC soft_u32 ask(bool expression) {
    return meet<soft_u32>(static_cast<uchar>(expression), vote<group>);
}

// --------------------------------------------------------------------------------------- barriers
ASSAY_SERVE void serve_nothing(const bool *, bool *, soft_u32) {}

METAL_FUNC void wait_for_threadgroup(soft_u32 flags) {
    park();
    ASSAY_CHECK_FENCE(flags, 1);
}
// The functions of matrices are for all 32 lanes, even where each lane does its own part.
METAL_FUNC void meet_for_matrix() {
#if defined(ASSAY_CHECKED)
    meet<bool, meeting_of_simd>(true, serve_nothing);
#endif
}
METAL_FUNC void wait_for_simdgroup(soft_u32 flags) {
    meet<bool, meeting_at_barrier>(true, serve_nothing);
    ASSAY_CHECK_FENCE(flags, 0);
}

} // namespace assay
