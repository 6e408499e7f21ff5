// vec_ops: operators of vectors, component by component, and of a vector with a scalar.
//
// A scalar operand takes the vector's element type first (MSL splats it), so half4 * 2 stays half4;
// a float beside an integer vector is refused, as it would lose its fraction. Shift counts are
// taken modulo the width of the element, as MSL defines.
//
// Operands are references: as a value four integers are handed over as two of 64 bits, also to a
// function that is inlined, and do not always find together again.
#pragma once
#pragma clang system_header

#include "vec.h"

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

namespace metal {

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

template <class T, int n> METAL_FUNC constexpr vec<T, n> &operator++(vec<T, n> &a) {
    return a = a + vec<T, n>(T(1));
}
template <class T, int n> METAL_FUNC constexpr vec<T, n> &operator--(vec<T, n> &a) {
    return a = a - vec<T, n>(T(1));
}
template <class T, int n> METAL_FUNC constexpr vec<T, n> operator++(vec<T, n> &a, int) {
    const vec<T, n> before = a;
    ++a;
    return before;
}
template <class T, int n> METAL_FUNC constexpr vec<T, n> operator--(vec<T, n> &a, int) {
    const vec<T, n> before = a;
    --a;
    return before;
}

} // namespace metal
