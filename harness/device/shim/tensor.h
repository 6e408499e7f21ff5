// tensor: Metal 4's views of memory: extents, and tensors over device and threadgroup memory.
//
// A tensor is a pointer, extents and strides; the first dimension is the one that lies together. A
// slice moves the origin: without extents of its own it ends where the tensor ends, and operations
// stop there; with extents of its own nothing is checked, as on a GPU.
#pragma once
#pragma clang system_header

#include "wide.h"

namespace metal {

constexpr size_t dynamic_extent = ~size_t(0);

template <class I, size_t... E> struct extents {
    using index_type = I;
    using size_type = make_unsigned_t<I>;
    using rank_type = size_t;
    I assay_value[sizeof...(E) + 1];

    static METAL_FUNC constexpr size_t rank() { return sizeof...(E); }
    static METAL_FUNC constexpr size_t rank_dynamic() {
        return (size_t(E == dynamic_extent) + ... + 0);
    }
    static METAL_FUNC constexpr size_t static_extent(size_t r) {
        constexpr size_t list[] = {E..., 0};
        return list[r];
    }
    METAL_FUNC constexpr extents() : assay_value{(E == dynamic_extent ? I(0) : I(E))..., I(0)} {}
    // One value for every extent, or only for those that are dynamic.
    template <class... A,
              enable_if_t<(sizeof...(A) > 0) && (is_convertible_v<A, I> && ...), int> = 0>
    METAL_FUNC constexpr extents(A... a) : extents() {
        constexpr bool all = sizeof...(A) == sizeof...(E);
        static_assert(all || sizeof...(A) == rank_dynamic(),
                      "extents take a value for each dimension, or for each dynamic one");
        const I given[] = {static_cast<I>(a)...};
        for (size_t r = 0, next = 0; r < rank(); ++r)
            if (all || static_extent(r) == dynamic_extent)
                assay_value[r] = given[next++];
    }
    METAL_FUNC constexpr I extent(size_t r) const { return assay_value[r]; }
};

} // namespace metal

namespace assay {
template <class I, size_t> constexpr size_t every = metal::dynamic_extent;
template <class I, size_t... i>
metal::extents<I, every<I, i>...> make_dynamic(metal::index_sequence<i...>);
} // namespace assay

namespace metal {

template <class I, size_t rank> using dextents =
    decltype(assay::make_dynamic<I>(make_index_sequence<rank>()));

struct tensor_handle {};
struct tensor_offset {};
struct tensor_inline {};

template <class T, class E, class Descriptor = tensor_handle, class... Tags> struct tensor {
    using element_type = T;
    using value_type = remove_cv_t<T>;
    using extents_type = E;
    using index_type = typename E::index_type;
    using data_handle_type = T *;
    static constexpr size_t assay_rank = E::rank();

    T *assay_data;
    E assay_extents;
    long assay_stride[assay_rank + 1];

    METAL_FUNC constexpr tensor(T *data, E e) : assay_data(data), assay_extents(e), assay_stride{} {
        long stride = 1;
        for (size_t r = 0; r < assay_rank; ++r) {
            assay_stride[r] = stride;
            stride *= e.extent(r);
        }
    }
    template <class S> METAL_FUNC constexpr tensor(T *data, E e, array<S, assay_rank> strides)
        : assay_data(data), assay_extents(e), assay_stride{} {
        for (size_t r = 0; r < assay_rank; ++r)
            assay_stride[r] = static_cast<long>(strides[r]);
    }

    static METAL_FUNC constexpr size_t get_rank() { return assay_rank; }
    static METAL_FUNC constexpr size_t get_static_extent(size_t r) { return E::static_extent(r); }
    METAL_FUNC constexpr E extents() const { return assay_extents; }
    METAL_FUNC constexpr index_type get_extent(size_t r) const { return assay_extents.extent(r); }
    METAL_FUNC constexpr index_type get_stride(size_t r) const {
        return static_cast<index_type>(assay_stride[r]);
    }
    METAL_FUNC constexpr T *data_handle() const { return assay_data; }

    template <class... A> METAL_FUNC T &operator[](A... at) const {
        static_assert(sizeof...(A) == assay_rank, "a tensor takes an index for each dimension");
        return assay_data[find(static_cast<long>(at)...)];
    }

    template <size_t... S, class... O> METAL_FUNC auto slice(O... origin) const {
        static_assert(sizeof...(O) == assay_rank, "a slice takes an origin for each dimension");
        if constexpr (sizeof...(S) == 0)
            return cut<dextents<index_type, assay_rank>>(static_cast<long>(origin)...);
        else
            return cut<metal::extents<index_type, S...>>(static_cast<long>(origin)...);
    }
    template <size_t... S, class... O> METAL_FUNC auto static_slice(O... origin) const {
        return slice<S...>(origin...);
    }

  private:
    template <class... A> METAL_FUNC long find(A... at) const {
        const long index[] = {at...};
        long offset = 0;
        for (size_t r = 0; r < assay_rank; ++r)
            offset += index[r] * assay_stride[r];
        return offset;
    }
    template <class F, class... O> METAL_FUNC auto cut(O... origin) const {
        const long from[] = {origin...};
        tensor<T, F, tensor_inline> part(assay_data + find(origin...), F());
        for (size_t r = 0; r < assay_rank; ++r) {
            const long left = static_cast<long>(get_extent(r)) - from[r];
            part.assay_stride[r] = assay_stride[r];
            if (F::static_extent(r) == dynamic_extent)
                part.assay_extents.assay_value[r] = static_cast<index_type>(left > 0 ? left : 0);
        }
        return part;
    }
};

template <class T, class E> tensor(T *, E) -> tensor<T, E, tensor_inline>;
template <class T, class E, class S> tensor(T *, E, S) -> tensor<T, E, tensor_inline>;

template <class T> struct is_tensor : false_type {};
template <class T, class E, class D, class... Tags> struct is_tensor<tensor<T, E, D, Tags...>>
    : true_type {};
template <class T> constexpr bool is_tensor_v = is_tensor<T>::value;

} // namespace metal
