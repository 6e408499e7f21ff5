// metal: the MSL standard library for clang, in one header.
//
// A .metal file that harness/msl rewrote (no address spaces, attributes or kernel keyword left) is
// compiled as C++17 with -include of this file; it needs -fdeclspec and -fno-operator-names. What
// MSL has without a namespace is put at global scope here.
//
// The same headers serve the CPU of the software device and NVIDIA GPUs. What differs (how lanes
// exchange values, how arguments and positions come in, threadgroup memory, products of simdgroup
// matrices) stands in headers of the same names in cpu/ and ptx/, which -iquote chooses from.
#pragma once
#pragma clang system_header

#include "hooks.h"

#include "atomic.h"
#include "math.h"
#include "matrix.h"
#include "simd.h"
#include "simdgroup_matrix.h"
#include "types.h"
#include "vec.h"

#define ASSAY_VECTOR_NAMES(T)                                                                      \
    namespace metal {                                                                              \
    typedef vec<T, 2> T##2;                                                                        \
    typedef vec<T, 3> T##3;                                                                        \
    typedef vec<T, 4> T##4;                                                                        \
    typedef packed_vec<T, 2> packed_##T##2;                                                        \
    typedef packed_vec<T, 3> packed_##T##3;                                                        \
    typedef packed_vec<T, 4> packed_##T##4;                                                        \
    }                                                                                              \
    using metal::T##2;                                                                             \
    using metal::T##3;                                                                             \
    using metal::T##4;                                                                             \
    using metal::packed_##T##2;                                                                    \
    using metal::packed_##T##3;                                                                    \
    using metal::packed_##T##4;
ASSAY_VECTOR_NAMES(bool)
ASSAY_VECTOR_NAMES(char)
ASSAY_VECTOR_NAMES(uchar)
ASSAY_VECTOR_NAMES(short)
ASSAY_VECTOR_NAMES(ushort)
ASSAY_VECTOR_NAMES(int)
ASSAY_VECTOR_NAMES(uint)
ASSAY_VECTOR_NAMES(long)
ASSAY_VECTOR_NAMES(ulong)
ASSAY_VECTOR_NAMES(half)
ASSAY_VECTOR_NAMES(bfloat)
ASSAY_VECTOR_NAMES(float)
#undef ASSAY_VECTOR_NAMES

#define ASSAY_MATRIX_NAME(T, C, R)                                                                 \
    namespace metal {                                                                              \
    typedef matrix<T, C, R> T##C##x##R;                                                            \
    }                                                                                              \
    using metal::T##C##x##R;
#define ASSAY_MATRIX_NAMES(T)                                                                      \
    ASSAY_MATRIX_NAME(T, 2, 2)                                                                     \
    ASSAY_MATRIX_NAME(T, 2, 3)                                                                     \
    ASSAY_MATRIX_NAME(T, 2, 4)                                                                     \
    ASSAY_MATRIX_NAME(T, 3, 2)                                                                     \
    ASSAY_MATRIX_NAME(T, 3, 3)                                                                     \
    ASSAY_MATRIX_NAME(T, 3, 4)                                                                     \
    ASSAY_MATRIX_NAME(T, 4, 2)                                                                     \
    ASSAY_MATRIX_NAME(T, 4, 3)                                                                     \
    ASSAY_MATRIX_NAME(T, 4, 4)
ASSAY_MATRIX_NAMES(float)
ASSAY_MATRIX_NAMES(half)
#undef ASSAY_MATRIX_NAMES
#undef ASSAY_MATRIX_NAME

// The layout that buffers are filled with.
#define ASSAY_LAYOUT(T)                                                                            \
    static_assert(sizeof(T##2) == 2 * sizeof(T) && alignof(T##2) == 2 * sizeof(T), "layout");      \
    static_assert(sizeof(T##3) == 4 * sizeof(T) && alignof(T##3) == 4 * sizeof(T), "layout");      \
    static_assert(sizeof(T##4) == 4 * sizeof(T) && alignof(T##4) == 4 * sizeof(T), "layout");      \
    static_assert(sizeof(packed_##T##3) == 3 * sizeof(T), "layout");                               \
    static_assert(alignof(packed_##T##3) == sizeof(T), "layout");                                  \
    static_assert(__is_trivially_constructible(T##4) && __is_trivially_copyable(packed_##T##3), "");
ASSAY_LAYOUT(bool)
ASSAY_LAYOUT(char)
ASSAY_LAYOUT(short)
ASSAY_LAYOUT(int)
ASSAY_LAYOUT(long)
ASSAY_LAYOUT(half)
ASSAY_LAYOUT(bfloat)
ASSAY_LAYOUT(float)
#undef ASSAY_LAYOUT
static_assert(sizeof(float3x3) == 48 && sizeof(half4x4) == 32 && sizeof(1.0) == 4, "layout");

namespace metal {

template <class T, size_t n> struct array {
    T assay_elements[n];

    METAL_FUNC constexpr T &operator[](size_t i) { return assay_elements[i]; }
    METAL_FUNC constexpr const T &operator[](size_t i) const { return assay_elements[i]; }
    METAL_FUNC constexpr size_t size() const { return n; }
    METAL_FUNC constexpr bool empty() const { return n == 0; }
    METAL_FUNC constexpr T *data() { return assay_elements; }
    METAL_FUNC constexpr const T *data() const { return assay_elements; }
    METAL_FUNC constexpr T *begin() { return assay_elements; }
    METAL_FUNC constexpr const T *begin() const { return assay_elements; }
    METAL_FUNC constexpr T *end() { return assay_elements + n; }
    METAL_FUNC constexpr const T *end() const { return assay_elements + n; }
    METAL_FUNC constexpr T &front() { return assay_elements[0]; }
    METAL_FUNC constexpr T &back() { return assay_elements[n - 1]; }
};

// What kernels log goes nowhere.
struct os_log {
    constexpr os_log(const char *, const char *) {}
    template <class... More> METAL_FUNC void log(const char *, More...) const {}
    template <class... More> METAL_FUNC void log_debug(const char *, More...) const {}
    template <class... More> METAL_FUNC void log_info(const char *, More...) const {}
    template <class... More> METAL_FUNC void log_error(const char *, More...) const {}
    template <class... More> METAL_FUNC void log_fault(const char *, More...) const {}
};

// A promise that all threads hold the same value: nothing to a CPU.
template <class T> using uniform = T;
template <class T> METAL_FUNC constexpr T make_uniform(T x) {
    return x;
}

template <class T> struct vec_elements : integral_constant<int, 1> {};
template <class T, int n> struct vec_elements<vec<T, n>> : integral_constant<int, n> {};
template <class T> struct make_scalar { using type = typename assay::scalar_of<T>::type; };
template <class T> using make_scalar_t = typename make_scalar<T>::type;
template <class T> struct __is_valid_simdgroup_type
    : bool_constant<(assay::count_of<T>::value > 0)> {};

} // namespace metal

using metal::as_type;

// Names of Apple's own headers that published kernels call directly. Each __metal_x is metal::x; the
// argument that chooses fast or precise math is ignored, as the namespaces fast and precise are.
#define ASSAY_ALIAS(name, parameters, ...)                                                         \
    template <class T> METAL_FUNC auto __metal_##name parameters {                                 \
        return metal::name(__VA_ARGS__);                                                           \
    }
#define ASSAY_ALIAS_1(name) ASSAY_ALIAS(name, (T x, int = 0), x)
#define ASSAY_ALIAS_2(name) ASSAY_ALIAS(name, (T x, T y, int = 0), x, y)
#define ASSAY_ALIAS_3(name) ASSAY_ALIAS(name, (T x, T y, T z, int = 0), x, y, z)
#define ASSAY_ALIAS_LANE(name) ASSAY_ALIAS(name, (T x, ushort n), x, n)
#define ASSAY_ALIAS_FILL(name) ASSAY_ALIAS(name, (T x, T y, ushort n, ushort m), x, y, n, m)
ASSAY_ALIASES(ASSAY_ALIAS_1, ASSAY_ALIAS_2, ASSAY_ALIAS_3, ASSAY_ALIAS_LANE, ASSAY_ALIAS_FILL)
#undef ASSAY_ALIASES
#undef ASSAY_ALIAS
#undef ASSAY_ALIAS_1
#undef ASSAY_ALIAS_2
#undef ASSAY_ALIAS_3
#undef ASSAY_ALIAS_LANE
#undef ASSAY_ALIAS_FILL

METAL_FUNC float __metal_ldexp(float x, int k, int = 0) {
    return metal::ldexp(x, k);
}
METAL_FUNC float __metal_frexp(float x, int *k, int = 0) {
    return metal::frexp(x, *k);
}
METAL_FUNC ushort __metal_get_simdgroup_size(ushort = 0) {
    return MSL_LANES;
}
METAL_FUNC ushort __metal_get_thread_index_in_simdgroup(ushort = 0) {
    return static_cast<ushort>(assay::lane_index());
}

#if !defined(__CUDA__) && !defined(__HIP__)
#include "eight.h"
#endif

// Generated kernels spell vector casts this way.
#define __builtin_convertvector(v, V) static_cast<V>(v)

// The text includes Metal 4's headers of tensors, and the target has them.
#if defined(ASSAY_TENSORS)
#include "tensor.h"
#endif

#undef ASSAY_EACH
#undef ASSAY_SERVE
#undef ASSAY_LAMBDA

#undef METAL_FUNC
#define METAL_FUNC inline __attribute__((always_inline))

#include "entry.h"

#include "absent.h"
