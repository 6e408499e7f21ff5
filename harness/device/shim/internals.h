// internals: names of Apple's own headers that published kernels call directly.
//
// Each __metal_x is metal::x; the argument that chooses fast or precise math is ignored, as the
// namespaces fast and precise are.
#pragma once
#pragma clang system_header

#include "atomic.h"
#include "geometric.h"
#include "simdgroup_matrix.h"

#define __METAL_PRECISE_MATH__ 0
#define __METAL_MAYBE_FAST_MATH__ 1
#define __METAL_FAST_MATH__ 2
#define __METAL_MEMORY_SCOPE_SYSTEM__ 4

#define ASSAY_ALIAS_1(name)                                                                        \
    template <class T> METAL_FUNC auto __metal_##name(T x, int = 0) {                              \
        return metal::name(x);                                                                     \
    }
#define ASSAY_ALIAS_2(name)                                                                        \
    template <class T> METAL_FUNC auto __metal_##name(T x, T y, int = 0) {                         \
        return metal::name(x, y);                                                                  \
    }
#define ASSAY_ALIAS_3(name)                                                                        \
    template <class T> METAL_FUNC auto __metal_##name(T x, T y, T z, int = 0) {                    \
        return metal::name(x, y, z);                                                               \
    }
#define ASSAY_ALIAS_LANE(name)                                                                     \
    template <class T> METAL_FUNC auto __metal_##name(T x, ushort n) {                             \
        return metal::name(x, n);                                                                  \
    }
#define ASSAY_ALIAS_FILL(name)                                                                     \
    template <class T> METAL_FUNC auto __metal_##name(T x, T y, ushort n, ushort m) {              \
        return metal::name(x, y, n, m);                                                            \
    }

ASSAY_ALIAS_1(acos)
ASSAY_ALIAS_1(acosh)
ASSAY_ALIAS_1(asin)
ASSAY_ALIAS_1(asinh)
ASSAY_ALIAS_1(atan)
ASSAY_ALIAS_1(atanh)
ASSAY_ALIAS_1(ceil)
ASSAY_ALIAS_1(cos)
ASSAY_ALIAS_1(cosh)
ASSAY_ALIAS_1(cospi)
ASSAY_ALIAS_1(exp)
ASSAY_ALIAS_1(exp10)
ASSAY_ALIAS_1(exp2)
ASSAY_ALIAS_1(fabs)
ASSAY_ALIAS_1(floor)
ASSAY_ALIAS_1(fract)
ASSAY_ALIAS_1(log)
ASSAY_ALIAS_1(log10)
ASSAY_ALIAS_1(log2)
ASSAY_ALIAS_1(rint)
ASSAY_ALIAS_1(round)
ASSAY_ALIAS_1(rsqrt)
ASSAY_ALIAS_1(sin)
ASSAY_ALIAS_1(sinh)
ASSAY_ALIAS_1(sinpi)
ASSAY_ALIAS_1(sqrt)
ASSAY_ALIAS_1(tan)
ASSAY_ALIAS_1(tanh)
ASSAY_ALIAS_1(tanpi)
ASSAY_ALIAS_1(trunc)
ASSAY_ALIAS_2(atan2)
ASSAY_ALIAS_2(divide)
ASSAY_ALIAS_2(fmax)
ASSAY_ALIAS_2(fmin)
ASSAY_ALIAS_2(fmod)
ASSAY_ALIAS_2(nextafter)
ASSAY_ALIAS_2(pow)
ASSAY_ALIAS_2(powr)
ASSAY_ALIAS_3(fma)
ASSAY_ALIAS_3(fmax3)
ASSAY_ALIAS_3(fmedian3)
ASSAY_ALIAS_3(fmin3)
ASSAY_ALIAS_1(simd_max)
ASSAY_ALIAS_1(simd_min)
ASSAY_ALIAS_1(simd_prefix_exclusive_product)
ASSAY_ALIAS_1(simd_prefix_exclusive_sum)
ASSAY_ALIAS_1(simd_prefix_inclusive_product)
ASSAY_ALIAS_1(simd_prefix_inclusive_sum)
ASSAY_ALIAS_1(simd_product)
ASSAY_ALIAS_1(simd_sum)
ASSAY_ALIAS_1(simd_xor)
ASSAY_ALIAS_LANE(simd_broadcast)
ASSAY_ALIAS_LANE(simd_shuffle)
ASSAY_ALIAS_LANE(simd_shuffle_down)
ASSAY_ALIAS_LANE(simd_shuffle_rotate_down)
ASSAY_ALIAS_LANE(simd_shuffle_rotate_up)
ASSAY_ALIAS_LANE(simd_shuffle_up)
ASSAY_ALIAS_LANE(simd_shuffle_xor)
ASSAY_ALIAS_FILL(simd_shuffle_and_fill_down)
ASSAY_ALIAS_FILL(simd_shuffle_and_fill_up)
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

namespace metal {

template <class T> struct vec_elements : integral_constant<int, 1> {};
template <class T, int n> struct vec_elements<vec<T, n>> : integral_constant<int, n> {};
template <class T> struct make_scalar { using type = typename assay::scalar_of<T>::type; };
template <class T> using make_scalar_t = typename make_scalar<T>::type;
template <class T> struct __is_valid_simdgroup_type
    : bool_constant<(assay::count_of<T>::value > 0)> {};

} // namespace metal
