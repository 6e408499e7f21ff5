// lanes: what happens when the lanes of a simdgroup have met: reductions, scans, shuffles, votes.
//
// Each function here is a `serve` of meet.h: it runs once for all lanes, with the values they
// posted and the mask of those that take part, and writes a result for each. simd.h gives them
// their MSL names. They are not inlined, so that a call in a kernel costs little code.
//
// Groups are 32 lanes (simd_*) or 4 (quad_*). Reductions go over a fixed tree with the identity in
// the place of absent lanes: the result depends on which lanes take part, never on scheduling.
#pragma once
#pragma clang system_header

#include "integer.h"
#include "meet.h"

#define ASSAY_SERVE static __attribute__((noinline, no_sanitize("thread", "undefined")))

namespace assay {

template <class V> struct scalar_of { using type = V; };
template <class T, int n> struct scalar_of<metal::vec<T, n>> { using type = T; };

// Types that lanes exchange: scalars and vectors.
template <class V> using if_lane_value = metal::enable_if_t<(count_of<V>::value > 0), int>;

// A source outside of the group, which cannot be had: the index that was asked for comes on top.
constexpr soft_u32 no_lane = SOFT_LANES;

// What a lane receives from one that takes no part: all ones, a NaN where it is a float.
template <class V> METAL_FUNC V absent() {
    if constexpr (metal::is_same_v<typename scalar_of<V>::type, bool>) {
        return V(true);
    } else {
        V v;
        __builtin_memset(&v, 0xff, sizeof v);
        return v;
    }
}

// ----------------------------------------------------------------------------- reductions, scans
// The identity leaves every value as it is, -0 and NaN included.
struct op_sum {
    template <class T> static METAL_FUNC T identity() {
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
    template <class T> static METAL_FUNC T identity() { return to<T>(1); }
    template <class T> static METAL_FUNC T apply(T a, T b) {
        // Twice the width: two ushort would be multiplied as int and overflow.
        if constexpr (metal::is_integral_v<T>)
            return static_cast<T>(static_cast<ulong>(a) * static_cast<ulong>(b));
        else
            return static_cast<T>(a * b);
    }
};
struct op_max {
    template <class T> static METAL_FUNC T identity() {
        return metal::is_integral_v<T> ? metal::numeric_limits<T>::lowest()
                                       : metal::numeric_limits<T>::quiet_NaN();
    }
    template <class T> static METAL_FUNC T apply(T a, T b) { return metal::max(a, b); }
};
struct op_min {
    template <class T> static METAL_FUNC T identity() {
        return metal::is_integral_v<T> ? metal::numeric_limits<T>::max()
                                       : metal::numeric_limits<T>::quiet_NaN();
    }
    template <class T> static METAL_FUNC T apply(T a, T b) { return metal::min(a, b); }
};
template <class T> using bits_for = metal::make_unsigned_t<T>;
struct op_and {
    template <class T> static METAL_FUNC T identity() { return absent<T>(); }
    template <class T> static METAL_FUNC T apply(T a, T b) {
        using U = bits_for<T>;
        return __builtin_bit_cast(
            T, static_cast<U>(__builtin_bit_cast(U, a) & __builtin_bit_cast(U, b)));
    }
};
struct op_or {
    template <class T> static METAL_FUNC T identity() { return to<T>(0); }
    template <class T> static METAL_FUNC T apply(T a, T b) {
        using U = bits_for<T>;
        return __builtin_bit_cast(
            T, static_cast<U>(__builtin_bit_cast(U, a) | __builtin_bit_cast(U, b)));
    }
};
struct op_xor {
    template <class T> static METAL_FUNC T identity() { return to<T>(0); }
    template <class T> static METAL_FUNC T apply(T a, T b) {
        using U = bits_for<T>;
        return __builtin_bit_cast(
            T, static_cast<U>(__builtin_bit_cast(U, a) ^ __builtin_bit_cast(U, b)));
    }
};

// The lanes' values as one run of scalars; absent lanes hold the identity. A vec<T, 3> has a fourth
// scalar, its padding, which is carried along.
template <class Op, class V> struct slots {
    using T = typename scalar_of<V>::type;
    static constexpr int width = sizeof(V) / sizeof(T);
    alignas(64) T value[SOFT_LANES * width];

    METAL_FUNC void fill(const V *in, soft_u32 party) {
        __builtin_memcpy(value, in, sizeof value);
        if (party == ~0u)
            return;
        for (int i = 0; i < SOFT_LANES * width; ++i) {
            const bool present = party >> (i / width) & 1;
            const T posted = value[i];
            value[i] = present ? posted : Op::template identity<T>();
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
    __attribute__((uninitialized)) slots<Op, V> s;
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
    __attribute__((uninitialized)) slots<Op, V> s;
    s.fill(in, party);
    using T = typename scalar_of<V>::type;
    T *result = reinterpret_cast<T *>(out);
    for (int first = 0; first < SOFT_LANES; first += group)
        for (int c = 0; c < s.width; ++c) {
            T sum = Op::template identity<T>();
            if constexpr (!inclusive)
                sum = Op::apply(sum, to<T>(metal::is_same_v<Op, op_sum> ? 0 : 1));
            for (int lane = first; lane < first + group; ++lane) {
                const T next = Op::apply(sum, s.value[lane * s.width + c]);
                result[lane * s.width + c] = inclusive ? next : sum;
                sum = next;
            }
        }
}

// ---------------------------------------------------------------------------------------- shuffle
template <class V> struct posted {
    V value;
    soft_u32 source;
};

#if defined(ASSAY_CHECKED)
// A finding of one of the lanes that met: the one that serves speaks for it.
METAL_FUNC void tell_of_lane(soft_u32 lane, soft_u32 what, soft_u64 value, const char *name) {
    soft_worker *w = soft_here();
    soft_simdgroup *g = w->running;
    const soft_u32 self = g->current;
    g->current = lane;
    w->checks->mishap(w, what, value, name, g->site[lane] + 1);
    g->current = self;
}

// Every lane's source must be there; of a broadcast, all lanes of a group must name the same one.
template <int group, bool broadcast, class V> ASSAY_SERVE void
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
        else if (broadcast && source != in[first].source)
            tell_of_lane(lane, SOFT_VARIES, source, name);
    }
}
#define ASSAY_CHECK_SOURCES(in, party, name) check_sources<group, broadcast>(in, party, name)
#else
#define ASSAY_CHECK_SOURCES(in, party, name) ((void)(name))
#endif

template <class V> ASSAY_SERVE void deliver(const posted<V> *in, V *out, soft_u32 party) {
    for (soft_u32 lane = 0; lane < SOFT_LANES; ++lane) {
        const soft_u32 source = in[lane].source;
        const bool present = source < SOFT_LANES && (party >> source & 1);
        out[lane] = present ? in[source].value : absent<V>();
    }
}

template <int group, bool broadcast = false, class V>
METAL_FUNC V take_from(V value, soft_u32 source, const char *name) {
    return meet<V>(posted<V>{value, source},
                   [name](const posted<V> *in, V *out, soft_u32 party)
                       __attribute__((always_inline, nodebug, no_sanitize("thread", "undefined"))) {
                           ASSAY_CHECK_SOURCES(in, party, name);
                           deliver<V>(in, out, party);
                       });
}
#undef ASSAY_CHECK_SOURCES

template <int group, class V> ASSAY_SERVE void deliver_first(const V *in, V *out, soft_u32 party) {
    for (soft_u32 lane = 0; lane < SOFT_LANES; ++lane) {
        const soft_u32 base = lane / group * group;
        const soft_u32 present = party >> base;
        const soft_u32 first = present ? static_cast<soft_u32>(__builtin_ctz(present)) : 0;
        out[lane] = in[(base + first) % SOFT_LANES];
    }
}

// Where a lane of a group takes its value from. Lanes that would reach over the edge keep theirs.
template <int group> METAL_FUNC soft_u32 source_at(soft_u32 index) {
    return index < group ? lane_index() / group * group + index : no_lane + index;
}
template <int group> METAL_FUNC soft_u32 source_xor(soft_u32 mask) {
    const soft_u32 lane = lane_index();
    return source_at<group>((lane % group) ^ mask);
}
template <int group> METAL_FUNC soft_u32 source_up(soft_u32 delta) {
    const soft_u32 lane = lane_index();
    return lane % group >= delta ? lane - delta : lane;
}
template <int group> METAL_FUNC soft_u32 source_down(soft_u32 delta) {
    const soft_u32 lane = lane_index();
    return lane % group + delta < group ? lane + delta : lane;
}
template <int group> METAL_FUNC soft_u32 source_rotate(soft_u32 delta) {
    const soft_u32 lane = lane_index();
    return lane / group * group + (lane + delta) % group;
}

// Shift in segments of `modulo` lanes; what comes in over the edge is taken from `filling`.
template <int group, class V> METAL_FUNC V shift_and_fill(V value, V filling, soft_u32 delta,
                                                         soft_u32 modulo, bool up,
                                                         const char *name) {
    const soft_u32 lane = lane_index();
    const soft_u32 place = lane % modulo;
    const soft_u32 source = lane - place + (up ? place - delta : place + delta) % modulo;
    const bool inside = up ? place >= delta : place + delta < modulo;
    const V shifted = take_from<group>(value, inside ? source : lane, name);
    const V filled = take_from<group>(filling, inside ? lane : source, name);
    return inside ? shifted : filled;
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

} // namespace assay
