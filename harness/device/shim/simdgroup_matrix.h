// simdgroup_matrix: the 8 x 8 matrices that the 32 lanes of a simdgroup hold together.
//
// Each lane holds two neighbours of one row, in the places Apple's GPUs use: kernels address them as
// thread_elements()[0] and [1]. Loads and stores are each lane's own, a product is one meeting of all
// lanes (product.h of the target).
//
// Products accumulate in float, k going up, and are rounded to the result's type at the end.
#pragma once
#pragma clang system_header

#include "simd.h"

namespace assay {

struct fragment_access;

METAL_FUNC constexpr uint fragment_row(uint lane) {
    return (lane >> 4 & 1) * 4 + (lane >> 1 & 3);
}
METAL_FUNC constexpr uint fragment_column(uint lane) {
    return (lane >> 3 & 1) * 4 + (lane & 1) * 2;
}

// What thread_elements() refers to. For Apple's compiler it is a vector of 64, to which nothing that a
// lane holds can be assigned: only its elements can.
template <class T> class fragment {
  public:
    METAL_FUNC T &operator[](int i) { return pair[i]; }
    METAL_FUNC const T &operator[](int i) const { return pair[i]; }

  private:
    friend struct fragment_access;
    metal::vec<T, 2> pair;
};

} // namespace assay

#include "product.h"

namespace metal {

template <class T, int C, int R> struct simdgroup_matrix {
    static_assert(C == 8 && R == 8, "MSL has simdgroup matrices of 8 x 8");
    static_assert(is_floating_point_v<T>, "of half, bfloat and float");

    simdgroup_matrix() = default;
    METAL_FUNC explicit simdgroup_matrix(T diagonal) {
        const uint lane = assay::lane_index();
        const uint row = assay::fragment_row(lane), column = assay::fragment_column(lane);
        elements[0] = row == column ? diagonal : T(0);
        elements[1] = row == column + 1 ? diagonal : T(0);
    }

    METAL_FUNC assay::fragment<T> &thread_elements() { return elements; }
    METAL_FUNC assay::fragment<T> thread_elements() const { return elements; }

  private:
    friend struct assay::fragment_access;
    assay::fragment<T> elements;
};

} // namespace metal

namespace assay {

// A lane's elements as the two that they are.
struct fragment_access {
    template <class T>
    static METAL_FUNC metal::vec<T, 2> get(const metal::simdgroup_matrix<T, 8, 8> &m) {
        return m.elements.pair;
    }
    template <class T>
    static METAL_FUNC void set(metal::simdgroup_matrix<T, 8, 8> &m, metal::vec<T, 2> pair) {
        m.elements.pair = pair;
    }
};

} // namespace assay

namespace metal {

typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;

template <class T, int C, int R = C>
METAL_FUNC simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T value) {
    simdgroup_matrix<T, C, R> m;
    assay::fragment_access::set(m, vec<T, 2>(value));
    return m;
}
template <class T, int C, int R = C>
METAL_FUNC simdgroup_matrix<T, C, R> make_diagonal_simdgroup_matrix(T value) {
    return simdgroup_matrix<T, C, R>(value);
}

} // namespace metal

namespace assay {

// The place of a lane's first element in memory, and the step to its second.
struct fragment_place {
    ulong at, step;
    METAL_FUNC fragment_place(ulong stride, metal::vec<ulong, 2> origin, bool transpose) {
        const uint lane = lane_index();
        const ulong row = fragment_row(lane), column = fragment_column(lane);
        at = transpose ? (origin.y + column) * stride + origin.x + row
                       : (origin.y + row) * stride + origin.x + column;
        step = transpose ? stride : 1;
    }
};

} // namespace assay

namespace metal {

// origin is (column, row) of the matrix in memory, whose rows are `elements_per_row` apart.
template <class T> METAL_FUNC void simdgroup_load(simdgroup_matrix<T, 8, 8> &d, const T *source,
                                                  ulong elements_per_row = 8,
                                                  vec<ulong, 2> matrix_origin = vec<ulong, 2>(0ul),
                                                  bool transpose_matrix = false) {
    assay::meet_for_matrix();
    const assay::fragment_place place(elements_per_row, matrix_origin, transpose_matrix);
    assay::fragment_access::set(d, vec<T, 2>(source[place.at], source[place.at + place.step]));
}
template <class T> METAL_FUNC void simdgroup_store(const simdgroup_matrix<T, 8, 8> &a, T *target,
                                                   ulong elements_per_row = 8,
                                                   vec<ulong, 2> matrix_origin = vec<ulong, 2>(0ul),
                                                   bool transpose_matrix = false) {
    assay::meet_for_matrix();
    const assay::fragment_place place(elements_per_row, matrix_origin, transpose_matrix);
    const vec<T, 2> pair = assay::fragment_access::get(a);
    target[place.at] = pair.x;
    target[place.at + place.step] = pair.y;
}

template <class D, class A, class B, class C>
METAL_FUNC void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8> &d,
                                              const simdgroup_matrix<A, 8, 8> &a,
                                              const simdgroup_matrix<B, 8, 8> &b,
                                              const simdgroup_matrix<C, 8, 8> &c) {
    using assay::fragment_access;
    fragment_access::set(d, assay::multiply_fragments<D>(fragment_access::get(a),
                                                         fragment_access::get(b),
                                                         fragment_access::get(c)));
}
template <class D, class A, class B>
METAL_FUNC void simdgroup_multiply(simdgroup_matrix<D, 8, 8> &d, const simdgroup_matrix<A, 8, 8> &a,
                                   const simdgroup_matrix<B, 8, 8> &b) {
    simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>(D(0)));
}
template <class A, class B> METAL_FUNC simdgroup_matrix<A, 8, 8>
operator*(const simdgroup_matrix<A, 8, 8> &a, const simdgroup_matrix<B, 8, 8> &b) {
    simdgroup_matrix<A, 8, 8> d;
    simdgroup_multiply(d, a, b);
    return d;
}

} // namespace metal
