// metal: the MSL standard library as declarations in C++ for OpenCL.
//
// Nothing here runs. A .metal file that msl/strict.c rewrote is read with -include of this file, so
// that the compiler can tell a pointer to device memory from one to threadgroup memory; whether a
// name exists and what it takes was settled when the file was compiled for the software device. So
// the declarations are exact where overloads decide what is right, and generous elsewhere.
//
// Types are here, functions in functions.h and group.h, names of Apple's own headers in internals.h;
// constants, type traits and scopes are those of the software device's shim.
#pragma once
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable

#define METAL_FUNC inline
#define METAL_INTERNAL inline

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

#include "../../shim/constants.h"

#define ASSAY_EACH_SPACE(X) X(__private) X(__global) X(__local) X(__constant)
#define ASSAY_EACH_WRITABLE(X) X(__private) X(__global) X(__local)

// ------------------------------------------------------------------------------------ vectors
#define ASSAY_VECTORS(T, name)                                                                     \
    typedef T name##2 __attribute__((ext_vector_type(2)));                                         \
    typedef T name##3 __attribute__((ext_vector_type(3)));                                         \
    typedef T name##4 __attribute__((ext_vector_type(4)));
ASSAY_VECTORS(int, bool) // what a comparison of int and float vectors gives
ASSAY_VECTORS(char, char)
ASSAY_VECTORS(uchar, uchar)
ASSAY_VECTORS(short, short)
ASSAY_VECTORS(ushort, ushort)
ASSAY_VECTORS(int, int)
ASSAY_VECTORS(uint, uint)
ASSAY_VECTORS(long, long)
ASSAY_VECTORS(ulong, ulong)
ASSAY_VECTORS(half, half)
ASSAY_VECTORS(float, float)
#undef ASSAY_VECTORS

// float4(a, b, c), (float4)x and as_type<float4>(x)
template <class V, class... A> V assay_make(A...);
template <class V> struct assay_to {};
template <class V, class A> V operator->*(assay_to<V>, A);
template <class V, class W> assay_to<V> operator->*(assay_to<V>, assay_to<W>);
template <class V, class A> V as_type(A);
template <class A> bool assay_is_defined(A);
template <class T> T assay_given();

// bfloat computes as float. It is a class because not every target of the compiler has one.
struct bfloat {
    ushort bits;
    bfloat() = default;
    template <class A> bfloat(A);
#define ASSAY_SPACE(space)                                                                         \
    operator float() const space;                                                                  \
    template <class A> space bfloat &operator+=(A) space;                                          \
    template <class A> space bfloat &operator-=(A) space;                                          \
    template <class A> space bfloat &operator*=(A) space;                                          \
    template <class A> space bfloat &operator/=(A) space;
    ASSAY_EACH_SPACE(ASSAY_SPACE)
#undef ASSAY_SPACE
};

#define ASSAY_CONSTANT __constant
#include "../../shim/traits.h"
#undef ASSAY_CONSTANT

namespace metal {

template <class T, int n> struct assay_vec;
#define ASSAY_VEC(T, name)                                                                         \
    template <> struct assay_vec<T, 2> { typedef name##2 type; };                                  \
    template <> struct assay_vec<T, 3> { typedef name##3 type; };                                  \
    template <> struct assay_vec<T, 4> { typedef name##4 type; };
ASSAY_VEC(bool, bool)
ASSAY_VEC(char, char)
ASSAY_VEC(uchar, uchar)
ASSAY_VEC(short, short)
ASSAY_VEC(ushort, ushort)
ASSAY_VEC(int, int)
ASSAY_VEC(uint, uint)
ASSAY_VEC(long, long)
ASSAY_VEC(ulong, ulong)
ASSAY_VEC(half, half)
ASSAY_VEC(float, float)
#undef ASSAY_VEC
template <int n> struct assay_bfloats {
    bfloat x, y, z, w;
    assay_bfloats() = default;
    template <class... A> assay_bfloats(A...);
#define ASSAY_SPACE(space)                                                                         \
    space bfloat &operator[](int) space;                                                           \
    template <class A> space assay_bfloats &operator=(A) space;                                    \
    template <class A> space assay_bfloats &operator+=(A) space;                                   \
    template <class A> space assay_bfloats &operator-=(A) space;                                   \
    template <class A> space assay_bfloats &operator*=(A) space;                                   \
    template <class A> space assay_bfloats &operator/=(A) space;
    ASSAY_EACH_SPACE(ASSAY_SPACE)
#undef ASSAY_SPACE
};
template <int n, class A> assay_bfloats<n> operator+(assay_bfloats<n>, A);
template <int n, class A> assay_bfloats<n> operator-(assay_bfloats<n>, A);
template <int n, class A> assay_bfloats<n> operator*(assay_bfloats<n>, A);
template <int n, class A> assay_bfloats<n> operator/(assay_bfloats<n>, A);
template <int n> struct assay_vec<bfloat, n> { typedef assay_bfloats<n> type; };
template <class T, int n> using vec = typename assay_vec<T, n>::type;

using ::bool2, ::bool3, ::bool4, ::float2, ::float3, ::float4, ::half2, ::half3, ::half4;
using ::int2, ::int3, ::int4, ::uint2, ::uint3, ::uint4;

// Vectors with the alignment of one element: to be read and written, not computed with.
template <class T, int n> struct assay_packed {
    T x, y, z, w;
    assay_packed() = default;
    template <class... A> assay_packed(A...);
#define ASSAY_SPACE(space)                                                                         \
    operator vec<T, n>() const space;                                                              \
    space T &operator[](int) space;
    ASSAY_EACH_SPACE(ASSAY_SPACE)
#undef ASSAY_SPACE
#define ASSAY_SPACE(space)                                                                         \
    template <class A> space assay_packed &operator=(A) space;                                     \
    template <class A> space assay_packed &operator+=(A) space;                                    \
    template <class A> space assay_packed &operator*=(A) space;
    ASSAY_EACH_WRITABLE(ASSAY_SPACE)
#undef ASSAY_SPACE
};

// Columns of vectors.
template <class T, int C, int R> struct matrix {
    vec<T, R> columns[C];
    matrix() = default;
    template <class... A> explicit matrix(A...);
#define ASSAY_SPACE(space) space vec<T, R> &operator[](int) space;
    ASSAY_EACH_WRITABLE(ASSAY_SPACE)
#undef ASSAY_SPACE
#define ASSAY_SPACE(space) space const vec<T, R> &operator[](int) const space;
    ASSAY_EACH_SPACE(ASSAY_SPACE)
#undef ASSAY_SPACE
};
template <class T, int C, int R> matrix<T, C, R> operator+(matrix<T, C, R>, matrix<T, C, R>);
template <class T, int C, int R> matrix<T, C, R> operator-(matrix<T, C, R>, matrix<T, C, R>);
template <class T, int C, int R> matrix<T, C, R> operator*(matrix<T, C, R>, T);
template <class T, int C, int R> matrix<T, C, R> operator*(T, matrix<T, C, R>);
template <class T, int C, int R> matrix<T, C, R> operator/(matrix<T, C, R>, T);
template <class T, int C, int R> vec<T, R> operator*(matrix<T, C, R>, vec<T, C>);
template <class T, int C, int R> vec<T, C> operator*(vec<T, R>, matrix<T, C, R>);
template <class T, int C, int R, int K> matrix<T, K, R> operator*(matrix<T, C, R>, matrix<T, K, C>);
template <class T, int C, int R> matrix<T, R, C> transpose(matrix<T, C, R>);
template <class T, int C, int R> T determinant(matrix<T, C, R>);

template <class T, size_t n> struct array {
    T elements[n];
    T &operator[](size_t);
    const T &operator[](size_t) const;
    size_t size() const;
};

template <class T> struct remove_addrspace { typedef T type; };
#define ASSAY_SPACE(space)                                                                         \
    template <class T> struct remove_addrspace<space T> { typedef T type; };
ASSAY_EACH_SPACE(ASSAY_SPACE)
#undef ASSAY_SPACE
template <class T> using remove_addrspace_t = typename remove_addrspace<T>::type;

template <class T> struct numeric_limits {
    static constexpr T min() { return T(); }
    static constexpr T max() { return T(); }
    static constexpr T lowest() { return T(); }
    static constexpr T infinity() { return T(); }
    static constexpr T epsilon() { return T(); }
    static constexpr T quiet_NaN() { return T(); }
    static constexpr __constant bool is_signed = __is_signed(T);
    static constexpr __constant bool is_integer = __is_integral(T);
    static constexpr __constant int digits = 8 * sizeof(T);
};

template <class T> using uniform = T;
template <class T> T make_uniform(T);

} // namespace metal

#define ASSAY_NAMES(T)                                                                             \
    typedef metal::assay_packed<T, 2> packed_##T##2;                                               \
    typedef metal::assay_packed<T, 3> packed_##T##3;                                               \
    typedef metal::assay_packed<T, 4> packed_##T##4;
ASSAY_NAMES(char)
ASSAY_NAMES(uchar)
ASSAY_NAMES(short)
ASSAY_NAMES(ushort)
ASSAY_NAMES(int)
ASSAY_NAMES(uint)
ASSAY_NAMES(half)
ASSAY_NAMES(float)
#undef ASSAY_NAMES

#define ASSAY_MATRICES(T, C)                                                                       \
    typedef metal::matrix<T, C, 2> T##C##x2;                                                       \
    typedef metal::matrix<T, C, 3> T##C##x3;                                                       \
    typedef metal::matrix<T, C, 4> T##C##x4;
ASSAY_MATRICES(float, 2)
ASSAY_MATRICES(float, 3)
ASSAY_MATRICES(float, 4)
ASSAY_MATRICES(half, 2)
ASSAY_MATRICES(half, 3)
ASSAY_MATRICES(half, 4)
#undef ASSAY_MATRICES

typedef metal::assay_bfloats<2> bfloat2;
typedef metal::assay_bfloats<3> bfloat3;
typedef metal::assay_bfloats<4> bfloat4;

#include "functions.h"
#include "group.h"
#include "internals.h"
#if defined(ASSAY_TENSORS)
#include "tensor.h"
#endif

#include "../../shim/absent.h"
