// tensor: Metal 4's tensors and tensor operations, as declarations.
//
// A descriptor is a template argument of a class type there, which C++ for OpenCL does not have:
// here its constructor is a function that gives a number, beside the class with its modes.
#pragma once

namespace metal {

constexpr __constant size_t dynamic_extent = ~size_t(0);

template <class I, size_t... E> struct extents {
    typedef I index_type;
    extents() = default;
    template <class... A> extents(A...);
    static constexpr size_t rank() { return sizeof...(E); }
    I extent(size_t) const;
};
template <class I, size_t... i> extents<I, (i, ~size_t(0))...> assay_dynamic(index_sequence<i...>);
template <class I, size_t rank> using dextents =
    decltype(assay_dynamic<I>(make_index_sequence<rank>()));

struct tensor_handle {};
struct tensor_offset {};
struct tensor_inline {};

template <class T, class E, class Descriptor = tensor_handle, class... Tags> struct tensor {
    typedef T element_type;
    typedef remove_addrspace_t<remove_cv_t<T>> value_type;
    typedef E extents_type;
    typedef typename E::index_type index_type;
    typedef T *data_handle_type;
    /* Templates, because only those make temporaries; the pointer must be to the space of T. */
    template <class P> tensor(P p, E) { T *data = p; }
    template <class P, class S> tensor(P p, E, S) { T *data = p; }
    E extents() const;
    index_type get_extent(size_t) const;
    index_type get_stride(size_t) const;
    T &operator[](index_type) const;
    template <size_t... S, class... O> tensor<T, E, tensor_inline> slice(O...) const;
    template <size_t... S, class... O> tensor<T, E, tensor_inline> static_slice(O...) const;
};
#define ASSAY_GUIDES(space)                                                                        \
    template <class T, class E> tensor(space T *, E) -> tensor<space T, E, tensor_inline>;         \
    template <class T, class E, class S> tensor(space T *, E, S)                                   \
        -> tensor<space T, E, tensor_inline>;                                                      \
    template <class T, class E, class... S>                                                        \
    tensor<space T, E, tensor_inline> assay_tensor(space T *, E, S...);
ASSAY_EACH_SPACE(ASSAY_GUIDES)
#undef ASSAY_GUIDES

template <size_t n> struct execution_threads { uint size() const; };
template <size_t n> struct execution_simdgroups { uint size() const; };
typedef execution_threads<1> execution_thread;
typedef execution_simdgroups<1> execution_simdgroup;

template <class T, class E, class Layout> struct cooperative_tensor {
    typedef T element_type;
    typedef T value_type;
    typedef E extents_type;
    struct iterator {
        T &operator*() const;
        iterator &operator++();
        iterator operator++(int);
        bool operator==(iterator) const;
        bool operator!=(iterator) const;
        bool is_valid_element() const;
        array<int, 2> get_multidimensional_index() const;
    };
    uint16_t get_capacity() const;
    bool is_valid_element(int) const;
    bool is_valid_element(iterator) const;
    bool get_mask(int) const;
    T &operator[](int);
    const T &operator[](int) const;
    array<int, 2> get_multidimensional_index(int) const;
    array<int, 2> get_multidimensional_index(iterator) const;
    iterator begin() const;
    iterator end() const;
    iterator get_iterator(int) const;
    template <class Other> iterator map_iterator(Other) const;
    template <class U, class F, class D> void load(const tensor<U, F, D> &);
    template <class U, class F, class D> void store(const tensor<U, F, D> &) const;
};

} // namespace metal

namespace mpp {
namespace tensor_ops {

template <class T> constexpr __constant T dynamic_length_v = T(0x7fffffff);
enum class reduction_operation { sum, max, min };
template <class T> struct reduction_operation_identity {
    static constexpr __constant T sum_identity = T();
    static constexpr __constant T max_identity = T();
    static constexpr __constant T min_identity = T();
};

struct matmul2d_descriptor {
    enum class mode { multiply, multiply_accumulate };
};
constexpr int
matmul2d_descriptor(int m, int, int = -1, bool = false, bool = false, bool = false,
                    enum matmul2d_descriptor::mode = matmul2d_descriptor::mode::multiply) {
    return m;
}

template <int descriptor, class Scope, class... Args> struct matmul2d {
    template <class T> using assay_registers = metal::cooperative_tensor<T, int, Scope>;
    template <class L, class R, class T, class C = int, class... A>
    assay_registers<L> get_left_input_cooperative_tensor(A...) const;
    template <class L, class R, class T, class C = int, class... A>
    assay_registers<R> get_right_input_cooperative_tensor(A...) const;
    template <class L, class R, class T, class C = int>
    assay_registers<T> get_destination_cooperative_tensor() const;
    template <class L, class R, class T, class C = int>
    assay_registers<T> get_row_reduction_destination_cooperative_tensor() const;
    template <class L, class R, class T, class C = int>
    assay_registers<T> get_column_reduction_destination_cooperative_tensor() const;
    template <class L, class R, class T, class S> bool is_compatible_as_left_input(S) const;
    template <class L, class R, class T, class S> bool is_compatible_as_right_input(S) const;
    template <class L, class R, class T> void run(L &, R &, T &) const;
};

template <class S, class T, class... More> void reduce_rows(S &, T &, More...);
template <class S, class T, class... More> void reduce_columns(S &, T &, More...);
template <class S, class T> bool is_iterator_compatible(const S &, const T &);

} // namespace tensor_ops
} // namespace mpp
