// vec: the vector types of MSL as classes: vec<T, 2>, vec<T, 3>, vec<T, 4>, and as_type.
//
// Owns layout, constructors, conversions, element access. Operators are in vec_ops.h, packed types
// in packed.h, swizzles come from swizzle.h.
//
// Classes and not the compiler's vector extension: that one needs macros for its constructors,
// which real kernels break, and a cast between int4 and float4 would copy bits. As plain structs of
// scalars they vectorise well (the optimiser sees each component), and constants are constexpr.
#pragma once
#pragma clang system_header

#include "hooks.h"
#include "types.h"

namespace metal {
template <class T, int n> struct vec;
template <class T, int n> struct packed_vec;
} // namespace metal

namespace assay {

template <class S> constexpr bool is_scalar = metal::is_arithmetic_v<S> || metal::is_enum_v<S>;
template <class... S> using if_scalars = metal::enable_if_t<(is_scalar<S> && ...), int>;
template <class A, class B> using if_different = metal::enable_if_t<!metal::is_same_v<A, B>, int>;

// How many components an argument of a constructor brings; 0: it is none that a vector takes.
template <class A> struct count_of { static constexpr int value = is_scalar<A> ? 1 : 0; };
template <class T, int n> struct count_of<metal::vec<T, n>> { static constexpr int value = n; };
template <class T, int n> struct count_of<metal::packed_vec<T, n>> {
    static constexpr int value = n;
};

// Constructors that join pieces: at least one vector, n components in all.
template <int n, class... A> using if_pieces =
    metal::enable_if_t<(sizeof...(A) > 1) && ((count_of<A>::value > 0) && ...) &&
                           (count_of<A>::value + ... + 0) == n && !(is_scalar<A> && ...),
                       int>;

template <class T> struct pieces {
    T value[4] = {};
    int used = 0;

    template <class A> METAL_FUNC constexpr void add(const A &a) {
        if constexpr (is_scalar<A>) {
            value[used++] = to<T>(a);
        } else {
            value[used++] = to<T>(a.x);
            value[used++] = to<T>(a.y);
            if constexpr (count_of<A>::value > 2)
                value[used++] = to<T>(a.z);
            if constexpr (count_of<A>::value > 3)
                value[used++] = to<T>(a.w);
        }
    }
};

template <class T, class... A> METAL_FUNC constexpr pieces<T> join(const A &...a) {
    pieces<T> p;
    (p.add(a), ...);
    return p;
}

// Where &x is no array: in constant expressions.
template <class V> METAL_FUNC constexpr auto &component(V &v, int i) {
    constexpr int n = count_of<metal::remove_cv_t<V>>::value;
    if constexpr (n > 3)
        if (i > 2)
            return v.w;
    if constexpr (n > 2)
        if (i > 1)
            return v.z;
    return i > 0 ? v.y : v.x;
}

// Whether a vector is handed to the compiler as one of its own for arithmetic. As four scalars the
// optimiser has to find them together again, and does not always. In checked mode they stay
// scalars, which is what its reports are about.
template <class T, int n> constexpr bool is_native =
#if defined(ASSAY_CHECKED)
    false;
#else
    (n == 4 && (metal::is_same_v<T, float> ||
                (metal::is_integral_v<T> && !metal::is_same_v<T, bool> && sizeof(T) <= 4))) ||
    (n == 2 && metal::is_same_v<T, half>); // GPUs have instructions for two halves
#endif
template <class T, int n> using native = T __attribute__((ext_vector_type(n)));

template <class T, int n> constexpr size_t vec_align = sizeof(T) * (n == 3 ? 4 : n);

} // namespace assay

#include "swizzle.h"

// What the three classes have in common.
// In checked mode a vector is copied by functions: calling one through a pointer that is not
// aligned as the type demands is something the compiler checks, and padding is not touched. They
// make vectors strangers to unions, so a kernel that has such unions is compiled with plain ones.
#if defined(ASSAY_CHECKED) && !defined(ASSAY_CHECKED_LESS)
#define ASSAY_VEC_COPY_2(to, from) to(x, from.x) to(y, from.y)
#define ASSAY_VEC_COPY_3(to, from) ASSAY_VEC_COPY_2(to, from) to(z, from.z)
#define ASSAY_VEC_COPY_4(to, from) ASSAY_VEC_COPY_3(to, from) to(w, from.w)
#define ASSAY_VEC_ASSIGN(member, value) member = value;
#define ASSAY_VEC_COPIES(n)                                                                        \
    METAL_FUNC constexpr vec(const vec &v_)                                                        \
        : vec(T(0)){ASSAY_VEC_COPY_##n(ASSAY_VEC_ASSIGN, v_)} METAL_FUNC constexpr vec &           \
          operator=(const vec &v_) {                                                               \
        ASSAY_VEC_COPY_##n(ASSAY_VEC_ASSIGN, v_) return *this;                                     \
    }
// Three components keep theirs also in a kernel with unions: they have padding.
#define ASSAY_VEC_COPY_OF_3 ASSAY_VEC_COPIES(3)
#if defined(ASSAY_PLAIN_VECTORS)
#define ASSAY_VEC_COPY_OF_2
#define ASSAY_VEC_COPY_OF_4
#else
#define ASSAY_VEC_COPY_OF_2 ASSAY_VEC_COPIES(2)
#define ASSAY_VEC_COPY_OF_4 ASSAY_VEC_COPIES(4)
#endif
#define ASSAY_VEC_COPY(n) ASSAY_VEC_COPY_OF_##n
#else
#define ASSAY_VEC_COPY(n)
#endif

#define ASSAY_VEC_COMMON(n)                                                                        \
    using assay_scalar = T;                                                                        \
    static constexpr int assay_count = n;                                                          \
                                                                                                   \
    vec() = default;                                                                               \
    ASSAY_VEC_COPY(n)                                                                              \
    template <class... A, assay::if_pieces<n, A...> = 0> METAL_FUNC constexpr vec(const A &...a_)  \
        : vec(assay::join<T>(a_...)) {}                                                            \
    METAL_FUNC constexpr T &operator[](int i) {                                                    \
        ASSAY_CHECK_COMPONENT(i, n);                                                               \
        return __builtin_is_constant_evaluated() ? assay::component(*this, i) : (&x)[i];           \
    }                                                                                              \
    METAL_FUNC constexpr const T &operator[](int i) const {                                        \
        ASSAY_CHECK_COMPONENT(i, n);                                                               \
        return __builtin_is_constant_evaluated() ? assay::component(*this, i) : (&x)[i];           \
    }                                                                                              \
    ASSAY_SWIZZLES(n)

namespace metal {

template <class T> struct alignas(assay::vec_align<T, 2>) vec<T, 2> {
    T x, y;

    ASSAY_VEC_COMMON(2)
    METAL_FUNC constexpr vec(T x_, T y_) : x(x_), y(y_) {}
    template <class A, class B, assay::if_scalars<A, B> = 0> METAL_FUNC constexpr vec(A x_, B y_)
        : x(assay::to<T>(x_)), y(assay::to<T>(y_)) {}
    template <class S, assay::if_scalars<S> = 0> METAL_FUNC constexpr vec(S s)
        : x(assay::to<T>(s)), y(x) {}
    template <class U, assay::if_different<T, U> = 0>
    METAL_FUNC constexpr explicit vec(const vec<U, 2> &v) : vec(v.x, v.y) {}
    template <class U, assay::if_different<T, U> = 0>
    METAL_FUNC constexpr explicit vec(const packed_vec<U, 2> &v) : vec(v.x, v.y) {}

  private:
    METAL_FUNC constexpr vec(const assay::pieces<T> &p) : vec(p.value[0], p.value[1]) {}
};

template <class T> struct alignas(assay::vec_align<T, 3>) vec<T, 3> {
    T x, y, z;

    ASSAY_VEC_COMMON(3)
    METAL_FUNC constexpr vec(T x_, T y_, T z_) : x(x_), y(y_), z(z_) {}
    template <class A, class B, class C, assay::if_scalars<A, B, C> = 0>
    METAL_FUNC constexpr vec(A x_, B y_, C z_)
        : x(assay::to<T>(x_)), y(assay::to<T>(y_)), z(assay::to<T>(z_)) {}
    template <class S, assay::if_scalars<S> = 0> METAL_FUNC constexpr vec(S s)
        : x(assay::to<T>(s)), y(x), z(x) {}
    template <class U, assay::if_different<T, U> = 0>
    METAL_FUNC constexpr explicit vec(const vec<U, 3> &v) : vec(v.x, v.y, v.z) {}
    template <class U, assay::if_different<T, U> = 0>
    METAL_FUNC constexpr explicit vec(const packed_vec<U, 3> &v) : vec(v.x, v.y, v.z) {}

  private:
    METAL_FUNC constexpr vec(const assay::pieces<T> &p) : vec(p.value[0], p.value[1], p.value[2]) {}
};

template <class T> struct alignas(assay::vec_align<T, 4>) vec<T, 4> {
    T x, y, z, w;

    ASSAY_VEC_COMMON(4)
    METAL_FUNC constexpr vec(T x_, T y_, T z_, T w_) : x(x_), y(y_), z(z_), w(w_) {}
    template <class A, class B, class C, class D, assay::if_scalars<A, B, C, D> = 0>
    METAL_FUNC constexpr vec(A x_, B y_, C z_, D w_)
        : x(assay::to<T>(x_)), y(assay::to<T>(y_)), z(assay::to<T>(z_)), w(assay::to<T>(w_)) {}
    // uint4 v = {a, b, c}: what a list does not name is zero.
    template <class A, class B, class C, assay::if_scalars<A, B, C> = 0>
    METAL_FUNC constexpr vec(A x_, B y_, C z_) : vec(x_, y_, z_, T(0)) {}
    template <class S, assay::if_scalars<S> = 0> METAL_FUNC constexpr vec(S s)
        : x(assay::to<T>(s)), y(x), z(x), w(x) {}
    template <class U, assay::if_different<T, U> = 0>
    METAL_FUNC constexpr explicit vec(const vec<U, 4> &v) : vec(v.x, v.y, v.z, v.w) {
        if constexpr (assay::is_native<T, 4> && assay::is_native<U, 4> && is_integral_v<U>)
            if (!__builtin_is_constant_evaluated())
                *this = __builtin_bit_cast(
                    vec, __builtin_convertvector(__builtin_bit_cast(assay::native<U, 4>, v),
                                                 assay::native<T, 4>));
    }
    template <class U, assay::if_different<T, U> = 0>
    METAL_FUNC constexpr explicit vec(const packed_vec<U, 4> &v) : vec(v.x, v.y, v.z, v.w) {}

  private:
    METAL_FUNC constexpr vec(const assay::pieces<T> &p)
        : vec(p.value[0], p.value[1], p.value[2], p.value[3]) {}
};

template <class T, class S> METAL_FUNC constexpr T as_type(const S &s) {
    static_assert(sizeof(T) == sizeof(S), "as_type needs two types of the same size");
#if defined(ASSAY_CHECKED)
    T t = T(); // vectors are copied by functions here, which bit_cast does not like
    __builtin_memcpy(static_cast<void *>(&t), &s, sizeof t);
    return t;
#else
    return __builtin_bit_cast(T, s);
#endif
}

} // namespace metal

#undef ASSAY_VEC_COMMON
