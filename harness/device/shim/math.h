// math: the math, common, geometric, relational and integer functions of MSL, for scalars and vectors.
//
// Scalar functions are plain overloads for float and half, so that arguments convert as they do in
// MSL; bfloat goes by way of float. A half result is the float result rounded once. The vector form
// of every function is one template that takes vectors of one type and scalars beside them.
//
// Some functions have two variants, precise and fast; which of the two a plain name means is up to the
// math mode. Fast ones are made as the specification says ("implemented as") or within its bounds for
// fast math, so that what breaks with them on a GPU breaks here: tanh of a large number is infinity by
// infinity, sin is good to a few digits near 0 and to fewer far away. Without fast math both names mean
// the precise functions: the difference is then what a tolerance is for.
#pragma once
#pragma clang system_header

#include "vec.h"

#include "fast.h" // of the device that is compiled for

// Functions that need not have an instruction: ptx/begin.h has other ones.
#ifndef ASSAY_LIBM
#define ASSAY_LIBM(name) __builtin_##name
#endif

namespace assay {

METAL_FUNC float fast_exp(float x) {
    return fast_exp2(x * 1.44269504f);
}
METAL_FUNC float fast_log(float x) {
    return fast_log2(x) * 0.693147181f;
}
METAL_FUNC float fast_pow(float x, float y) {
    return fast_exp2(y * fast_log2(x));
}

METAL_FUNC float fast_tan(float x) {
    return fast_sin(x) * (1.0f / fast_cos(x));
}
METAL_FUNC float fast_tanh(float x) {
    const float t = fast_exp(2.0f * x);
    return (t - 1.0f) / (t + 1.0f);
}

// One line per function: its name, the precise variant, the fast one.
#define ASSAY_TWO_SPEEDS(ONE, TWO)                                                                 \
    ONE(acosh, ASSAY_LIBM(acoshf)(x), assay::fast_log(x + assay::fast_sqrt(x * x - 1.0f)))         \
    ONE(asinh, ASSAY_LIBM(asinhf)(x), assay::fast_log(x + assay::fast_sqrt(x * x + 1.0f)))         \
    ONE(atanh, ASSAY_LIBM(atanhf)(x), 0.5f * assay::fast_log((1.0f + x) / (1.0f - x)))             \
    ONE(cos, ASSAY_LIBM(cosf)(x), assay::fast_cos(x))                                              \
    ONE(cosh, ASSAY_LIBM(coshf)(x), 0.5f * (assay::fast_exp(x) + assay::fast_exp(-x)))             \
    ONE(cospi, assay::sin_pi(x, 1), assay::fast_sin_turns(0.5f * x, 0.25f))                        \
    ONE(exp, ASSAY_LIBM(expf)(x), assay::fast_exp(x))                                              \
    ONE(exp2, ASSAY_LIBM(exp2f)(x), assay::fast_exp2(x))                                           \
    ONE(exp10, ASSAY_LIBM(powf)(10.0f, x), assay::fast_exp2(x * 3.32192809f))                      \
    ONE(log, ASSAY_LIBM(logf)(x), assay::fast_log(x))                                              \
    ONE(log10, ASSAY_LIBM(log10f)(x), assay::fast_log2(x) * 0.301029996f)                          \
    ONE(log2, ASSAY_LIBM(log2f)(x), assay::fast_log2(x))                                           \
    ONE(rsqrt, 1.0f / __builtin_sqrtf(x), assay::fast_rsqrt(x))                                    \
    ONE(sin, ASSAY_LIBM(sinf)(x), assay::fast_sin(x))                                              \
    ONE(sinh, ASSAY_LIBM(sinhf)(x), 0.5f * (assay::fast_exp(x) - assay::fast_exp(-x)))             \
    ONE(sinpi, assay::sin_pi(x, 0), assay::fast_sin_turns(0.5f * x, 0.0f))                         \
    ONE(sqrt, __builtin_sqrtf(x), assay::fast_sqrt(x))                                             \
    ONE(tan, ASSAY_LIBM(tanf)(x), assay::fast_tan(x))                                              \
    ONE(tanh, ASSAY_LIBM(tanhf)(x), assay::fast_tanh(x))                                           \
    ONE(tanpi, assay::sin_pi(x, 0) / assay::sin_pi(x, 1), assay::fast_tan(x * M_PI_F))             \
    TWO(pow, ASSAY_LIBM(powf)(x, y), assay::fast_pow(x, y))                                        \
    TWO(powr, x < 0.0f ? __builtin_nanf("") : ASSAY_LIBM(powf)(x, y), assay::fast_pow(x, y))

// The vector forms of `name`, whatever its number of arguments.
#define ASSAY_EACH(name)                                                                           \
    template <class... A, class V = assay::vector_of<A...>> METAL_FUNC V name(const A &...a) {     \
        return assay::each<V>([](auto... c) ASSAY_LAMBDA { return name(c...); }, V(a)...);         \
    }
// A function of floats, the same of halves by way of floats, and both of vectors.
#define ASSAY_MATH(name, floats, halves, widened, ...)                                             \
    METAL_FUNC float name floats {                                                                 \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    METAL_FUNC half name halves {                                                                  \
        return static_cast<half>(name widened);                                                    \
    }                                                                                              \
    ASSAY_EACH(name)
#define ASSAY_WIDE(h) static_cast<float>(h)
#define ASSAY_MATH_1(name, ...) ASSAY_MATH(name, (float x), (half h), (ASSAY_WIDE(h)), __VA_ARGS__)
#define ASSAY_MATH_2(name, ...)                                                                    \
    ASSAY_MATH(name, (float x, float y), (half h, half k), (ASSAY_WIDE(h), ASSAY_WIDE(k)),         \
               __VA_ARGS__)
#define ASSAY_MATH_3(name, ...)                                                                    \
    ASSAY_MATH(name, (float x, float y, float z), (half h, half k, half l),                        \
               (ASSAY_WIDE(h), ASSAY_WIDE(k), ASSAY_WIDE(l)), __VA_ARGS__)

// sin(pi (x + shift / 2)), without losing x to the rounding of pi x: x is reduced first, exactly.
__attribute__((no_sanitize("float-cast-overflow"))) METAL_FUNC float sin_pi(float x, int shift) {
    const float turns = __builtin_rintf(2.0f * x);
    const float angle = M_PI_F * (x - 0.5f * turns);
    const float quarter = turns - 4.0f * __builtin_floorf(turns * 0.25f);
    const int quadrant = (quarter >= 0.0f ? static_cast<int>(quarter) + shift : shift) & 3;
    const float value = quadrant & 1 ? ASSAY_LIBM(cosf)(angle) : ASSAY_LIBM(sinf)(angle);
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

ASSAY_MATH_1(acos, ASSAY_LIBM(acosf)(x))
ASSAY_MATH_1(asin, ASSAY_LIBM(asinf)(x))
ASSAY_MATH_1(atan, ASSAY_LIBM(atanf)(x))
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
ASSAY_MATH_1(round, ASSAY_LIBM(roundf)(x))
ASSAY_MATH_1(trunc, __builtin_truncf(x))

ASSAY_MATH_2(atan2, ASSAY_LIBM(atan2f)(x, y))
ASSAY_MATH_2(copysign, __builtin_copysignf(x, y))
ASSAY_MATH_2(divide, x / y)
ASSAY_MATH_2(fdim, ASSAY_LIBM(fdimf)(x, y))
ASSAY_MATH_2(fmax, __builtin_fmaxf(x, y))
ASSAY_MATH_2(fmin, __builtin_fminf(x, y))
ASSAY_MATH_2(fmod, ASSAY_LIBM(fmodf)(x, y))

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
    return ASSAY_LIBM(nextafterf)(x, y);
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
    return ASSAY_LIBM(ilogbf)(x);
}
METAL_FUNC int ilogb(half x) {
    return ASSAY_LIBM(ilogbf)(static_cast<float>(x));
}
template <class T, int n> METAL_FUNC vec<int, n> ilogb(vec<T, n> v) {
    return assay::each<vec<int, n>>([](T x) ASSAY_LAMBDA { return ilogb(x); }, v);
}

METAL_FUNC float ldexp(float x, int exponent) {
    return ASSAY_LIBM(ldexpf)(x, exponent);
}
METAL_FUNC half ldexp(half x, int exponent) {
    return static_cast<half>(ASSAY_LIBM(ldexpf)(static_cast<float>(x), exponent));
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
    const float fraction = ASSAY_LIBM(frexpf)(x, &e);
    exponent = e;
    return fraction;
}
METAL_FUNC half frexp(half x, int &exponent) {
    return static_cast<half>(frexp(static_cast<float>(x), exponent));
}
METAL_FUNC float modf(float x, float &whole) {
    float w = 0;
    const float rest = ASSAY_LIBM(modff)(x, &w);
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

#undef ASSAY_MATH
#undef ASSAY_WIDE
#undef ASSAY_MATH_1
#undef ASSAY_MATH_2
#undef ASSAY_MATH_3

// -------------------------------------------------------------------------------- geometric
// Sums of products go from x to w with plain multiply and add. There is no dot of two scalars: kernels
// bring their own.

template <class A, class B, class V = assay::vector_of<A, B>,
          enable_if_t<!assay::is_scalar<A> && !assay::is_scalar<B>, int> = 0>
METAL_FUNC constexpr typename V::assay_scalar dot(const A &a, const B &b) {
    using T = typename V::assay_scalar;
    T sum = a.x * b.x + a.y * b.y;
    if constexpr (V::assay_count > 2)
        sum += a.z * b.z;
    if constexpr (V::assay_count > 3)
        sum += a.w * b.w;
    return sum;
}
template <class A, class V = assay::vector_of<A>>
METAL_FUNC typename V::assay_scalar length_squared(const A &a) {
    return dot(a, a);
}
template <class A, class V = assay::vector_of<A>>
METAL_FUNC typename V::assay_scalar length(const A &a) {
    return sqrt(dot(a, a));
}
template <class A, class B, class V = assay::vector_of<A, B>>
METAL_FUNC typename V::assay_scalar distance_squared(const A &a, const B &b) {
    return length_squared(V(a) - V(b));
}
template <class A, class B, class V = assay::vector_of<A, B>>
METAL_FUNC typename V::assay_scalar distance(const A &a, const B &b) {
    return length(V(a) - V(b));
}
template <class A, class V = assay::vector_of<A>> METAL_FUNC V normalize(const A &a) {
    return V(a) * rsqrt(dot(a, a));
}
template <class T> METAL_FUNC constexpr vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
    return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
template <class T, int n>
METAL_FUNC vec<T, n> faceforward(vec<T, n> normal, vec<T, n> incident, vec<T, n> reference) {
    return dot(reference, incident) < T(0) ? normal : -normal;
}
template <class T, int n> METAL_FUNC vec<T, n> reflect(vec<T, n> incident, vec<T, n> normal) {
    return incident - normal * (T(2) * dot(normal, incident));
}
template <class T, int n>
METAL_FUNC vec<T, n> refract(vec<T, n> incident, vec<T, n> normal, T ratio) {
    const T cosine = dot(normal, incident);
    const T k = T(1) - ratio * ratio * (T(1) - cosine * cosine);
    if (k < T(0))
        return vec<T, n>(T(0));
    return incident * ratio - normal * (ratio * cosine + sqrt(k));
}

// ----------------------------------------------------------------------------------- relational
#define ASSAY_PREDICATE(name, ...)                                                                 \
    METAL_FUNC bool name(float x) {                                                                \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    METAL_FUNC bool name(half h) {                                                                 \
        return name(static_cast<float>(h));                                                        \
    }                                                                                              \
    template <class T, int n> METAL_FUNC vec<bool, n> name(vec<T, n> v) {                          \
        return assay::each<vec<bool, n>>([](T x) ASSAY_LAMBDA { return name(x); }, v);             \
    }
ASSAY_PREDICATE(isfinite, __builtin_isfinite(x))
ASSAY_PREDICATE(isinf, __builtin_isinf(x))
ASSAY_PREDICATE(isnan, __builtin_isnan(x))
ASSAY_PREDICATE(signbit, __builtin_signbit(x))
#undef ASSAY_PREDICATE

// What is normal depends on the type.
template <class T, enable_if_t<is_floating_point_v<T>, int> = 0> METAL_FUNC bool isnormal(T x) {
    const float size = __builtin_fabsf(static_cast<float>(x));
    return size >= static_cast<float>(numeric_limits<T>::min()) && size < __builtin_inff();
}
template <class T, int n> METAL_FUNC vec<bool, n> isnormal(vec<T, n> v) {
    return assay::each<vec<bool, n>>([](T x) ASSAY_LAMBDA { return isnormal(x); }, v);
}

#define ASSAY_PREDICATE(name, ...)                                                                 \
    METAL_FUNC bool name(float x, float y) {                                                       \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    METAL_FUNC bool name(half x, half y) {                                                         \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    template <class T, int n> METAL_FUNC vec<bool, n> name(vec<T, n> v, vec<T, n> w) {             \
        return assay::each<vec<bool, n>>([](T x, T y) ASSAY_LAMBDA { return name(x, y); }, v, w);  \
    }
ASSAY_PREDICATE(isordered, x == x && y == y)
ASSAY_PREDICATE(isunordered, x != x || y != y)
#undef ASSAY_PREDICATE

#define ASSAY_ALL_ANY(V, all_of, any_of)                                                           \
    METAL_FUNC constexpr bool all(V v) {                                                           \
        return all_of;                                                                             \
    }                                                                                              \
    METAL_FUNC constexpr bool any(V v) {                                                           \
        return any_of;                                                                             \
    }
#define ASSAY_BOOLS(n) vec<bool, n>
ASSAY_ALL_ANY(bool, v, v)
ASSAY_ALL_ANY(ASSAY_BOOLS(2), v.x &v.y, v.x | v.y)
ASSAY_ALL_ANY(ASSAY_BOOLS(3), v.x &v.y &v.z, v.x | v.y | v.z)
ASSAY_ALL_ANY(ASSAY_BOOLS(4), v.x &v.y &v.z &v.w, v.x | v.y | v.z | v.w)
#undef ASSAY_BOOLS
#undef ASSAY_ALL_ANY

// select(a, b, c) is c ? b : a, component by component where c is a vector.
template <class T, assay::if_arithmetic<T> = 0> METAL_FUNC constexpr T select(T a, T b, bool c) {
    return c ? b : a;
}
template <class A, class B, assay::if_mixed_scalars<A, B> = 0>
METAL_FUNC constexpr auto select(A a, B b, bool c) {
    using T = assay::sum_type<A, B>;
    return c ? static_cast<T>(b) : static_cast<T>(a);
}
template <class A, class B, class V = assay::vector_of<A, B>>
METAL_FUNC constexpr V select(const A &a, const B &b, bool c) {
    return c ? V(b) : V(a);
}
template <class A, class B, class V = assay::vector_of<A, B>, int n>
METAL_FUNC constexpr V select(const A &a, const B &b, vec<bool, n> c) {
    using T = typename V::assay_scalar;
    return assay::each<V>([](T x, T y, bool second) ASSAY_LAMBDA { return second ? y : x; }, V(a),
                          V(b), c);
}

// ------------------------------------------------------------------------- fast and precise
#define ASSAY_BOTH_NAMESPACES                                                                      \
    using metal::abs, metal::acos, metal::asin, metal::atan, metal::atan2, metal::ceil,            \
        metal::clamp, metal::copysign, metal::distance, metal::distance_squared, metal::divide,    \
        metal::dot, metal::fabs, metal::fdim, metal::floor, metal::fma, metal::fmax, metal::fmax3, \
        metal::fmedian3, metal::fmin, metal::fmin3, metal::fmod, metal::fract, metal::frexp,       \
        metal::ilogb, metal::ldexp, metal::length, metal::length_squared, metal::max, metal::max3, \
        metal::median3, metal::min, metal::min3, metal::mix, metal::modf, metal::nextafter,        \
        metal::normalize, metal::rint, metal::round, metal::saturate, metal::sign,                 \
        metal::smoothstep, metal::step, metal::trunc;
#define ASSAY_USE_FIRST(name, ...) using metal::name;
namespace fast {
ASSAY_BOTH_NAMESPACES
ASSAY_TWO_SPEEDS(ASSAY_USE_FIRST, ASSAY_USE_FIRST)
using metal::sincos;
} // namespace fast
namespace precise {
ASSAY_BOTH_NAMESPACES
#if !defined(ASSAY_FAST_MATH) // else they are there
ASSAY_TWO_SPEEDS(ASSAY_USE_FIRST, ASSAY_USE_FIRST)
using metal::sincos;
#endif
} // namespace precise
#undef ASSAY_TWO_SPEEDS
#undef ASSAY_USE_FIRST
#undef ASSAY_BOTH_NAMESPACES

// ---------------------------------------------------------------------------------- integer
} // namespace metal

namespace assay {

template <class T> using if_integral = metal::enable_if_t<metal::is_integral_v<T>, int>;
template <class T> constexpr uint bits_of = sizeof(T) * 8;

// A type that holds the product of any two T and a third one added to it.
template <class T> using twice =
    metal::conditional_t<metal::is_signed_v<T>, metal::conditional_t<sizeof(T) < 8, long, __int128>,
                         metal::conditional_t<sizeof(T) < 8, ulong, unsigned __int128>>;

template <class T, class W> METAL_FUNC constexpr T clamp_to(W x) {
    constexpr T low = metal::numeric_limits<T>::min();
    constexpr T high = metal::numeric_limits<T>::max();
    return x < static_cast<W>(low) ? low : x > static_cast<W>(high) ? high : static_cast<T>(x);
}

} // namespace assay

namespace metal {

template <class T, assay::if_integral<T> = 0>
METAL_FUNC constexpr make_unsigned_t<T> absdiff(T x, T y) {
    using U = make_unsigned_t<T>;
    return static_cast<U>(x > y ? static_cast<U>(x) - static_cast<U>(y)
                                : static_cast<U>(y) - static_cast<U>(x));
}
template <class T, int n> METAL_FUNC vec<make_unsigned_t<T>, n> absdiff(vec<T, n> x, vec<T, n> y) {
    return assay::each<vec<make_unsigned_t<T>, n>>(
        [](T a, T b) ASSAY_LAMBDA { return absdiff(a, b); }, x, y);
}

template <class T, assay::if_integral<T> = 0> METAL_FUNC T addsat(T x, T y) {
    T sum;
    if (!__builtin_add_overflow(x, y, &sum))
        return sum;
    return y < 0 ? numeric_limits<T>::min() : numeric_limits<T>::max();
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC T subsat(T x, T y) {
    T difference;
    if (!__builtin_sub_overflow(x, y, &difference))
        return difference;
    return x < y ? numeric_limits<T>::min() : numeric_limits<T>::max();
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T hadd(T x, T y) {
    return static_cast<T>((x & y) + ((x ^ y) >> 1));
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T rhadd(T x, T y) {
    return static_cast<T>((x | y) - ((x ^ y) >> 1));
}

template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T popcount(T x) {
    return static_cast<T>(__builtin_popcountll(static_cast<make_unsigned_t<T>>(x)));
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T clz(T x) {
    const make_unsigned_t<T> u = static_cast<make_unsigned_t<T>>(x);
    const int width = static_cast<int>(assay::bits_of<T>);
    return static_cast<T>(u ? __builtin_clzll(u) - (64 - width) : width);
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T ctz(T x) {
    const make_unsigned_t<T> u = static_cast<make_unsigned_t<T>>(x);
    return static_cast<T>(u ? __builtin_ctzll(u) : static_cast<int>(assay::bits_of<T>));
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T reverse_bits(T x) {
    const ulong reversed = __builtin_bitreverse64(static_cast<make_unsigned_t<T>>(x));
    return static_cast<T>(reversed >> (64 - assay::bits_of<T>));
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T rotate(T x, T count) {
    using U = make_unsigned_t<T>;
    const U u = static_cast<U>(x);
    const uint left = static_cast<uint>(count) & (assay::bits_of<T> - 1);
#if defined(__CUDA__)
    // By half the width and by less than that: before LLVM 18 the instructions for a rotation of
    // 64 bits are wrong for counts outside of 0 to 63, and nothing else keeps the count inside.
    if constexpr (sizeof(T) == 8) {
        const ulong near = left & 32 ? u << 32 | u >> 32 : u, far = near << 32 | near >> 32;
        return static_cast<T>(near << (left & 31) >> 32 << 32 | far << (left & 31) >> 32);
    }
#endif
    const uint right = (assay::bits_of<T> - left) & (assay::bits_of<T> - 1);
    return static_cast<T>(u << left | u >> right);
}

template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T mulhi(T x, T y) {
    using W = assay::twice<T>;
    return static_cast<T>((static_cast<W>(x) * static_cast<W>(y)) >> assay::bits_of<T>);
}
METAL_FUNC constexpr uint mulhi(uint x, uint y) {
    return static_cast<uint>((static_cast<ulong>(x) * y) >> 32);
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T madhi(T x, T y, T z) {
    using U = make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(mulhi(x, y)) + static_cast<U>(z));
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T madsat(T x, T y, T z) {
    using W = assay::twice<T>;
    return assay::clamp_to<T>(static_cast<W>(x) * static_cast<W>(y) + static_cast<W>(z));
}

// The low 24 bits of the operands count, with their sign.
METAL_FUNC constexpr int mul24(int x, int y) {
    const long a = static_cast<int>(static_cast<uint>(x) << 8) >> 8;
    const long b = static_cast<int>(static_cast<uint>(y) << 8) >> 8;
    return static_cast<int>(a * b);
}
METAL_FUNC constexpr uint mul24(uint x, uint y) {
    return (x & 0xffffffu) * (y & 0xffffffu);
}
METAL_FUNC constexpr int mad24(int x, int y, int z) {
    return static_cast<int>(static_cast<uint>(mul24(x, y)) + static_cast<uint>(z));
}
METAL_FUNC constexpr uint mad24(uint x, uint y, uint z) {
    return mul24(x, y) + z;
}

ASSAY_EACH(addsat)
ASSAY_EACH(subsat)
ASSAY_EACH(hadd)
ASSAY_EACH(rhadd)
ASSAY_EACH(popcount)
ASSAY_EACH(clz)
ASSAY_EACH(ctz)
ASSAY_EACH(reverse_bits)
ASSAY_EACH(rotate)
ASSAY_EACH(mulhi)
ASSAY_EACH(madhi)
ASSAY_EACH(madsat)
ASSAY_EACH(mul24)
ASSAY_EACH(mad24)

// Bit fields. offset + bits is at most the width; an empty field is zero.
#define ASSAY_CHECK_FIELD(T, offset, bits)                                                         \
    ASSAY_CHECK(static_cast<ulong>(offset) + bits > assay::bits_of<T>, SOFT_FIELD, offset + bits,  \
                nullptr)
template <class T, assay::if_integral<T> = 0>
METAL_FUNC constexpr T extract_bits(T x, uint offset, uint bits) {
    ASSAY_CHECK_FIELD(T, offset, bits);
    constexpr uint most = assay::bits_of<T> - 1;
    const uint above = assay::bits_of<T> - bits;
    const T up = static_cast<T>(static_cast<make_unsigned_t<T>>(x) << ((above - offset) & most));
    return bits == 0 ? T(0) : static_cast<T>(up >> (above & most));
}
template <class T, assay::if_integral<T> = 0>
METAL_FUNC constexpr T insert_bits(T base, T insert, uint offset, uint bits) {
    ASSAY_CHECK_FIELD(T, offset, bits);
    using U = make_unsigned_t<T>;
    constexpr uint most = assay::bits_of<T> - 1;
    const U ones = static_cast<U>(static_cast<U>(~U(0)) >> ((assay::bits_of<T> - bits) & most));
    const U mask = bits == 0 ? U(0) : static_cast<U>(ones << (offset & most));
    return static_cast<T>((static_cast<U>(base) & ~mask) |
                          (static_cast<U>(static_cast<U>(insert) << (offset & most)) & mask));
}
#undef ASSAY_CHECK_FIELD
template <class T, int n> METAL_FUNC vec<T, n> extract_bits(vec<T, n> v, uint offset, uint bits) {
    return assay::each<vec<T, n>>([=](T x) ASSAY_LAMBDA { return extract_bits(x, offset, bits); },
                                  v);
}
template <class T, int n>
METAL_FUNC vec<T, n> insert_bits(vec<T, n> base, vec<T, n> insert, uint offset, uint bits) {
    return assay::each<vec<T, n>>(
        [=](T b, T i) ASSAY_LAMBDA { return insert_bits(b, i, offset, bits); }, base, insert);
}

} // namespace metal
