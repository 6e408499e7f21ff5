// cooperative: tensors whose elements are in the registers of the threads that compute together.
//
// Which element is in which thread, and at which index, is not defined by MSL. Here it is another
// one in each launch (soft_launch's layout), some of a thread's elements are not valid, and a
// kernel that assumes a layout instead of asking for it computes something wrong. Layout 0 is the
// one that kernels for one GPU assume: fragments of 16 x 16, eight elements to a lane.
#pragma once
#pragma clang system_header

#include "tensor.h"

#include "scope.h"

namespace metal {

template <size_t n> struct execution_threads {
    static_assert(n == 1, "execution_threads<1> is the only one");
    static constexpr int assay_simdgroups = 0;
    static METAL_FUNC constexpr uint size() { return n; }
};
template <size_t n> struct execution_simdgroups {
    static_assert(n > 0, "execution_simdgroups<0> is not supported");
    static constexpr int assay_simdgroups = n;
    static METAL_FUNC constexpr uint size() { return n; }
};
using execution_thread = execution_threads<1>;
using execution_simdgroup = execution_simdgroups<1>;

} // namespace metal

namespace assay {

// Where the elements of an X by Y tensor are. Elements are numbered along X; `none` and more are
// not elements.
template <int X, int Y, int Simdgroups> struct register_layout {
    static constexpr int simdgroups = Simdgroups, width = X;
    static constexpr int threads = Simdgroups ? Simdgroups * MSL_LANES : 1;
    static constexpr int none = X * Y, least = (none + threads - 1) / threads;
    static constexpr int slots = threads * (least + 1);
    static constexpr int fragments = X % 16 || Y % 16 ? 0 : X / 16 * (Y / 16);
    static constexpr bool has_fragments =
        Simdgroups && fragments && fragments % (Simdgroups ? Simdgroups : 1) == 0;

    int step, shift; // step 0: layout 0

    METAL_FUNC register_layout() : step(0), shift(0) {
        const uint layout = get_tensor_layout();
        if (layout == 0)
            return;
        const uint mixed = (layout * 2654435761u ^ X * 40503u ^ Y * 9176u) >> 4;
        for (step = 5 + static_cast<int>(mixed % 64) * 2; has_common_factor(step); step += 2) {
        }
        shift = static_cast<int>(mixed % slots);
    }
    METAL_FUNC int get_capacity() const { return step ? least + 1 : least; }
    METAL_FUNC int find(uint thread, int i) const {
        if (thread >= threads || static_cast<uint>(i) >= static_cast<uint>(get_capacity()))
            return none;
        if (step)
            return ((static_cast<int>(thread) * (least + 1) + i) * step + shift) % slots;
        if constexpr (has_fragments)
            return find_in_fragments(thread, i);
        else
            return i * threads + static_cast<int>(thread);
    }

  private:
    static METAL_FUNC bool has_common_factor(int step) {
        int a = slots, b = step;
        while (b) {
            const int rest = a % b;
            a = b;
            b = rest;
        }
        return a != 1;
    }
    static METAL_FUNC int find_in_fragments(uint thread, int i) {
        const int lane = static_cast<int>(thread % MSL_LANES), quad = lane >> 2;
        const int fragment = i / 8 * Simdgroups + static_cast<int>(thread / MSL_LANES);
        const int row = (quad & 4) + (lane >> 1 & 3) + (i % 8 >= 4 ? 8 : 0);
        const int column = ((quad & 2) + (lane & 1)) * 4 + i % 4;
        return (fragment / (X / 16) * 16 + row) * X + fragment % (X / 16) * 16 + column;
    }
};

// One value for each row or column of a tensor with layout Of, at every index of the thread that
// has one of its elements; valid where that is the first.
template <class Of, bool of_rows> struct line_layout : Of {
    METAL_FUNC int find_line(int element) const {
        return of_rows ? element / Of::width : element % Of::width;
    }
    METAL_FUNC bool is_first(int element) const {
        return element < Of::none && (of_rows ? element % Of::width : element / Of::width) == 0;
    }
};

} // namespace assay

namespace metal {

template <class T, class E, class Layout> struct cooperative_tensor {
    using element_type = T;
    using value_type = T;
    using extents_type = E;
    using index_type = typename E::index_type;
    using layout = Layout;
    using thread_index_type = uint16_t;
    static constexpr size_t assay_rank = E::rank();
    static constexpr int assay_simdgroups = Layout::simdgroups;

    Layout assay_layout;
    T assay_elements[Layout::least + 2]; // the last one is for indices that are wrong

    template <class Tensor, class Element> struct assay_iterator {
        Tensor *of;
        int at;
        METAL_FUNC Element &operator*() const { return (*of)[at]; }
        METAL_FUNC Element *operator->() const { return &(*of)[at]; }
        METAL_FUNC assay_iterator &operator++() {
            ++at;
            return *this;
        }
        METAL_FUNC assay_iterator operator++(int) {
            assay_iterator before = *this;
            ++at;
            return before;
        }
        METAL_FUNC bool operator==(assay_iterator other) const { return at == other.at; }
        METAL_FUNC bool operator!=(assay_iterator other) const { return at != other.at; }
        METAL_FUNC bool is_valid_element() const { return of->is_valid_element(at); }
        METAL_FUNC auto get_multidimensional_index() const {
            return of->get_multidimensional_index(at);
        }
    };
    using iterator = assay_iterator<cooperative_tensor, T>;
    using const_iterator = assay_iterator<const cooperative_tensor, const T>;

    METAL_FUNC cooperative_tensor() : assay_layout(), assay_elements{} {}

    METAL_FUNC uint16_t get_capacity() const {
        return static_cast<uint16_t>(assay_layout.get_capacity());
    }
    METAL_FUNC bool is_valid_element(int i) const {
        const int element = find(i);
        if constexpr (assay_rank == 1)
            return assay_layout.is_first(element);
        else
            return element < Layout::none;
    }
    METAL_FUNC bool get_mask(int i) const { return is_valid_element(i); }
    METAL_FUNC bool is_valid_element(const_iterator it) const { return is_valid_element(it.at); }
    METAL_FUNC T &operator[](int i) { return assay_elements[check(i)]; }
    METAL_FUNC const T &operator[](int i) const { return assay_elements[check(i)]; }

    METAL_FUNC array<index_type, assay_rank> get_multidimensional_index(int i) const {
        const int element = find(i);
        array<index_type, assay_rank> at;
        if constexpr (assay_rank == 1) {
            at[0] = static_cast<index_type>(assay_layout.find_line(element));
        } else {
            at[0] = static_cast<index_type>(element % Layout::width);
            at[1] = static_cast<index_type>(element / Layout::width);
        }
        return at;
    }
    METAL_FUNC auto get_multidimensional_index(const_iterator it) const {
        return get_multidimensional_index(it.at);
    }

    METAL_FUNC iterator begin() { return {this, 0}; }
    METAL_FUNC iterator end() { return {this, get_capacity()}; }
    METAL_FUNC const_iterator begin() const { return {this, 0}; }
    METAL_FUNC const_iterator end() const { return {this, get_capacity()}; }
    METAL_FUNC iterator get_iterator(int i) { return {this, i}; }
    template <class Other> METAL_FUNC iterator map_iterator(Other it) { return {this, it.at}; }
    template <class Other> METAL_FUNC const_iterator map_iterator(Other it) const {
        return {this, it.at};
    }

    template <class Tensor> METAL_FUNC void load(const Tensor &from) {
        for (int i = 0; i < get_capacity(); ++i)
            if (is_valid_element(i))
                assay_elements[i] = is_inside(from, i) ? assay::to<T>(*find_in(from, i)) : T(0);
    }
    template <class Tensor> METAL_FUNC void store(const Tensor &target) const {
        for (int i = 0; i < get_capacity(); ++i)
            if (is_valid_element(i) && is_inside(target, i))
                *find_in(target, i) = assay::to<typename Tensor::value_type>(assay_elements[i]);
    }

  private:
    METAL_FUNC int find(int i) const {
        return assay_layout.find(assay::get_scope_thread<assay_simdgroups>(), i);
    }
    METAL_FUNC int check(int i) const {
        const bool is_wrong = static_cast<uint>(i) >= static_cast<uint>(get_capacity());
        ASSAY_CHECK(is_wrong, SOFT_INDEX, i, "'cooperative tensor'");
        return is_wrong ? Layout::least + 1 : i;
    }
    template <class Tensor> METAL_FUNC bool is_inside(const Tensor &t, int i) const {
        const auto at = get_multidimensional_index(i);
        for (size_t r = 0; r < assay_rank; ++r)
            if (at[r] >= t.get_extent(r))
                return false;
        return true;
    }
    template <class Tensor> METAL_FUNC auto find_in(const Tensor &t, int i) const {
        const auto at = get_multidimensional_index(i);
        auto *p = t.assay_data;
        for (size_t r = 0; r < assay_rank; ++r)
            p += static_cast<long>(at[r]) * t.assay_stride[r];
        return p;
    }
};

template <class T> struct is_cooperative_tensor : false_type {};
template <class T, class E, class L> struct is_cooperative_tensor<cooperative_tensor<T, E, L>>
    : true_type {};
template <class T> constexpr bool is_cooperative_tensor_v = is_cooperative_tensor<T>::value;

} // namespace metal
