// product: of simdgroup matrices. Only declared: Mesa has no instruction for them, and a kernel in which
// this name is left after all else is inlined is refused (compile.c).
#pragma once
namespace assay {
template <class T> struct fragment_form : plain_fragment<T, apple_places> {};

template <class D, class A, class B, class C>
metal::vec<D, 2> multiply_fragments(metal::vec<A, 2> a, metal::vec<B, 2> b, metal::vec<C, 2> c);
}
