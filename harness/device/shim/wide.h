// wide: vectors of more than four components, as Metal 4's kernels hold fragments of matrices in
// them.
#pragma once
#pragma clang system_header

#include "vec.h"

namespace metal {

template <class T, int n> struct vec {
    static_assert(n > 4, "a vector has 2, 3, 4 or more components");
    using assay_scalar = T;
    static constexpr int assay_count = n;
    T assay_elements[n];

    vec() = default;
    template <class S, assay::if_scalars<S> = 0> METAL_FUNC constexpr vec(S s) : assay_elements{} {
        for (int i = 0; i < n; ++i)
            assay_elements[i] = assay::to<T>(s);
    }
    template <class U, assay::if_different<T, U> = 0>
    METAL_FUNC constexpr explicit vec(const vec<U, n> &v) : assay_elements{} {
        for (int i = 0; i < n; ++i)
            assay_elements[i] = assay::to<T>(v[i]);
    }
    METAL_FUNC constexpr T &operator[](int i) {
        ASSAY_CHECK_COMPONENT(i, n);
        return assay_elements[i];
    }
    METAL_FUNC constexpr const T &operator[](int i) const {
        ASSAY_CHECK_COMPONENT(i, n);
        return assay_elements[i];
    }
};

} // namespace metal
