// product: d = a b + c of simdgroup matrices, where all lanes have met.
//
// Lanes hold the places of Apple's GPUs; but where a kernel is counted, whose counts are of an NVIDIA
// GPU, those of ptx/product.h, unless its text addresses thread_elements.
#pragma once
#pragma clang system_header

namespace assay {

#if ASSAY_COUNTED && !ASSAY_THREAD_ELEMENTS
template <class T> struct fragment_form : turned_fragment<T> {
    typedef plain_fragment<T, tensor_places> plain;
    static METAL_FUNC void allow_elements() {}
    // A compiler for GPUs knows which of the two it is, and here one that does not keeps the pair together.
    static METAL_FUNC void store(typename turned_fragment<T>::type a, T *target, ulong stride,
                                 metal::vec<ulong, 2> origin, bool transpose) {
        if (transpose != a.is_turned)
            plain::store(a.pair, target, stride, origin, true);
        else
            __builtin_memcpy(plain::find(target, stride, origin, false), &a.pair, 2 * sizeof(T));
    }
};
#else
template <class T> struct fragment_form : plain_fragment<T, apple_places> {};
#endif

template <class A, class B, class C> struct factors {
    A a;
    B b;
    C c;
};

// One of the two elements that a lane holds.
template <class T>
ASSAY_INLINE float &find_place(float (&m)[8][8], const metal::vec<T, 2> &, soft_u32 lane, int i) {
    return m[fragment_row(lane)][fragment_column(lane) + static_cast<soft_u32>(i)];
}
template <class H> ASSAY_INLINE float &find_place(float (&m)[8][8], const H &held, soft_u32 lane, int i) {
    const soft_u32 row = tensor_places::row(lane),
                   column = tensor_places::column(lane) + static_cast<soft_u32>(i);
    return held.is_turned ? m[column][row] : m[row][column];
}

// A lane that takes no part leaves NaN in its places, and so in what depends on them.
template <class D, class A, class B, class C>
ASSAY_SERVE void multiply_add(const factors<A, B, C> *in, D *out, soft_u32 party) {
    alignas(64) float a[8][8], b[8][8], c[8][8];
    for (soft_u32 lane = 0; lane < SOFT_LANES; ++lane) {
        const factors<A, B, C> &f = in[lane];
        const bool present = party >> lane & 1;
        for (int i = 0; i < 2; ++i) {
            find_place(a, f.a, lane, i) = present ? to<float>(f.a[i]) : NAN;
            find_place(b, f.b, lane, i) = present ? to<float>(f.b[i]) : NAN;
            find_place(c, f.c, lane, i) = present ? to<float>(f.c[i]) : NAN;
        }
    }
    for (int row = 0; row < 8; ++row)
        for (int k = 0; k < 8; ++k)
            for (int column = 0; column < 8; ++column)
                c[row][column] += a[row][k] * b[k][column];
    for (soft_u32 lane = 0; lane < SOFT_LANES; ++lane) {
        out[lane] = D();
        for (int i = 0; i < 2; ++i)
            out[lane][i] = find_place(c, out[lane], lane, i);
    }
}

template <class D, class A, class B, class C>
METAL_FUNC metal::vec<D, 2> multiply_fragments(metal::vec<A, 2> a, metal::vec<B, 2> b,
                                               metal::vec<C, 2> c) {
    typedef factors<metal::vec<A, 2>, metal::vec<B, 2>, metal::vec<C, 2>> F;
    return meet<metal::vec<D, 2>, meeting_for_product>(
        F{a, b, c}, multiply_add<metal::vec<D, 2>, metal::vec<A, 2>, metal::vec<B, 2>, metal::vec<C, 2>>);
}

#if ASSAY_COUNTED
template <class D, class HA, class HB, class HC>
METAL_FUNC typename turned_fragment<D>::type multiply_fragments(const HA &a, const HB &b, const HC &c) {
    typedef typename turned_fragment<D>::type H;
    return meet<H, meeting_for_product>(factors<HA, HB, HC>{a, b, c}, multiply_add<H, HA, HB, HC>);
}

// What ptx/product.h has for kernels/product/skinny.h: eight products of 8 x 8.
#define ASSAY_HAS_16X8X32 true
#define ASSAY_MULTIPLY_16X8X32(w, x, sums) assay::multiply_16x8x32(w, x, sums)

METAL_FUNC void multiply_16x8x32(const float (&w)[2][8], const float (&x)[8], float (&sums)[2][2]) {
    typedef turned_fragment<float>::type H;
    for (uint i = 0; i < 8; i += 2)
        for (uint r = 0; r < 2; r++) {
            const H d = multiply_fragments<float>(H{{w[r][i], w[r][i + 1]}, false}, H{{x[i], x[i + 1]}, true},
                                                  H{{sums[r][0], sums[r][1]}, false});
            sums[r][0] = d.pair.x;
            sums[r][1] = d.pair.y;
        }
}
#endif

} // namespace assay
