// math: the math and common functions of MSL, for float, half and their vectors.
//
// Scalar functions are plain overloads for float and half, so that arguments convert as they do in
// MSL; bfloat goes by way of float. A half result is the float result rounded once. The vector form
// of every function is one template that takes vectors of one type and scalars beside them.
//
// Functions that differ between fast:: and precise:: are listed in speeds.h; which of the two a plain
// name means is up to the math mode.
#pragma once
#pragma clang system_header

#include "speeds.h"

// The vector forms of `name`, whatever its number of arguments.
#define ASSAY_EACH(name)                                                                           \
    template <class... A, class V = assay::vector_of<A...>> METAL_FUNC V name(const A &...a) {     \
        return assay::each<V>([](auto... c) ASSAY_LAMBDA { return name(c...); }, V(a)...);         \
    }
#define ASSAY_MATH_1(name, ...)                                                                    \
    METAL_FUNC float name(float x) {                                                               \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    METAL_FUNC half name(half h) {                                                                 \
        return static_cast<half>(name(static_cast<float>(h)));                                     \
    }                                                                                              \
    ASSAY_EACH(name)
#define ASSAY_MATH_2(name, ...)                                                                    \
    METAL_FUNC float name(float x, float y) {                                                      \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    METAL_FUNC half name(half h, half k) {                                                         \
        return static_cast<half>(name(static_cast<float>(h), static_cast<float>(k)));              \
    }                                                                                              \
    ASSAY_EACH(name)
#define ASSAY_MATH_3(name, ...)                                                                    \
    METAL_FUNC float name(float x, float y, float z) {                                             \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    METAL_FUNC half name(half h, half k, half l) {                                                 \
        return static_cast<half>(                                                                  \
            name(static_cast<float>(h), static_cast<float>(k), static_cast<float>(l)));            \
    }                                                                                              \
    ASSAY_EACH(name)

namespace assay {

// sin(pi (x + shift / 2)), without losing x to the rounding of pi x: x is reduced first, exactly.
__attribute__((no_sanitize("float-cast-overflow"))) METAL_FUNC float sin_pi(float x, int shift) {
    const float turns = __builtin_rintf(2.0f * x);
    const float angle = M_PI_F * (x - 0.5f * turns);
    const float quarter = turns - 4.0f * __builtin_floorf(turns * 0.25f);
    const int quadrant = (quarter >= 0.0f ? static_cast<int>(quarter) + shift : shift) & 3;
    const float value = quadrant & 1 ? __builtin_cosf(angle) : __builtin_sinf(angle);
    return quadrant & 2 ? -value : value;
}

METAL_FUNC float median(float x, float y, float z) {
    return __builtin_fmaxf(__builtin_fminf(x, y), __builtin_fminf(__builtin_fmaxf(x, y), z));
}

METAL_FUNC float smooth(float low, float high, float x) {
    ASSAY_CHECK(low >= high, SOFT_EDGES, 0, nullptr);
    const float t = __builtin_fminf(__builtin_fmaxf((x - low) / (high - low), 0.0f), 1.0f);
    return t * t * (3.0f - 2.0f * t);
}

template <class A, class B> using sum_type = decltype(metal::declval<A>() + metal::declval<B>());
template <class A, class B> using if_mixed_scalars = metal::enable_if_t<
    is_scalar<A> && is_scalar<B> && (!metal::is_same_v<A, B> || metal::is_enum_v<A>), int>;
template <class T> using if_arithmetic = metal::enable_if_t<metal::is_arithmetic_v<T>, int>;

} // namespace assay

namespace metal {

#if defined(ASSAY_FAST_MATH)
#define ASSAY_ONE(name, precise, fast) ASSAY_MATH_1(name, fast)
#define ASSAY_TWO(name, precise, fast) ASSAY_MATH_2(name, fast)
ASSAY_TWO_SPEEDS(ASSAY_ONE, ASSAY_TWO)
#undef ASSAY_ONE
#undef ASSAY_TWO
#endif
#define ASSAY_ONE(name, precise, fast) ASSAY_MATH_1(name, precise)
#define ASSAY_TWO(name, precise, fast) ASSAY_MATH_2(name, precise)
#if defined(ASSAY_FAST_MATH)
namespace precise {
ASSAY_TWO_SPEEDS(ASSAY_ONE, ASSAY_TWO)
}
#else
ASSAY_TWO_SPEEDS(ASSAY_ONE, ASSAY_TWO)
#endif
#undef ASSAY_ONE
#undef ASSAY_TWO

ASSAY_MATH_1(acos, __builtin_acosf(x))
ASSAY_MATH_1(asin, __builtin_asinf(x))
ASSAY_MATH_1(atan, __builtin_atanf(x))
ASSAY_MATH_1(ceil, __builtin_ceilf(x))
ASSAY_MATH_1(fabs, __builtin_fabsf(x))
ASSAY_MATH_1(floor, __builtin_floorf(x))
METAL_FUNC float fract(float x) {
    return __builtin_fminf(x - __builtin_floorf(x), 0x1.fffffep-1f);
}
METAL_FUNC half fract(half x) { // below 1 as a half too
    const float f = static_cast<float>(x);
    return static_cast<half>(__builtin_fminf(f - __builtin_floorf(f), 0x1.ffcp-1f));
}
ASSAY_EACH(fract)
ASSAY_MATH_1(rint, __builtin_rintf(x))
ASSAY_MATH_1(round, __builtin_roundf(x))
ASSAY_MATH_1(trunc, __builtin_truncf(x))

ASSAY_MATH_2(atan2, __builtin_atan2f(x, y))
ASSAY_MATH_2(copysign, __builtin_copysignf(x, y))
ASSAY_MATH_2(divide, x / y)
ASSAY_MATH_2(fdim, __builtin_fdimf(x, y))
ASSAY_MATH_2(fmax, __builtin_fmaxf(x, y))
ASSAY_MATH_2(fmin, __builtin_fminf(x, y))
ASSAY_MATH_2(fmod, __builtin_fmodf(x, y))

ASSAY_MATH_3(fma, __builtin_fmaf(x, y, z))
#if !defined(ASSAY_CHECKED) && __has_builtin(__builtin_elementwise_fma)
// One instruction for four, where the compiler knows how to ask for it.
METAL_FUNC vec<float, 4> fma(vec<float, 4> x, vec<float, 4> y, vec<float, 4> z) {
    using native = assay::native<float, 4>;
    return __builtin_bit_cast(vec<float, 4>,
                              __builtin_elementwise_fma(__builtin_bit_cast(native, x),
                                                        __builtin_bit_cast(native, y),
                                                        __builtin_bit_cast(native, z)));
}
#endif
ASSAY_MATH_3(fmax3, __builtin_fmaxf(x, __builtin_fmaxf(y, z)))
ASSAY_MATH_3(fmin3, __builtin_fminf(x, __builtin_fminf(y, z)))
ASSAY_MATH_3(fmedian3, assay::median(x, y, z))

// common functions
ASSAY_MATH_1(saturate, __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f))
ASSAY_MATH_1(sign, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? x : 0.0f)
ASSAY_MATH_2(step, y < x ? 0.0f : 1.0f)
ASSAY_MATH_3(mix, x + (y - x) * z)
ASSAY_MATH_3(smoothstep, assay::smooth(x, y, z))

// The next half is not the next float, so this one works on bits.
METAL_FUNC float nextafter(float x, float y) {
    return __builtin_nextafterf(x, y);
}
METAL_FUNC half nextafter(half x, half y) {
    if (x != x || y != y)
        return x + y;
    if (x == y)
        return y;
    const ushort bits = as_type<ushort>(x);
    if (x == static_cast<half>(0))
        return as_type<half>(static_cast<ushort>((as_type<ushort>(y) & 0x8000) | 1));
    const bool away = (x < y) == (x > static_cast<half>(0));
    return as_type<half>(static_cast<ushort>(away ? bits + 1 : bits - 1));
}
ASSAY_EACH(nextafter)

// ------------------------------------------------ functions with an integer or a second result
METAL_FUNC int ilogb(float x) {
    return __builtin_ilogbf(x);
}
METAL_FUNC int ilogb(half x) {
    return __builtin_ilogbf(static_cast<float>(x));
}
template <class T, int n> METAL_FUNC vec<int, n> ilogb(vec<T, n> v) {
    return assay::each<vec<int, n>>([](T x) ASSAY_LAMBDA { return ilogb(x); }, v);
}

METAL_FUNC float ldexp(float x, int exponent) {
    return __builtin_ldexpf(x, exponent);
}
METAL_FUNC half ldexp(half x, int exponent) {
    return static_cast<half>(__builtin_ldexpf(static_cast<float>(x), exponent));
}
template <class T, int n> METAL_FUNC vec<T, n> ldexp(vec<T, n> v, vec<int, n> exponent) {
    return assay::each<vec<T, n>>([](T x, int e) ASSAY_LAMBDA { return ldexp(x, e); }, v, exponent);
}
template <class T, int n> METAL_FUNC vec<T, n> ldexp(vec<T, n> v, int exponent) {
    return ldexp(v, vec<int, n>(exponent));
}

// The second result is stored here: checked mode does not see what a function of the C library
// stores.
METAL_FUNC float frexp(float x, int &exponent) {
    int e = 0;
    const float fraction = __builtin_frexpf(x, &e);
    exponent = e;
    return fraction;
}
METAL_FUNC half frexp(half x, int &exponent) {
    return static_cast<half>(frexp(static_cast<float>(x), exponent));
}
METAL_FUNC float modf(float x, float &whole) {
    float w = 0;
    const float rest = __builtin_modff(x, &w);
    whole = w;
    return rest;
}
METAL_FUNC half modf(half x, half &whole) {
    float w = 0;
    const float rest = modf(static_cast<float>(x), w);
    whole = static_cast<half>(w);
    return static_cast<half>(rest);
}
METAL_FUNC float sincos(float x, float &cosine) {
    cosine = cos(x);
    return sin(x);
}
METAL_FUNC half sincos(half x, half &cosine) {
    cosine = cos(x);
    return sin(x);
}
#define ASSAY_EACH_WITH_RESULT(name, R)                                                            \
    template <class T, int n> METAL_FUNC vec<T, n> name(vec<T, n> v, vec<R, n> &second) {          \
        for (int i = 0; i < n; ++i)                                                                \
            v[i] = name(v[i], second[i]);                                                          \
        return v;                                                                                  \
    }
ASSAY_EACH_WITH_RESULT(frexp, int)
ASSAY_EACH_WITH_RESULT(modf, T)
ASSAY_EACH_WITH_RESULT(sincos, T)
#if defined(ASSAY_FAST_MATH)
namespace precise {
template <class T> METAL_FUNC T sincos(T x, T &cosine) {
    cosine = cos(x);
    return sin(x);
}
} // namespace precise
#endif
#undef ASSAY_EACH_WITH_RESULT

// --------------------------------------------------------- functions of every arithmetic type
// For floats a NaN gives way to a number. Operands of two types meet in their common type.
#define ASSAY_EXTREME(name, of_integers)                                                           \
    template <class T, assay::if_arithmetic<T> = 0> METAL_FUNC constexpr T name(T x, T y) {        \
        if constexpr (is_floating_point_v<T>)                                                      \
            return static_cast<T>(                                                                 \
                __builtin_f##name##f(static_cast<float>(x), static_cast<float>(y)));               \
        else                                                                                       \
            return of_integers;                                                                    \
    }                                                                                              \
    template <class A, class B, assay::if_mixed_scalars<A, B> = 0>                                 \
    METAL_FUNC constexpr auto name(A x, B y) {                                                     \
        using T = assay::sum_type<A, B>;                                                           \
        return name(static_cast<T>(x), static_cast<T>(y));                                         \
    }
ASSAY_EXTREME(max, x < y ? y : x)
ASSAY_EXTREME(min, y < x ? y : x)
#undef ASSAY_EXTREME
template <class A, class B, class C, assay::if_scalars<A, B, C> = 0>
METAL_FUNC constexpr auto clamp(A x, B low, C high) {
    ASSAY_CHECK(low > high, SOFT_CLAMP, 0, nullptr);
    return min(max(x, low), high);
}
#define ASSAY_OF_THREE(name, ...)                                                                  \
    template <class A, class B, class C, assay::if_scalars<A, B, C> = 0>                           \
    METAL_FUNC constexpr auto name(A x, B y, C z) {                                                \
        return __VA_ARGS__;                                                                        \
    }
ASSAY_OF_THREE(max3, max(x, max(y, z)))
ASSAY_OF_THREE(min3, min(x, min(y, z)))
ASSAY_OF_THREE(median3, max(min(x, y), min(max(x, y), z)))
#undef ASSAY_OF_THREE
template <class T, assay::if_arithmetic<T> = 0> METAL_FUNC constexpr T abs(T x) {
    if constexpr (is_floating_point_v<T>)
        return static_cast<T>(__builtin_fabsf(static_cast<float>(x)));
    else if constexpr (is_unsigned_v<T>)
        return x;
    else {
        ASSAY_CHECK(x == numeric_limits<T>::min(), SOFT_OVERFLOW, 0, "abs");
        return static_cast<T>(x < 0 ? T(0) - static_cast<make_unsigned_t<T>>(x) : x);
    }
}
ASSAY_EACH(max)
ASSAY_EACH(min)
ASSAY_EACH(clamp)
ASSAY_EACH(max3)
ASSAY_EACH(min3)
ASSAY_EACH(median3)
ASSAY_EACH(abs)

} // namespace metal

#undef ASSAY_MATH_1
#undef ASSAY_MATH_2
#undef ASSAY_MATH_3
