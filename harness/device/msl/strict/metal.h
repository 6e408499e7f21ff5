// metal: the MSL standard library as declarations in C++ for OpenCL.
//
// Nothing here runs. A .metal file that msl/strict.c rewrote is read with -include of this file, so
// that the compiler can tell a pointer to device memory from one to threadgroup memory; whether a
// name exists and what it takes was settled when the file was compiled for the software device. So
// the declarations are exact where overloads decide what is right, and generous elsewhere.
//
// Tensors are in tensor.h; constants, type traits and scopes are those of the software device's shim.
#pragma once
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable

#define METAL_FUNC inline
#define METAL_INTERNAL inline

typedef char int8_t;
struct bfloat;

#define ASSAY_CONSTANT __constant
#include "../../shim/common.h"
#undef ASSAY_CONSTANT

#define ASSAY_EACH_SPACE(X) X(__private) X(__global) X(__local) X(__constant)
#define ASSAY_ASSIGN(T, space, op) template <class A> space T &operator op(A) space;
#define ASSAY_ASSIGNS(T, space)                                                                    \
    ASSAY_ASSIGN(T, space, +=)                                                                     \
    ASSAY_ASSIGN(T, space, -=)                                                                     \
    ASSAY_ASSIGN(T, space, *=)                                                                     \
    ASSAY_ASSIGN(T, space, /=)
#define ASSAY_EACH_WRITABLE(X) X(__private) X(__global) X(__local)

// ------------------------------------------------------------------------------------ vectors
#define ASSAY_VECTORS(T, name)                                                                     \
    typedef T name##2 __attribute__((ext_vector_type(2)));                                         \
    typedef T name##3 __attribute__((ext_vector_type(3)));                                         \
    typedef T name##4 __attribute__((ext_vector_type(4)));
#define ASSAY_EACH_ELEMENT(X)                                                                      \
    X(char, char)                                                                                  \
    X(uchar, uchar)                                                                                \
    X(short, short)                                                                                \
    X(ushort, ushort)                                                                              \
    X(int, int)                                                                                    \
    X(uint, uint)                                                                                  \
    X(long, long)                                                                                  \
    X(ulong, ulong)                                                                                \
    X(half, half)                                                                                  \
    X(float, float)
ASSAY_VECTORS(int, bool) // what a comparison of int and float vectors gives
ASSAY_EACH_ELEMENT(ASSAY_VECTORS)
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
    ASSAY_ASSIGNS(bfloat, space)
    ASSAY_EACH_SPACE(ASSAY_SPACE)
#undef ASSAY_SPACE
};

namespace metal {

template <class T, int n> struct assay_vec;
#define ASSAY_VEC(T, name)                                                                         \
    template <> struct assay_vec<T, 2> { typedef name##2 type; };                                  \
    template <> struct assay_vec<T, 3> { typedef name##3 type; };                                  \
    template <> struct assay_vec<T, 4> { typedef name##4 type; };
ASSAY_VEC(bool, bool)
ASSAY_EACH_ELEMENT(ASSAY_VEC)
#undef ASSAY_VEC
template <int n> struct assay_bfloats {
    bfloat x, y, z, w;
    assay_bfloats() = default;
    template <class... A> assay_bfloats(A...);
#define ASSAY_SPACE(space)                                                                         \
    space bfloat &operator[](int) space;                                                           \
    ASSAY_ASSIGN(assay_bfloats, space, =)                                                          \
    ASSAY_ASSIGNS(assay_bfloats, space)
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
    ASSAY_ASSIGN(assay_packed, space, =)                                                           \
    ASSAY_ASSIGNS(assay_packed, space)
    ASSAY_EACH_WRITABLE(ASSAY_SPACE)
#undef ASSAY_SPACE
};

// Columns of vectors.
template <class T, int C, int R> struct matrix {
    vec<T, R> columns[C];
    matrix() = default;
    template <class... A> explicit matrix(A...);
#define ASSAY_SPACE(space)                                                                         \
    space vec<T, R> &operator[](int) space;                                                        \
    ASSAY_ASSIGNS(matrix, space)
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

// Names that OpenCL defines itself.
#define atomic_int metal_atomic_int
#define atomic_uint metal_atomic_uint
#define atomic_long metal_atomic_long
#define atomic_ulong metal_atomic_ulong
#define atomic_float metal_atomic_float
#define atomic_bool metal_atomic_bool

// -------------------------------------------- math, integer, geometric and relational functions
// One overload for each type, as Apple's compiler has them: max(1.0f, 1) is ambiguous here as it is
// there. A scalar beside a vector is widened by the language.
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
    T saturate(T), sign(T), step(T, T), nextafter(T, T), mix(T, T, T), smoothstep(T, T, T);
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
    T clamp(T, T, T), madhi(T, T, T), extract_bits(T, uint, uint), insert_bits(T, T, uint, uint);
ASSAY_INTEGERS(ASSAY_WHOLE)
#undef ASSAY_WHOLE
int mad24(int, int, int), mul24(int, int);
uint mad24(uint, uint, uint), mul24(uint, uint);

template <class T> int ilogb(T);
template <class T, class E> T ldexp(T, E);
template <class T, class E> T frexp(T, E &);

#define ASSAY_GEOMETRY(S, T)                                                                       \
    S dot(T, T), distance(T, T), distance_squared(T, T), length(T), length_squared(T);             \
    T normalize(T), reflect(T, T), refract(T, T, S), faceforward(T, T, T);
ASSAY_GEOMETRY(float, float2)
ASSAY_GEOMETRY(float, float3)
ASSAY_GEOMETRY(float, float4)
ASSAY_GEOMETRY(half, half2)
ASSAY_GEOMETRY(half, half3)
ASSAY_GEOMETRY(half, half4)
#undef ASSAY_GEOMETRY
float3 cross(float3, float3);
half3 cross(half3, half3);

#define ASSAY_TESTS(T, S) T isfinite(S), isinf(S), isnan(S), isnormal(S), signbit(S);
ASSAY_TESTS(bool, float)
ASSAY_TESTS(bool2, float2)
ASSAY_TESTS(bool3, float3)
ASSAY_TESTS(bool4, float4)
ASSAY_TESTS(bool, half)
ASSAY_TESTS(bool2, half2)
ASSAY_TESTS(bool3, half3)
ASSAY_TESTS(bool4, half4)
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

// ------------------------------------------------------------ simdgroups, quadgroups, barriers
void threadgroup_barrier(mem_flags), simdgroup_barrier(mem_flags);
void threadgroup_barrier(mem_flags, thread_scope), simdgroup_barrier(mem_flags, thread_scope);
void threadgroup_barrier(mem_flags, memory_scope), simdgroup_barrier(mem_flags, memory_scope);
void atomic_thread_fence(mem_flags, memory_order);
void atomic_thread_fence(mem_flags, memory_order, thread_scope);

struct simd_vote {
    typedef ulong vote_t;
    explicit simd_vote(ulong);
    explicit operator ulong() const;
    bool all() const;
    bool any() const;
};
typedef simd_vote quad_vote;

#define ASSAY_LANES(prefix)                                                                        \
    template <class T> T prefix##_sum(T);                                                          \
    template <class T> T prefix##_product(T);                                                      \
    template <class T> T prefix##_max(T);                                                          \
    template <class T> T prefix##_min(T);                                                          \
    template <class T> T prefix##_and(T);                                                          \
    template <class T> T prefix##_or(T);                                                           \
    template <class T> T prefix##_xor(T);                                                          \
    template <class T> T prefix##_prefix_inclusive_sum(T);                                         \
    template <class T> T prefix##_prefix_exclusive_sum(T);                                         \
    template <class T> T prefix##_prefix_inclusive_product(T);                                     \
    template <class T> T prefix##_prefix_exclusive_product(T);                                     \
    template <class T> T prefix##_broadcast(T, ushort);                                            \
    template <class T> T prefix##_broadcast_first(T);                                              \
    template <class T> T prefix##_shuffle(T, ushort);                                              \
    template <class T> T prefix##_shuffle_xor(T, ushort);                                          \
    template <class T> T prefix##_shuffle_up(T, ushort);                                           \
    template <class T> T prefix##_shuffle_down(T, ushort);                                         \
    template <class T> T prefix##_shuffle_rotate_up(T, ushort);                                    \
    template <class T> T prefix##_shuffle_rotate_down(T, ushort);                                  \
    template <class T> T prefix##_shuffle_and_fill_up(T, T, ushort, ushort = 32);                  \
    template <class T> T prefix##_shuffle_and_fill_down(T, T, ushort, ushort = 32);                \
    bool prefix##_all(bool), prefix##_any(bool), prefix##_is_first(), prefix##_is_helper_thread(); \
    simd_vote prefix##_ballot(bool), prefix##_active_threads_mask();
ASSAY_LANES(simd)
ASSAY_LANES(quad)
#undef ASSAY_LANES

// ------------------------------------------------------------------------------------ atomics
template <class T> struct atomic { T value; };
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<long> atomic_long;
typedef atomic<ulong> atomic_ulong;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;
template <class T> struct assay_plain { typedef T type; };

// Which functions there are for which types: of ulong only minimum and maximum, that return nothing.
template <class T, bool is_wide> using assay_atomic =
    typename enable_if<(sizeof(T) == 8) == is_wide, T>::type;
template <class T> using assay_narrow = assay_atomic<typename assay_plain<T>::type, false>;
template <class T> using assay_wide = assay_atomic<typename assay_plain<T>::type, true>;

#define ASSAY_FETCH(space, name)                                                                   \
    template <class T>                                                                             \
    T atomic_fetch_##name##_explicit(volatile space atomic<T> *, assay_narrow<T>, memory_order);
#define ASSAY_ATOMICS(space)                                                                       \
    template <class T>                                                                             \
    assay_narrow<T> atomic_load_explicit(const volatile space atomic<T> *, memory_order);          \
    template <class T>                                                                             \
    void atomic_store_explicit(volatile space atomic<T> *, assay_narrow<T>, memory_order);         \
    template <class T>                                                                             \
    T atomic_exchange_explicit(volatile space atomic<T> *, assay_narrow<T>, memory_order);         \
    template <class T> bool atomic_compare_exchange_weak_explicit(                                 \
        volatile space atomic<T> *, __private T *, assay_narrow<T>, memory_order, memory_order);   \
    template <class T>                                                                             \
    void atomic_min_explicit(volatile space atomic<T> *, assay_wide<T>, memory_order);             \
    template <class T>                                                                             \
    void atomic_max_explicit(volatile space atomic<T> *, assay_wide<T>, memory_order);             \
    ASSAY_FETCH(space, add)                                                                        \
    ASSAY_FETCH(space, sub)                                                                        \
    ASSAY_FETCH(space, min)                                                                        \
    ASSAY_FETCH(space, max)                                                                        \
    ASSAY_FETCH(space, and)                                                                        \
    ASSAY_FETCH(space, or)                                                                         \
    ASSAY_FETCH(space, xor)
ASSAY_ATOMICS(__global)
ASSAY_ATOMICS(__local)
#undef ASSAY_ATOMICS
#undef ASSAY_FETCH

struct os_log {
    constexpr os_log(__constant const char *, __constant const char *) __constant {}
#define ASSAY_LOG(name)                                                                            \
    template <class... A> void name(__constant const char *, A...) const;                          \
    template <class... A> void name(__constant const char *, A...) const __constant;
    ASSAY_LOG(log)
    ASSAY_LOG(log_debug)
    ASSAY_LOG(log_info)
    ASSAY_LOG(log_error)
    ASSAY_LOG(log_fault)
#undef ASSAY_LOG
};

// ------------------------------------------------------------------------ simdgroup matrices
// What thread_elements() refers to: for Apple's compiler a vector of 64, of which only the elements
// can be assigned to.
template <class T> struct assay_fragment {
    T &operator[](int);
    const T &operator[](int) const;
};
template <class T, int C, int R> struct simdgroup_matrix {
    simdgroup_matrix() = default;
    explicit simdgroup_matrix(T);
    assay_fragment<T> &thread_elements();
    assay_fragment<T> thread_elements() const;
};
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int C, int R = C, class V = T>
simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(V);
template <class T, int C, int R = C, class V = T>
simdgroup_matrix<T, C, R> make_diagonal_simdgroup_matrix(V);
#define ASSAY_LOAD(space)                                                                          \
    template <class T, int C, int R> void simdgroup_load(                                          \
        simdgroup_matrix<T, C, R> &, const space T *, ulong = 8, ulong2 = 0, bool = false);
ASSAY_LOAD(__global)
ASSAY_LOAD(__local)
ASSAY_LOAD(__constant)
#undef ASSAY_LOAD
#define ASSAY_STORE(space)                                                                         \
    template <class T, int C, int R> void simdgroup_store(simdgroup_matrix<T, C, R>, space T *,    \
                                                          ulong = 8, ulong2 = 0, bool = false);
ASSAY_STORE(__global)
ASSAY_STORE(__local)
#undef ASSAY_STORE
template <class T> using assay_8x8 = simdgroup_matrix<T, 8, 8>;
template <class D, class A, class B>
void simdgroup_multiply(assay_8x8<D> &, assay_8x8<A>, assay_8x8<B>);
template <class D, class A, class B, class C>
void simdgroup_multiply_accumulate(assay_8x8<D> &, assay_8x8<A>, assay_8x8<B>, assay_8x8<C>);
template <class A, class B>
simdgroup_matrix<A, 8, 8> operator*(simdgroup_matrix<A, 8, 8>, simdgroup_matrix<B, 8, 8>);

} // namespace metal

// ----------------------------------------------------------- names of Apple's own headers
#define ASSAY_ALIAS(name) template <class T, class... More> T __metal_##name(T, More...);
ASSAY_ALIASES(ASSAY_ALIAS, ASSAY_ALIAS, ASSAY_ALIAS, ASSAY_ALIAS, ASSAY_ALIAS)
ASSAY_ALIAS(ldexp)
ASSAY_ALIAS(frexp)
#undef ASSAY_ALIAS
#undef ASSAY_ALIASES

ushort __metal_get_simdgroup_size(ushort);
ushort __metal_get_thread_index_in_simdgroup(ushort);

#if defined(ASSAY_TENSORS)
#include "tensor.h"
#endif

#include "../../shim/absent.h"
