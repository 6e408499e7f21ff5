// product: of simdgroup matrices. Only declared: Mesa has no instruction for them, and kernels that
// multiply them are refused before they are compiled.
#pragma once
namespace assay {
template <class D, class A, class B, class C>
metal::vec<D, 2> multiply_fragments(metal::vec<A, 2> a, metal::vec<B, 2> b, metal::vec<C, 2> c);
}
