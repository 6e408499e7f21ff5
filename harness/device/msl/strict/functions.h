// functions: the math, integer, geometric and relational functions of MSL, as declarations.
//
// One overload for each type, as Apple's compiler has them: max(1.0f, 1) is ambiguous here as it is
// there. A scalar beside a vector is widened by the language.
#pragma once

#define ASSAY_FLOATS(X) X(float) X(float2) X(float3) X(float4) X(half) X(half2) X(half3) X(half4)
#define ASSAY_INTEGER(X, T) X(T) X(T##2) X(T##3) X(T##4)
#define ASSAY_INTEGERS(X)                                                                          \
    ASSAY_INTEGER(X, char)                                                                         \
    ASSAY_INTEGER(X, uchar)                                                                        \
    ASSAY_INTEGER(X, short)                                                                        \
    ASSAY_INTEGER(X, ushort)                                                                       \
    ASSAY_INTEGER(X, int)                                                                          \
    ASSAY_INTEGER(X, uint)                                                                         \
    ASSAY_INTEGER(X, long)                                                                         \
    ASSAY_INTEGER(X, ulong)

namespace metal {

using ::as_type;

#define ASSAY_MATH(T)                                                                              \
    T acos(T), acosh(T), asin(T), asinh(T), atan(T), atanh(T), ceil(T), cos(T), cosh(T), cospi(T), \
        exp(T), exp2(T), exp10(T), fabs(T), floor(T), fract(T), log(T), log2(T), log10(T),         \
        rint(T), round(T), rsqrt(T), sin(T), sinh(T), sinpi(T), sqrt(T), tan(T), tanh(T),          \
        tanpi(T), trunc(T), abs(T);                                                                \
    T atan2(T, T), copysign(T, T), divide(T, T), fdim(T, T), fmax(T, T), fmin(T, T), fmod(T, T),   \
        pow(T, T), powr(T, T), max(T, T), min(T, T);                                               \
    T fma(T, T, T), fmax3(T, T, T), fmin3(T, T, T), fmedian3(T, T, T), clamp(T, T, T);             \
    T sincos(T, T &), modf(T, T &);
namespace fast {
ASSAY_FLOATS(ASSAY_MATH)
}
namespace precise {
ASSAY_FLOATS(ASSAY_MATH)
}
ASSAY_FLOATS(ASSAY_MATH)
#undef ASSAY_MATH

#define ASSAY_COMMON(T)                                                                            \
    T saturate(T), sign(T);                                                                        \
    T step(T, T), nextafter(T, T);                                                                 \
    T mix(T, T, T), smoothstep(T, T, T);
ASSAY_FLOATS(ASSAY_COMMON)
#undef ASSAY_COMMON

#define ASSAY_ORDER(T) T max3(T, T, T), min3(T, T, T), median3(T, T, T);
ASSAY_FLOATS(ASSAY_ORDER)
ASSAY_INTEGERS(ASSAY_ORDER)
#undef ASSAY_ORDER

#define ASSAY_WHOLE(T)                                                                             \
    T abs(T), clz(T), ctz(T), popcount(T), reverse_bits(T);                                        \
    T absdiff(T, T), addsat(T, T), hadd(T, T), rhadd(T, T), max(T, T), min(T, T), mulhi(T, T),     \
        rotate(T, T), subsat(T, T);                                                                \
    T clamp(T, T, T), madhi(T, T, T);                                                              \
    T extract_bits(T, uint, uint);                                                                 \
    T insert_bits(T, T, uint, uint);
ASSAY_INTEGERS(ASSAY_WHOLE)
#undef ASSAY_WHOLE
int mad24(int, int, int);
uint mad24(uint, uint, uint);
int mul24(int, int);
uint mul24(uint, uint);

template <class T> int ilogb(T);
template <class T, class E> T ldexp(T, E);
template <class T, class E> T frexp(T, E &);

// ---------------------------------------------------------------------- geometric, relational
#define ASSAY_GEOMETRY(S, T)                                                                       \
    S dot(T, T), distance(T, T), distance_squared(T, T);                                           \
    S length(T), length_squared(T);                                                                \
    T normalize(T);                                                                                \
    T reflect(T, T);                                                                               \
    T refract(T, T, S);                                                                            \
    T faceforward(T, T, T);
ASSAY_GEOMETRY(float, float2)
ASSAY_GEOMETRY(float, float3)
ASSAY_GEOMETRY(float, float4)
ASSAY_GEOMETRY(half, half2)
ASSAY_GEOMETRY(half, half3)
ASSAY_GEOMETRY(half, half4)
#undef ASSAY_GEOMETRY
float3 cross(float3, float3);
half3 cross(half3, half3);

#define ASSAY_TEST(S, name)                                                                        \
    bool name(S);                                                                                  \
    bool2 name(S##2);                                                                              \
    bool3 name(S##3);                                                                              \
    bool4 name(S##4);
#define ASSAY_TESTS(name)                                                                          \
    ASSAY_TEST(float, name)                                                                        \
    ASSAY_TEST(half, name)
ASSAY_TESTS(isfinite)
ASSAY_TESTS(isinf)
ASSAY_TESTS(isnan)
ASSAY_TESTS(isnormal)
ASSAY_TESTS(signbit)
#undef ASSAY_TEST
#undef ASSAY_TESTS
template <class B> bool all(B);
template <class B> bool any(B);
template <class T, class B> T select(T, T, B);

#define ASSAY_UNPACK(name, V, S)                                                                   \
    V unpack_##name##_to_##V(S);                                                                   \
    S pack_##V##_to_##name(V);
ASSAY_UNPACK(unorm4x8, float4, uint)
ASSAY_UNPACK(snorm4x8, float4, uint)
ASSAY_UNPACK(unorm2x16, float2, uint)
ASSAY_UNPACK(snorm2x16, float2, uint)
ASSAY_UNPACK(unorm4x8, half4, uint)
ASSAY_UNPACK(snorm4x8, half4, uint)
#undef ASSAY_UNPACK

} // namespace metal
