// matrix: matrix<T, C, R> of MSL, C columns of R rows, column by column in memory.
//
// Products go column by column in the order of MSL's definition, with plain multiply and add, so
// that results do not depend on how the compiler vectorises them.
#pragma once
#pragma clang system_header

#include "vec.h"

namespace metal {

template <class T, int C, int R> struct matrix : assay::operators::of_matrices {
    vec<T, R> columns[C];

    matrix() = default;
    // explicit, because those that the compiler makes would have lines of this file
    METAL_FUNC constexpr matrix(const matrix &) = default;
    METAL_FUNC constexpr matrix &operator=(const matrix &) = default;
    METAL_FUNC constexpr explicit matrix(T diagonal) : columns{} {
        for (int c = 0; c < C; ++c)
            for (int r = 0; r < R; ++r)
                columns[c][r] = c == r ? diagonal : T(0);
    }
    template <class U, enable_if_t<!is_same_v<U, T>, int> = 0>
    METAL_FUNC constexpr explicit matrix(const matrix<U, C, R> &m) : columns{} {
        for (int c = 0; c < C; ++c)
            columns[c] = vec<T, R>(m.columns[c]);
    }
    // C columns, or all C * R elements
    template <class... V,
              enable_if_t<sizeof...(V) == C && (__is_same(V, vec<T, R>) && ...), int> = 0>
    METAL_FUNC constexpr matrix(V... v) : columns{v...} {}
    template <class... S,
              enable_if_t<sizeof...(S) == C * R && (assay::is_scalar<S> && ...), int> = 0>
    METAL_FUNC constexpr matrix(S... s) : columns{} {
        const T all[C * R] = {assay::to<T>(s)...};
        for (int i = 0; i < C * R; ++i)
            columns[i / R][i % R] = all[i];
    }

    METAL_FUNC constexpr vec<T, R> &operator[](int c) { return columns[c]; }
    METAL_FUNC constexpr const vec<T, R> &operator[](int c) const { return columns[c]; }
};

} // namespace metal

namespace assay::operators {

#define ASSAY_SUM(op)                                                                              \
    template <class T, int C, int R> METAL_FUNC constexpr matrix<T, C, R> operator op(             \
        matrix<T, C, R> a, const matrix<T, C, R> &b) {                                             \
        for (int c = 0; c < C; ++c)                                                                \
            a[c] op## = b[c];                                                                      \
        return a;                                                                                  \
    }                                                                                              \
    template <class T, int C, int R> METAL_FUNC constexpr matrix<T, C, R> &operator op##=(         \
        matrix<T, C, R> &a, const matrix<T, C, R> &b) {                                            \
        return a = a op b;                                                                         \
    }
ASSAY_SUM(+)
ASSAY_SUM(-)
#undef ASSAY_SUM
template <class T, int C, int R> METAL_FUNC constexpr matrix<T, C, R> operator-(matrix<T, C, R> a) {
    for (int c = 0; c < C; ++c)
        a[c] = -a[c];
    return a;
}

template <class T, int C, int R, class S, assay::if_splats<T, S> = 0>
METAL_FUNC constexpr matrix<T, C, R> operator*(matrix<T, C, R> m, S s) {
    for (int c = 0; c < C; ++c)
        m[c] *= s;
    return m;
}
template <class T, int C, int R, class S, assay::if_splats<T, S> = 0>
METAL_FUNC constexpr matrix<T, C, R> operator*(S s, matrix<T, C, R> m) {
    return m * s;
}
template <class T, int C, int R, class S, assay::if_splats<T, S> = 0>
METAL_FUNC constexpr matrix<T, C, R> operator/(matrix<T, C, R> m, S s) {
    for (int c = 0; c < C; ++c)
        m[c] /= s;
    return m;
}
template <class T, int C, int R>
METAL_FUNC constexpr vec<T, R> operator*(const matrix<T, C, R> &m, vec<T, C> v) {
    vec<T, R> sum = m[0] * v[0];
    for (int c = 1; c < C; ++c)
        sum += m[c] * v[c];
    return sum;
}
template <class T, int C, int R>
METAL_FUNC constexpr vec<T, C> operator*(vec<T, R> v, const matrix<T, C, R> &m) {
    vec<T, C> result(T(0));
    for (int c = 0; c < C; ++c) {
        T sum = v[0] * m[c][0];
        for (int r = 1; r < R; ++r)
            sum += v[r] * m[c][r];
        result[c] = sum;
    }
    return result;
}
template <class T, int C, int R, int K>
METAL_FUNC constexpr matrix<T, K, R> operator*(const matrix<T, C, R> &a, const matrix<T, K, C> &b) {
    matrix<T, K, R> product(T(0));
    for (int k = 0; k < K; ++k)
        product[k] = a * b[k];
    return product;
}

template <class T, int C, int R, class B>
METAL_FUNC constexpr matrix<T, C, R> &operator*=(matrix<T, C, R> &a, const B &b) {
    return a = a * b;
}
template <class T, int C, int R, class S>
METAL_FUNC constexpr matrix<T, C, R> &operator/=(matrix<T, C, R> &a, const S &s) {
    return a = a / s;
}

template <class T, int C, int R>
METAL_FUNC constexpr bool operator==(const matrix<T, C, R> &a, const matrix<T, C, R> &b) {
    for (int i = 0; i < C * R; ++i)
        if (a[i / R][i % R] != b[i / R][i % R])
            return false;
    return true;
}
template <class T, int C, int R>
METAL_FUNC constexpr bool operator!=(const matrix<T, C, R> &a, const matrix<T, C, R> &b) {
    return !(a == b);
}

} // namespace assay::operators

namespace metal {

template <class T, int C, int R>
METAL_FUNC constexpr matrix<T, R, C> transpose(const matrix<T, C, R> &m) {
    matrix<T, R, C> result(T(0));
    for (int c = 0; c < C; ++c)
        for (int r = 0; r < R; ++r)
            result[r][c] = m[c][r];
    return result;
}

template <class T> METAL_FUNC constexpr T determinant(const matrix<T, 2, 2> &m) {
    return m[0].x * m[1].y - m[0].y * m[1].x;
}
template <class T> METAL_FUNC constexpr T determinant(const matrix<T, 3, 3> &m) {
    return m[0].x * (m[1].y * m[2].z - m[1].z * m[2].y) -
           m[1].x * (m[0].y * m[2].z - m[0].z * m[2].y) +
           m[2].x * (m[0].y * m[1].z - m[0].z * m[1].y);
}
template <class T> METAL_FUNC constexpr T determinant(const matrix<T, 4, 4> &m) {
    T sum = T(0);
    for (int c = 0; c < 4; ++c) {
        matrix<T, 3, 3> minor(T(0));
        for (int k = 0, at = 0; k < 4; ++k)
            if (k != c)
                minor[at++] = m[k].yzw;
        const T term = m[c].x * determinant(minor);
        sum += c % 2 ? -term : term;
    }
    return sum;
}

} // namespace metal
