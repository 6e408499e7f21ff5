// cast: what static_cast becomes in files that use bfloat (harness/device/msl/rewrite.c).
//
// Compilers refuse any cast between their 16-bit float types, which MSL allows.
#pragma once
#pragma clang system_header

#include "types.h"

namespace assay {

template <class T, class S> METAL_FUNC constexpr T cast(S &&s) {
    using V = metal::remove_cv_t<metal::remove_reference_t<S>>;
    if constexpr (!metal::is_floating_point_v<T> || !metal::is_floating_point_v<V>)
        return static_cast<T>(static_cast<S &&>(s));
    else if constexpr (sizeof(T) == 2 && sizeof(V) == 2 && !metal::is_same_v<T, V>)
        return static_cast<T>(static_cast<float>(s));
    else
        return static_cast<T>(s);
}

} // namespace assay
