// geometric: the geometric and relational functions of MSL, and the namespaces fast and precise.
//
// Sums of products go from x to w with plain multiply and add. There is no dot of two scalars:
// kernels bring their own.
#pragma once
#pragma clang system_header

#include "math.h"

namespace metal {

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

} // namespace metal
