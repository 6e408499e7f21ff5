// product: d = a b + c of simdgroup matrices, where all lanes have met.
#pragma once
#pragma clang system_header

namespace assay {

template <class T> struct fragment_form : plain_fragment<T, apple_places> {};

template <class A, class B, class C> struct factors {
    metal::vec<A, 2> a;
    metal::vec<B, 2> b;
    metal::vec<C, 2> c;
};

// A lane that takes no part leaves NaN in its places, and so in what depends on them.
template <class D, class A, class B, class C>
ASSAY_SERVE void multiply_add(const factors<A, B, C> *in, metal::vec<D, 2> *out, soft_u32 party) {
    alignas(64) float a[8][8], b[8][8], c[8][8];
    for (soft_u32 lane = 0; lane < SOFT_LANES; ++lane) {
        const soft_u32 row = fragment_row(lane), column = fragment_column(lane);
        const bool present = party >> lane & 1;
        for (int i = 0; i < 2; ++i) {
            a[row][column + i] = present ? to<float>(in[lane].a[i]) : NAN;
            b[row][column + i] = present ? to<float>(in[lane].b[i]) : NAN;
            c[row][column + i] = present ? to<float>(in[lane].c[i]) : NAN;
        }
    }
    for (int row = 0; row < 8; ++row)
        for (int k = 0; k < 8; ++k)
            for (int column = 0; column < 8; ++column)
                c[row][column] += a[row][k] * b[k][column];
    for (soft_u32 lane = 0; lane < SOFT_LANES; ++lane) {
        const soft_u32 row = fragment_row(lane), column = fragment_column(lane);
        out[lane] = metal::vec<D, 2>(c[row][column], c[row][column + 1]);
    }
}

template <class D, class A, class B, class C>
METAL_FUNC metal::vec<D, 2> multiply_fragments(metal::vec<A, 2> a, metal::vec<B, 2> b,
                                               metal::vec<C, 2> c) {
    return meet<metal::vec<D, 2>, meeting_for_product>(factors<A, B, C>{a, b, c}, multiply_add<D, A, B, C>);
}

} // namespace assay
