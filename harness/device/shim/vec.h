// vec: the vector types of MSL as classes: vec<T, 2>, vec<T, 3>, vec<T, 4>, their operators, as_type,
// and packed vectors, which have the alignment of one element. Swizzles come from swizzle.h.
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

template <class T> struct alignas(assay::vec_align<T, 2>) vec<T, 2> : assay::operators::of_vectors {
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

template <class T> struct alignas(assay::vec_align<T, 3>) vec<T, 3> : assay::operators::of_vectors {
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

template <class T> struct alignas(assay::vec_align<T, 4>) vec<T, 4> : assay::operators::of_vectors {
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

// Operators: component by component, and of a vector with a scalar.
//
// A scalar operand takes the vector's element type first (MSL splats it), so half4 * 2 stays half4;
// a float beside an integer vector is refused, as it would lose its fraction. Shift counts are
// taken modulo the width of the element, as MSL defines.
//
// Operands are references: as a value four integers are handed over as two of 64 bits, also to a
// function that is inlined, and do not always find together again.
namespace assay {

// Can scalar S stand beside a vector of T?
template <class T, class S> using if_splats =
    metal::enable_if_t<is_scalar<S> && !(metal::is_integral_v<T> && metal::is_floating_point_v<S>),
                       int>;

// V(f(a.x, b.x...), f(a.y, b.y...)...)
template <class V, class F, class... A> METAL_FUNC constexpr V each(F f, const A &...a) {
    if constexpr (V::assay_count == 2)
        return V(f(a.x...), f(a.y...));
    else if constexpr (V::assay_count == 3)
        return V(f(a.x...), f(a.y...), f(a.z...));
    else
        return V(f(a.x...), f(a.y...), f(a.z...), f(a.w...));
}

constexpr bool divides(char op) {
    return op == '/' || op == '%';
}

// Scalars of less than 32 bits are computed with as int, components of vectors are not: unsigned
// ones wrap, and signed ones must fit.
template <class T> constexpr bool is_small =
    metal::is_integral_v<T> && !metal::is_same_v<T, bool> && sizeof(T) < 4;
template <class T> METAL_FUNC constexpr auto widen(T x) {
    return static_cast<metal::conditional_t<metal::is_signed_v<T>, int, uint>>(x);
}
// W: wide enough for the result of x op y.
template <char op, class T, class W> METAL_FUNC constexpr T fit(T x, T y, W result) {
    if constexpr (metal::is_signed_v<T>)
        ASSAY_CHECK(divides(op) ? x == metal::numeric_limits<T>::min() && y == -1
                                : result != static_cast<T>(result),
                    SOFT_OVERFLOW, 0,
                    op == '+'   ? "addition"
                    : op == '-' ? "subtraction"
                    : op == '*' ? "multiplication"
                                : "division by -1");
    return static_cast<T>(result);
}

template <class T> METAL_FUNC constexpr T shift_left(T value, T count) {
    using U = metal::make_unsigned_t<T>;
    ASSAY_CHECK(static_cast<U>(count) >= sizeof(T) * 8, SOFT_SHIFT, count, nullptr);
    const int n = static_cast<int>(static_cast<U>(count) & (sizeof(T) * 8 - 1));
    return static_cast<T>(static_cast<U>(value) << n);
}

template <class T> METAL_FUNC constexpr T shift_right(T value, T count) {
    using U = metal::make_unsigned_t<T>;
    ASSAY_CHECK(static_cast<U>(count) >= sizeof(T) * 8, SOFT_SHIFT, count, nullptr);
    const int n = static_cast<int>(static_cast<U>(count) & (sizeof(T) * 8 - 1));
    return static_cast<T>(value >> n);
}

} // namespace assay

namespace assay::operators {

#define ASSAY_COMPONENTS(V, op)                                                                    \
    if constexpr (n == 2)                                                                          \
        return V(a.x op b.x, a.y op b.y);                                                          \
    else if constexpr (n == 3)                                                                     \
        return V(a.x op b.x, a.y op b.y, a.z op b.z);                                              \
    else                                                                                           \
        return V(a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w);

#define ASSAY_NATIVE(a) __builtin_bit_cast(assay::native<T, n>, a)

// The forms with a scalar, and the assignments, of an operator that exists for two vectors.
#define ASSAY_SPLAT_FORMS(op)                                                                      \
    template <class T, int n, class S, assay::if_splats<T, S> = 0>                                 \
    METAL_FUNC constexpr auto operator op(const vec<T, n> &a, S b) {                               \
        return a op vec<T, n>(b);                                                                  \
    }                                                                                              \
    template <class T, int n, class S, assay::if_splats<T, S> = 0>                                 \
    METAL_FUNC constexpr auto operator op(S a, const vec<T, n> &b) {                               \
        return vec<T, n>(a) op b;                                                                  \
    }
#define ASSAY_ASSIGN_FORMS(op)                                                                     \
    template <class T, int n>                                                                      \
    METAL_FUNC constexpr vec<T, n> &operator op##=(vec<T, n> &a, const vec<T, n> &b) {             \
        return a = a op b;                                                                         \
    }                                                                                              \
    template <class T, int n, class S, assay::if_splats<T, S> = 0>                                 \
    METAL_FUNC constexpr vec<T, n> &operator op##=(vec<T, n> &a, S b) {                            \
        return a = a op vec<T, n>(b);                                                              \
    }

// Not / and % of integers: what they do with zero is the scalar's business.
#define ASSAY_ARITHMETIC(op)                                                                       \
    template <class T, int n, class V = vec<T, n>>                                                 \
    METAL_FUNC constexpr V operator op(const vec<T, n> &a, const vec<T, n> &b) {                   \
        if constexpr (assay::is_native<T, n> && (is_same_v<T, float> || !assay::divides(*#op)))    \
            if (!__builtin_is_constant_evaluated())                                                \
                return __builtin_bit_cast(V, ASSAY_NATIVE(a) op ASSAY_NATIVE(b));                  \
        if constexpr (assay::is_small<T>)                                                          \
            return assay::each<V>(                                                                 \
                [](T x, T y) ASSAY_LAMBDA {                                                        \
                    return assay::fit<*#op>(x, y, assay::widen(x) op assay::widen(y));             \
                },                                                                                 \
                a, b);                                                                             \
        else                                                                                       \
            ASSAY_COMPONENTS(V, op)                                                                \
    }                                                                                              \
    ASSAY_SPLAT_FORMS(op)                                                                          \
    ASSAY_ASSIGN_FORMS(op)
ASSAY_ARITHMETIC(+)
ASSAY_ARITHMETIC(-)
ASSAY_ARITHMETIC(*)
ASSAY_ARITHMETIC(/)
ASSAY_ARITHMETIC(%)
ASSAY_ARITHMETIC(&)
ASSAY_ARITHMETIC(|)
ASSAY_ARITHMETIC(^)
#undef ASSAY_ARITHMETIC

#define ASSAY_SHIFT(op, shift)                                                                     \
    template <class T, int n>                                                                      \
    METAL_FUNC constexpr auto operator op(const vec<T, n> &a, const vec<T, n> &b) {                \
        if constexpr (assay::is_native<T, n>)                                                      \
            if (!__builtin_is_constant_evaluated())                                                \
                return __builtin_bit_cast(                                                         \
                    vec<T, n>,                                                                     \
                    ASSAY_NATIVE(a) op(ASSAY_NATIVE(b) & static_cast<T>(sizeof(T) * 8 - 1)));      \
        return assay::each<vec<T, n>>([](T x, T y) ASSAY_LAMBDA { return assay::shift<T>(x, y); }, \
                                      a, b);                                                       \
    }                                                                                              \
    ASSAY_SPLAT_FORMS(op)                                                                          \
    ASSAY_ASSIGN_FORMS(op)
ASSAY_SHIFT(<<, shift_left)
ASSAY_SHIFT(>>, shift_right)
#undef ASSAY_SHIFT

#define ASSAY_COMPARISON(op)                                                                       \
    template <class T, int n, class V = vec<bool, n>> METAL_FUNC constexpr V operator op(          \
        const vec<T, n> &a, const vec<T, n> &b){ASSAY_COMPONENTS(V, op)} ASSAY_SPLAT_FORMS(op)
ASSAY_COMPARISON(<)
ASSAY_COMPARISON(>)
ASSAY_COMPARISON(<=)
ASSAY_COMPARISON(>=)
ASSAY_COMPARISON(==)
ASSAY_COMPARISON(!=)
#undef ASSAY_COMPARISON

#define ASSAY_LOGIC(op)                                                                            \
    template <int n, class V = vec<bool, n>>                                                       \
    METAL_FUNC constexpr V operator op(vec<bool, n> a, vec<bool, n> b) {                           \
        ASSAY_COMPONENTS(V, op)                                                                    \
    }                                                                                              \
    template <int n> METAL_FUNC constexpr auto operator op(vec<bool, n> a, bool b) {               \
        return a op vec<bool, n>(b);                                                               \
    }                                                                                              \
    template <int n> METAL_FUNC constexpr auto operator op(bool a, vec<bool, n> b) {               \
        return vec<bool, n>(a) op b;                                                               \
    }
ASSAY_LOGIC(&&)
ASSAY_LOGIC(||)
#undef ASSAY_LOGIC

#undef ASSAY_SPLAT_FORMS
#undef ASSAY_ASSIGN_FORMS
#undef ASSAY_COMPONENTS
#undef ASSAY_NATIVE

template <class T, int n> METAL_FUNC constexpr vec<T, n> operator+(vec<T, n> a) {
    return a;
}
template <class T, int n> METAL_FUNC constexpr vec<T, n> operator-(vec<T, n> a) {
    return assay::each<vec<T, n>>(
        [](T x) ASSAY_LAMBDA {
            if constexpr (assay::is_small<T> && is_signed_v<T>)
                ASSAY_CHECK(x == numeric_limits<T>::min(), SOFT_OVERFLOW, 0, "negation");
            return static_cast<T>(-x);
        },
        a);
}
template <class T, int n> METAL_FUNC constexpr vec<T, n> operator~(vec<T, n> a) {
    return assay::each<vec<T, n>>([](T x) ASSAY_LAMBDA { return static_cast<T>(~x); }, a);
}
template <int n> METAL_FUNC constexpr vec<bool, n> operator!(vec<bool, n> a) {
    return assay::each<vec<bool, n>>([](bool x) ASSAY_LAMBDA { return !x; }, a);
}

#define ASSAY_COUNT(op)                                                                            \
    template <class T, int n> METAL_FUNC constexpr vec<T, n> &operator op##op(vec<T, n> &a) {      \
        return a = a op vec<T, n>(T(1));                                                           \
    }                                                                                              \
    template <class T, int n> METAL_FUNC constexpr vec<T, n> operator op##op(vec<T, n> &a, int) {  \
        const vec<T, n> before = a;                                                                \
        op##op a;                                                                                  \
        return before;                                                                             \
    }
ASSAY_COUNT(+)
ASSAY_COUNT(-)
#undef ASSAY_COUNT

} // namespace assay::operators

// Packed vectors are for memory: every computation first turns one into a vec, which it does by itself.
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

template <class T> struct packed_vec<T, 2> : assay::operators::of_vectors {
    T x, y;

    ASSAY_PACKED_COMMON(2)
    METAL_FUNC constexpr packed_vec(vec<T, 2> v) : x(v.x), y(v.y) {}
    METAL_FUNC constexpr operator vec<T, 2>() const { return vec<T, 2>(x, y); }
};

template <class T> struct packed_vec<T, 3> : assay::operators::of_vectors {
    T x, y, z;

    ASSAY_PACKED_COMMON(3)
    METAL_FUNC constexpr packed_vec(vec<T, 3> v) : x(v.x), y(v.y), z(v.z) {}
    METAL_FUNC constexpr operator vec<T, 3>() const { return vec<T, 3>(x, y, z); }
};

template <class T> struct packed_vec<T, 4> : assay::operators::of_vectors {
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

namespace assay::operators {

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

} // namespace assay::operators
