// product: d = a b + c of simdgroup matrices, by exchanges between lanes, and a product of their
// own for kernels that ask for it.
//
// Of simdgroup matrices, each lane computes the two elements of d that it holds; k goes up and
// every product and sum is rounded once, as on the CPU.
#pragma once
#pragma clang system_header

namespace assay {

// The lane that holds an element of a fragment: the inverse of fragment_row and fragment_column.
METAL_FUNC constexpr uint fragment_lane(uint row, uint column) {
    return (row >> 2 & 1) << 4 | (column >> 2 & 1) << 3 | (row & 3) << 1 | (column >> 1 & 1);
}

template <class V> METAL_FUNC V take_fragment(uint party, V value, uint source) {
    if (party == all_lanes)
        return shuffle(all_lanes, value, source);
    const V got = shuffle(party, value, source);
    return party >> source & 1 ? got : absent<V>();
}

template <class D, class A, class B, class C>
METAL_FUNC metal::vec<D, 2> multiply_fragments(metal::vec<A, 2> a, metal::vec<B, 2> b,
                                               metal::vec<C, 2> c) {
    const uint party = active_lanes(), lane = lane_index();
    const uint row = fragment_row(lane), column = fragment_column(lane);
    float x = to<float>(C(c.x)), y = to<float>(C(c.y));
    for (uint k = 0; k < 8; k += 2) {
        const metal::vec<A, 2> left = take_fragment(party, a, fragment_lane(row, k));
        const metal::vec<B, 2> upper = take_fragment(party, b, fragment_lane(k, column));
        const metal::vec<B, 2> lower = take_fragment(party, b, fragment_lane(k + 1, column));
        x += to<float>(A(left.x)) * to<float>(B(upper.x));
        y += to<float>(A(left.x)) * to<float>(B(upper.y));
        x += to<float>(A(left.y)) * to<float>(B(lower.x));
        y += to<float>(A(left.y)) * to<float>(B(lower.y));
    }
    return metal::vec<D, 2>(to<D>(x), to<D>(y));
}

// Not every GPU has what kernels/product/few.h asks for.
#if __CUDA_ARCH__ >= 800
#define ASSAY_HAS_16X8X32 true
#define ASSAY_MULTIPLY_16X8X32(w, x, sums) assay::multiply_16x8x32(w, x, sums)

// d (16, 8) += a (16, 8) b (8, 8) by tensor cores, which take the upper 11 bits of a float. A lane
// has rows lane / 4 and 8 after it, columns lane % 4 and 4 after it of a, the same rows of b, of
// which lane / 4 is its column, and columns 2 * (lane % 4) and 1 after it of d.
METAL_FUNC void multiply_tensors(const uint (&a)[2][2], const uint (&b)[2], float (&d)[2][2]) {
    __asm__("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[1][0]), "+f"(d[1][1])
            : "r"(a[0][0]), "r"(a[1][0]), "r"(a[0][1]), "r"(a[1][1]), "r"(b[0]), "r"(b[1]));
}

METAL_FUNC uint get_bits(float x) {
    return __builtin_bit_cast(uint, x);
}

// Four of these, of a lane's 8 weights of each row with its 8 values. A weight has at most 11 bits;
// a value goes in two parts, the lower one made larger, because of a denormal float those bits
// would be the wrong ones.
METAL_FUNC void multiply_16x8x32(const float (&w)[2][8], const float (&x)[8], float (&sums)[2][2]) {
    float lower[2][2] = {};
    for (uint i = 0; i < 8; i += 2) {
        const uint a[2][2] = {{get_bits(w[0][i]), get_bits(w[0][i + 1])},
                              {get_bits(w[1][i]), get_bits(w[1][i + 1])}};
        uint upper[2], rest[2];
        for (uint k = 0; k < 2; k++) {
            upper[k] = (get_bits(x[i + k]) + 0x1000u) & 0xFFFFE000u;
            rest[k] = get_bits((x[i + k] - __builtin_bit_cast(float, upper[k])) * 0x1p24f);
        }
        multiply_tensors(a, rest, lower);
        multiply_tensors(a, upper, sums);
    }
    for (uint i = 0; i < 2; i++)
        for (uint j = 0; j < 2; j++)
            sums[i][j] += lower[i][j] * 0x1p-24f;
}
#endif

} // namespace assay
