// inline: stands between the shim and the kernel's text. Not in metal.h, because precompiled headers
// cannot end inside of an attribute push.
//
// The kernel's own functions become part of the entry: a pointer keeps the space that it points to,
// and nothing else is left of them. ASSAY_EXPORT (start.h) ends it.
#pragma once

// Kernels that address thread_elements expect them where Apple's GPUs have them.
#if ASSAY_THREAD_ELEMENTS && __CUDA_ARCH__ >= 800
namespace assay {
template <> struct fragment_form<half> : plain_fragment<half, apple_places> {};
template <> struct fragment_form<bfloat> : plain_fragment<bfloat, apple_places> {};
template <> struct fragment_form<float> : plain_fragment<float, apple_places> {};
} // namespace assay
#endif

#pragma clang attribute push(__attribute__((always_inline, internal_linkage)), apply_to = function)
