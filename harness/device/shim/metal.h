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
#include "cast.h"
#include "geometric.h"
#include "integer.h"
#include "internals.h"
#include "logging.h"
#include "math.h"
#include "matrix.h"
#include "packed.h"
#include "simd.h"
#include "simdgroup_matrix.h"
#include "types.h"
#include "vec.h"
#include "vec_ops.h"

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

// A promise that all threads hold the same value: nothing to a CPU.
template <class T> using uniform = T;
template <class T> METAL_FUNC constexpr T make_uniform(T x) {
    return x;
}

} // namespace metal

using metal::as_type;

#if !defined(__CUDA__)
#include "eight.h"
#endif

// Generated kernels spell vector casts this way.
#define __builtin_convertvector(v, V) static_cast<V>(v)

#if defined(                                                                                       \
    ASSAY_TENSORS) // the text includes Metal 4's headers of tensors, and the target has them
#include "tensor_ops.h"
#endif

#undef ASSAY_EACH
#undef ASSAY_SERVE
#undef ASSAY_LAMBDA

#undef METAL_FUNC
#define METAL_FUNC inline __attribute__((always_inline))

#include "entry.h"

#include "absent.h"
