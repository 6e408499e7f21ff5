// tensor_ops: products of matrices of Metal Performance Primitives, mpp::tensor_ops::matmul2d.
//
// left is m by k and right k by n; the first dimension of their tensors is k and n, or m and k
// where they are transposed, and that of the destination is n. How the threads of the scope
// multiply is the target's business (multiply.h of cpu/): multiply_tensors, reduce_lines.
#pragma once
#pragma clang system_header

#include "cooperative.h"

namespace mpp {
namespace tensor_ops {

template <class T> struct dynamic_length {
    static constexpr T value = metal::numeric_limits<T>::max();
};
template <class T> constexpr T dynamic_length_v = dynamic_length<T>::value;

enum class reduction_operation { sum, max, min };
template <class T> struct reduction_operation_identity {
    static constexpr T sum_identity = T(0);
    static constexpr T max_identity = metal::numeric_limits<T>::lowest();
    static constexpr T min_identity = metal::numeric_limits<T>::max();
};

struct matmul2d_descriptor {
    enum class mode { multiply, multiply_accumulate };
    int m, n, k;
    bool transpose_left, transpose_right, relaxed_precision;
    mode matmul_mode;

    constexpr matmul2d_descriptor(int m_, int n_, int k_ = -1, bool transpose_left_ = false,
                                  bool transpose_right_ = false, bool relaxed_precision_ = false,
                                  mode mode_ = mode::multiply)
        : m(m_), n(n_), k(k_), transpose_left(transpose_left_), transpose_right(transpose_right_),
          relaxed_precision(relaxed_precision_), matmul_mode(mode_) {}
};

} // namespace tensor_ops
} // namespace mpp

#include "multiply.h"

namespace mpp {
namespace tensor_ops {

template <matmul2d_descriptor D, class Scope, class... Args> struct matmul2d {
    static constexpr matmul2d_descriptor descriptor = D;
    using scope = Scope;
    static constexpr int assay_simdgroups = Scope::assay_simdgroups;
    static constexpr bool assay_is_dynamic = D.k == -1 || D.k == dynamic_length_v<int>;
    static_assert(D.m > 0 && D.n > 0, "m and n of a matmul2d_descriptor must be positive");
    static_assert(D.k > 0 || assay_is_dynamic,
                  "k of a matmul2d_descriptor must be positive, or dynamic_extent");

    template <int x, int y, class T, class C> using assay_registers =
        metal::cooperative_tensor<T, metal::extents<C, x, y>,
                                  assay::register_layout<x, y, assay_simdgroups>>;
    static constexpr int assay_k = assay_is_dynamic ? 1 : D.k;

    template <class L, class R, class T, class C = int, class...>
    using cooperative_tensor_left_input_t =
        assay_registers<D.transpose_left ? D.m : assay_k, D.transpose_left ? assay_k : D.m, L, C>;
    template <class L, class R, class T, class C = int, class...>
    using cooperative_tensor_right_input_t =
        assay_registers<D.transpose_right ? assay_k : D.n, D.transpose_right ? D.n : assay_k, R, C>;
    template <class L, class R, class T, class C = int, class...>
    using cooperative_tensor_destination_t = assay_registers<D.n, D.m, T, C>;

    template <bool of_rows, class T, class C> using assay_lines = metal::cooperative_tensor<
        T, metal::extents<C, of_rows ? D.m : D.n>,
        assay::line_layout<assay::register_layout<D.n, D.m, assay_simdgroups>, of_rows>>;
    template <class L, class R, class T, class C = int, class...>
    using cooperative_tensor_row_reduction_destination_t = assay_lines<true, T, C>;
    template <class L, class R, class T, class C = int, class...>
    using cooperative_tensor_column_reduction_destination_t = assay_lines<false, T, C>;

    template <class L, class R, class T, class C = int>
    METAL_FUNC auto get_left_input_cooperative_tensor() const {
        static_assert(!assay_is_dynamic, "a cooperative tensor of inputs needs a k that is known");
        return cooperative_tensor_left_input_t<L, R, T, C>();
    }
    template <class L, class R, class T, class C = int>
    METAL_FUNC auto get_right_input_cooperative_tensor() const {
        static_assert(!assay_is_dynamic, "a cooperative tensor of inputs needs a k that is known");
        return cooperative_tensor_right_input_t<L, R, T, C>();
    }
    template <class L, class R, class T, class C = int>
    METAL_FUNC auto get_destination_cooperative_tensor() const {
        return cooperative_tensor_destination_t<L, R, T, C>();
    }
    template <class L, class R, class T, class C = int>
    METAL_FUNC auto get_row_reduction_destination_cooperative_tensor() const {
        return assay_lines<true, T, C>();
    }
    template <class L, class R, class T, class C = int>
    METAL_FUNC auto get_column_reduction_destination_cooperative_tensor() const {
        return assay_lines<false, T, C>();
    }

    // What another operation left in registers, as an input of this one, where it lies as it must.
    template <class L, class R, class T, class Source>
    METAL_FUNC bool is_compatible_as_left_input(const Source &) const {
        return assay::lies_alike<Source, cooperative_tensor_left_input_t<L, R, T>>();
    }
    template <class L, class R, class T, class Source>
    METAL_FUNC bool is_compatible_as_right_input(const Source &) const {
        return assay::lies_alike<Source, cooperative_tensor_right_input_t<L, R, T>>();
    }
    template <class L, class R, class T, class C = int, class Source>
    METAL_FUNC auto get_left_input_cooperative_tensor(const Source &source) const {
        return assay::copy_registers<cooperative_tensor_left_input_t<L, R, T, C>>(source);
    }
    template <class L, class R, class T, class C = int, class Source>
    METAL_FUNC auto get_right_input_cooperative_tensor(const Source &source) const {
        return assay::copy_registers<cooperative_tensor_right_input_t<L, R, T, C>>(source);
    }

    template <class L, class R, class T> METAL_FUNC void run(L &left, R &right, T &target) const {
        static_assert(metal::is_tensor_v<L> || metal::is_cooperative_tensor_v<L>,
                      "the left input of matmul2d is not a tensor");
        static_assert(metal::is_tensor_v<R> || metal::is_cooperative_tensor_v<R>,
                      "the right input of matmul2d is not a tensor");
        if constexpr (metal::is_cooperative_tensor_v<T>) {
            assay::multiply_tensors<matmul2d>(left, right, target);
        } else {
            auto sums = get_destination_cooperative_tensor<L, R, typename T::value_type>();
            if (D.matmul_mode == matmul2d_descriptor::mode::multiply_accumulate)
                sums.load(target);
            assay::multiply_tensors<matmul2d>(left, right, sums);
            sums.store(target);
        }
    }
};

// Each value of the destination becomes that of a row's or a column's elements. identity takes
// part.
template <class T, class E, class F, class L, class M>
METAL_FUNC void reduce_rows(metal::cooperative_tensor<T, E, L> &source,
                            metal::cooperative_tensor<T, F, M> &target,
                            reduction_operation op = reduction_operation::sum,
                            T identity = reduction_operation_identity<T>::sum_identity) {
    assay::reduce_lines(source, target, op, identity);
}
template <class T, class E, class F, class L, class M>
METAL_FUNC void reduce_columns(metal::cooperative_tensor<T, E, L> &source,
                               metal::cooperative_tensor<T, F, M> &target,
                               reduction_operation op = reduction_operation::sum,
                               T identity = reduction_operation_identity<T>::sum_identity) {
    assay::reduce_lines(source, target, op, identity);
}

template <class T, class U, class E, class F, class L, class M>
METAL_FUNC bool is_iterator_compatible(const metal::cooperative_tensor<T, E, L> &,
                                       const metal::cooperative_tensor<U, F, M> &) {
    return __is_base_of(L, M) || __is_same(L, M);
}

} // namespace tensor_ops
} // namespace mpp
