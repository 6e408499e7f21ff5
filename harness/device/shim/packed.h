// packed: vectors with the alignment of one element, packed_float3 and the like.
//
// They are for memory: every computation first turns one into a vec, which it does by itself.
#pragma once
#pragma clang system_header

#include "vec_ops.h"

#include "swizzle.h"

#define ASSAY_PACKED_COMMON(n)                                                                     \
    packed_vec() = default;                                                                        \
    METAL_FUNC constexpr T &operator[](int i) {                                                    \
        return __builtin_is_constant_evaluated() ? assay::component(*this, i) : (&x)[i];           \
    }                                                                                              \
    METAL_FUNC constexpr const T &operator[](int i) const {                                        \
        return __builtin_is_constant_evaluated() ? assay::component(*this, i) : (&x)[i];           \
    }                                                                                              \
    template <class A, class... B,                                                                 \
              enable_if_t<__is_constructible(vec<T, n>, const A &, const B &...) &&                \
                              !is_same_v<A, vec<T, n>> && !is_same_v<A, packed_vec<T, n>>,         \
                          int> = 0>                                                                \
    METAL_FUNC constexpr packed_vec(const A &a_, const B &...b_)                                   \
        : packed_vec(vec<T, n>(a_, b_...)) {}                                                      \
    ASSAY_SWIZZLES(n)

namespace metal {

template <class T> struct packed_vec<T, 2> {
    T x, y;

    ASSAY_PACKED_COMMON(2)
    METAL_FUNC constexpr packed_vec(vec<T, 2> v) : x(v.x), y(v.y) {}
    METAL_FUNC constexpr operator vec<T, 2>() const { return vec<T, 2>(x, y); }
};

template <class T> struct packed_vec<T, 3> {
    T x, y, z;

    ASSAY_PACKED_COMMON(3)
    METAL_FUNC constexpr packed_vec(vec<T, 3> v) : x(v.x), y(v.y), z(v.z) {}
    METAL_FUNC constexpr operator vec<T, 3>() const { return vec<T, 3>(x, y, z); }
};

template <class T> struct packed_vec<T, 4> {
    T x, y, z, w;

    ASSAY_PACKED_COMMON(4)
    METAL_FUNC constexpr packed_vec(vec<T, 4> v) : x(v.x), y(v.y), z(v.z), w(v.w) {}
    METAL_FUNC constexpr operator vec<T, 4>() const {
        if constexpr (assay::is_native<T, 4>)
            if (!__builtin_is_constant_evaluated())
                return __builtin_bit_cast(vec<T, 4>, *this);
        return vec<T, 4>(x, y, z, w);
    }
};

} // namespace metal

#undef ASSAY_PACKED_COMMON

namespace assay {

// The vec that takes part in a computation for A: itself, or a packed one unpacked; else none.
template <class A> struct unpacked { using type = void; };
template <class T, int n> struct unpacked<metal::vec<T, n>> { using type = metal::vec<T, n>; };
template <class T, int n> struct unpacked<metal::packed_vec<T, n>> {
    using type = metal::vec<T, n>;
};

// find_vector<void, A...>::type: the one vector type among arguments that are vectors (packed or
// not) and scalars. No such type if there is no vector, two kinds, or something else.
template <class V, class... A> struct find_vector { using type = V; };
template <> struct find_vector<void> {};
struct no_vector {};
template <class V, class A, class... B> struct find_vector<V, A, B...>
    : metal::conditional_t<
          is_scalar<A>, find_vector<V, B...>,
          metal::conditional_t<!metal::is_void_v<typename unpacked<A>::type> &&
                                   (metal::is_void_v<V> ||
                                    metal::is_same_v<V, typename unpacked<A>::type>),
                               find_vector<typename unpacked<A>::type, B...>, no_vector>> {};

template <class... A> using vector_of = typename find_vector<void, A...>::type;

template <class A> METAL_FUNC constexpr A unpack(const A &a) {
    return a;
}
template <class T, int n>
METAL_FUNC constexpr metal::vec<T, n> unpack(const metal::packed_vec<T, n> &a) {
    return a;
}

} // namespace assay

namespace metal {

#define ASSAY_PACKED_OPERATOR(op)                                                                  \
    template <class T, int n, class B>                                                             \
    METAL_FUNC constexpr auto operator op(const packed_vec<T, n> &a, const B &b)                   \
        ->decltype(assay::unpack(a) op assay::unpack(b)) {                                         \
        return assay::unpack(a) op assay::unpack(b);                                               \
    }                                                                                              \
    template <class T, int n, class A, enable_if_t<(assay::is_scalar<A>), int> = 0>                \
    METAL_FUNC constexpr vec<T, n> operator op(const A &a, const packed_vec<T, n> &b) {            \
        return a op assay::unpack(b);                                                              \
    }                                                                                              \
    template <class T, int n>                                                                      \
    METAL_FUNC constexpr vec<T, n> operator op(const vec<T, n> &a, const packed_vec<T, n> &b) {    \
        return a op assay::unpack(b);                                                              \
    }                                                                                              \
    template <class T, int n>                                                                      \
    METAL_FUNC constexpr vec<T, n> &operator op##=(vec<T, n> &a, const packed_vec<T, n> &b) {      \
        return a = a op assay::unpack(b);                                                          \
    }                                                                                              \
    template <class T, int n, class B>                                                             \
    METAL_FUNC constexpr packed_vec<T, n> &operator op##=(packed_vec<T, n> &a, const B &b) {       \
        return a = assay::unpack(a) op assay::unpack(b);                                           \
    }
ASSAY_PACKED_OPERATOR(+)
ASSAY_PACKED_OPERATOR(-)
ASSAY_PACKED_OPERATOR(*)
ASSAY_PACKED_OPERATOR(/)
ASSAY_PACKED_OPERATOR(%)
ASSAY_PACKED_OPERATOR(&)
ASSAY_PACKED_OPERATOR(|)
ASSAY_PACKED_OPERATOR(^)
#undef ASSAY_PACKED_OPERATOR

template <class T, int n> METAL_FUNC constexpr vec<T, n> operator-(const packed_vec<T, n> &a) {
    return -assay::unpack(a);
}

} // namespace metal
