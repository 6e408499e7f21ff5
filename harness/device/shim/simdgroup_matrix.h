// simdgroup_matrix: the 8 x 8 matrices that the 32 lanes of a simdgroup hold together.
//
// Each lane holds two neighbours of one row. Where kernels address them as thread_elements()[0] and
// [1], they are in the places Apple's GPUs use; otherwise the target chooses (product.h). Loads and
// stores are each lane's own, a product is one meeting of all lanes.
//
// Products accumulate in float and are rounded to the result's type at the end.
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

struct apple_places {
    static METAL_FUNC uint row(uint lane) { return fragment_row(lane); }
    static METAL_FUNC uint column(uint lane) { return fragment_column(lane); }
};

// What a lane holds, as it is. `origin` is (column, row) of the matrix in memory, whose rows are
// `stride` apart.
template <class T, class Places> struct plain_fragment {
    typedef metal::vec<T, 2> type;
    typedef Places places;

    static METAL_FUNC void allow_elements() {}
    static METAL_FUNC type fill(T value) { return type(value); }
    static METAL_FUNC type make_diagonal(T value) {
        const uint lane = lane_index(), row = Places::row(lane), column = Places::column(lane);
        return type(row == column ? value : T(0), row == column + 1 ? value : T(0));
    }
    static METAL_FUNC type load(const T *source, ulong stride, metal::vec<ulong, 2> origin,
                                bool transpose) {
        const T *at = find(source, stride, origin, transpose);
        return type(at[0], at[transpose ? stride : 1]);
    }
    static METAL_FUNC void store(type pair, T *target, ulong stride, metal::vec<ulong, 2> origin,
                                 bool transpose) {
        T *at = find(target, stride, origin, transpose);
        at[0] = pair.x;
        at[transpose ? stride : 1] = pair.y;
    }

    // In two steps, from which compilers see how far pairs are aligned.
    template <class P>
    static METAL_FUNC P *find(P *at, ulong stride, metal::vec<ulong, 2> origin, bool transpose) {
        const uint lane = lane_index();
        const uint row = Places::row(lane), column = Places::column(lane);
        at += (origin.y + (transpose ? column : row)) * stride;
        return at + (origin.x + (transpose ? row : column));
    }
};

// Row lane / 4, columns 2 * (lane % 4) and 1 after it: of a product's first matrix and of its sums.
// Of the second it is the column lane / 4 and those rows.
struct tensor_places {
    static METAL_FUNC uint row(uint lane) { return lane / 4; }
    static METAL_FUNC uint column(uint lane) { return lane % 4 * 2; }
};

// What was loaded transposed is kept as it was in memory, which is the second matrix of a product as
// tensor cores want it. Compilers know at every use which of the two it is.
template <class T> struct turned_fragment {
    typedef plain_fragment<T, tensor_places> plain;
    typedef tensor_places places;
    struct type {
        metal::vec<T, 2> pair;
        bool is_turned = false;
        METAL_FUNC T &operator[](int i) { return pair[i]; }
        METAL_FUNC const T &operator[](int i) const { return pair[i]; }
    };

    static METAL_FUNC type fill(T value) { return {plain::fill(value), false}; }
    static METAL_FUNC type make_diagonal(T value) { return {plain::make_diagonal(value), false}; }
    static METAL_FUNC type load(const T *source, ulong stride, metal::vec<ulong, 2> origin,
                                bool transpose) {
        return {plain::load(source, stride, origin, false), transpose};
    }
    static METAL_FUNC void store(type a, T *target, ulong stride, metal::vec<ulong, 2> origin,
                                 bool transpose) {
        plain::store(a.pair, target, stride, origin, transpose != a.is_turned);
    }
};

} // namespace assay

#include "product.h"

namespace assay {

// What thread_elements() refers to. For Apple's compiler it is a vector of 64, to which nothing that a
// lane holds can be assigned: only its elements can.
template <class T> class fragment {
  public:
    METAL_FUNC T &operator[](int i) { return held[i]; }
    METAL_FUNC const T &operator[](int i) const { return held[i]; }

  private:
    friend struct fragment_access;
    typename fragment_form<T>::type held;
};

// What a lane holds of a matrix.
struct fragment_access {
    template <class M> static METAL_FUNC auto get(const M &m) { return m.elements.held; }
    template <class M, class H> static METAL_FUNC void set(M &m, H held) { m.elements.held = held; }
    template <class M> static METAL_FUNC auto &refer(M &m) { return m.elements; }
};

// For kernels that ask where elements are (kernels/product/matrix.h): of sums of floats, which are never turned.
#define ASSAY_ELEMENTS(matrix) assay::fragment_access::refer(matrix)
#define ASSAY_ELEMENT_ROW(lane) assay::fragment_form<float>::places::row(lane)
#define ASSAY_ELEMENT_COLUMN(lane) assay::fragment_form<float>::places::column(lane)

} // namespace assay

namespace metal {

template <class T, int C, int R> struct simdgroup_matrix : assay::operators::of_matrices {
    static_assert(C == 8 && R == 8, "MSL has simdgroup matrices of 8 x 8");
    static_assert(is_floating_point_v<T>, "of half, bfloat and float");

    simdgroup_matrix() = default;
    METAL_FUNC explicit simdgroup_matrix(T diagonal) {
        assay::fragment_access::set(*this, assay::fragment_form<T>::make_diagonal(diagonal));
    }

    METAL_FUNC assay::fragment<T> &thread_elements() {
        assay::fragment_form<T>::allow_elements();
        return elements;
    }
    METAL_FUNC assay::fragment<T> thread_elements() const {
        assay::fragment_form<T>::allow_elements();
        return elements;
    }

  private:
    friend struct assay::fragment_access;
    assay::fragment<T> elements;
};

typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;

template <class T, int C, int R = C>
METAL_FUNC simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T value) {
    simdgroup_matrix<T, C, R> m;
    assay::fragment_access::set(m, assay::fragment_form<T>::fill(value));
    return m;
}
template <class T, int C, int R = C>
METAL_FUNC simdgroup_matrix<T, C, R> make_diagonal_simdgroup_matrix(T value) {
    return simdgroup_matrix<T, C, R>(value);
}

// origin is (column, row) of the matrix in memory, whose rows are `elements_per_row` apart.
template <class T> METAL_FUNC void simdgroup_load(simdgroup_matrix<T, 8, 8> &d, const T *source,
                                                  ulong elements_per_row = 8,
                                                  vec<ulong, 2> matrix_origin = vec<ulong, 2>(0ul),
                                                  bool transpose_matrix = false) {
    assay::meet_for_matrix();
    assay::fragment_access::set(d, assay::fragment_form<T>::load(source, elements_per_row,
                                                                 matrix_origin, transpose_matrix));
}
template <class T> METAL_FUNC void simdgroup_store(const simdgroup_matrix<T, 8, 8> &a, T *target,
                                                   ulong elements_per_row = 8,
                                                   vec<ulong, 2> matrix_origin = vec<ulong, 2>(0ul),
                                                   bool transpose_matrix = false) {
    assay::meet_for_matrix();
    assay::fragment_form<T>::store(assay::fragment_access::get(a), target, elements_per_row,
                                   matrix_origin, transpose_matrix);
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

} // namespace metal

namespace assay {

namespace operators {
template <class A, class B> METAL_FUNC simdgroup_matrix<A, 8, 8>
operator*(const simdgroup_matrix<A, 8, 8> &a, const simdgroup_matrix<B, 8, 8> &b) {
    simdgroup_matrix<A, 8, 8> d;
    simdgroup_multiply(d, a, b);
    return d;
}
} // namespace operators

// d = the sum of a b, for kernels that multiply a few matrices in a row (kernels/product/matrix.h): a device may
// round only the sum.
#define ASSAY_MULTIPLY_SEVERAL(d, a, b) assay::multiply_several(d, a, b)
template <class A, class B, int n>
METAL_FUNC void multiply_several(metal::simdgroup_float8x8 &d,
                                 const metal::simdgroup_matrix<A, 8, 8> (&a)[n],
                                 const metal::simdgroup_matrix<B, 8, 8> (&b)[n]) {
#ifdef ASSAY_ADDS_PRODUCTS
    if constexpr (__is_same(typename fragment_form<A>::places, tensor_places)) {
        typename fragment_form<A>::type rows[n];
        typename fragment_form<B>::type columns[n];
        for (int i = 0; i < n; ++i) {
            rows[i] = fragment_access::get(a[i]);
            columns[i] = fragment_access::get(b[i]);
        }
        fragment_access::set(d, add_products<A, B>(rows, columns));
        return;
    }
#endif
    metal::simdgroup_multiply(d, a[0], b[0]);
    for (int i = 1; i < n; ++i)
        metal::simdgroup_multiply_accumulate(d, a[i], b[i], d);
}

} // namespace assay
