// internals: names of Apple's own headers that published kernels call directly.
//
// Each __metal_x is metal::x; the argument that chooses fast or precise math is ignored, as the
// namespaces fast and precise are.
#pragma once
#pragma clang system_header

#include "aliases.h"
#include "atomic.h"
#include "geometric.h"
#include "simdgroup_matrix.h"

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

ASSAY_ALIASES(ASSAY_ALIAS_1, ASSAY_ALIAS_2, ASSAY_ALIAS_3, ASSAY_ALIAS_LANE, ASSAY_ALIAS_FILL)
#undef ASSAY_ALIASES
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
