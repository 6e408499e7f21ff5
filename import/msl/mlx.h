/* mlx.h: what MLX puts in front of a kernel of mx.fast.metal_kernel, as far as such kernels use it. */
#pragma once

#include <metal_stdlib>
using namespace metal;

#ifndef METAL_FUNC
#define METAL_FUNC inline __attribute__((always_inline))
#endif

typedef half float16_t;
typedef bfloat bfloat16_t;

template <typename T>
struct Limits {
    static constexpr constant T max = numeric_limits<T>::max();
    static constexpr constant T min = numeric_limits<T>::lowest();
    static constexpr constant T finite_max = numeric_limits<T>::max();
    static constexpr constant T finite_min = numeric_limits<T>::lowest();
};

template <>
struct Limits<float> {
    static constexpr constant float max = numeric_limits<float>::infinity();
    static constexpr constant float min = -numeric_limits<float>::infinity();
    static constexpr constant float finite_max = numeric_limits<float>::max();
    static constexpr constant float finite_min = -numeric_limits<float>::max();
};

/* Where element `index` of an array in row order is, by the array's strides. */
template <typename I = int64_t>
METAL_FUNC I elem_to_loc(I index, constant const int *shape, constant const int64_t *strides,
                         int ndim) {
    I place = 0;
    for (int axis = ndim; axis-- > 0; index /= shape[axis])
        place += I(index % shape[axis]) * I(strides[axis]);
    return place;
}

template <typename T, typename U>
METAL_FUNC T ceildiv(T a, U b) {
    return (a + b - 1) / b;
}
