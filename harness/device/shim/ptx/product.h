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

// Not every GPU has what kernels/few.h, kernels/halves.h and kernels/bytes.h ask for.
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

// d (16, 8) += a (16, 16) b (16, 8), halves with sums in floats. A lane has columns 2 * (lane % 4)
// and 1 after it, and 8 after those, of rows lane / 4 and 8 after it of a, the same rows of column
// lane / 4 of b, and of d what multiply_tensors has.
#define ASSAY_HAS_HALVES_16X8X16 true
#define ASSAY_MULTIPLY_HALVES_16X8X16(a, b, sums) assay::multiply_halves_16x8x16(a, b, sums)
METAL_FUNC void multiply_halves_16x8x16(const uint (&a)[2][2], const uint (&b)[2],
                                        float (&d)[2][2]) {
    __asm__("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[1][0]), "+f"(d[1][1])
            : "r"(a[0][0]), "r"(a[1][0]), "r"(a[0][1]), "r"(a[1][1]), "r"(b[0]), "r"(b[1]));
}

// Two floats as halves, rounded to the nearest.
#define ASSAY_PACK_HALVES(lower, upper) assay::pack_halves(lower, upper)
METAL_FUNC uint pack_halves(float lower, float upper) {
    uint d;
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(upper), "f"(lower));
    return d;
}

// The larger of two halves and the magnitudes of two others.
#define ASSAY_LARGER_HALVES(a, b) assay::larger_halves(a, b)
METAL_FUNC uint larger_halves(uint a, uint b) {
    uint d;
    __asm__("{ .reg .b32 magnitudes; abs.f16x2 magnitudes, %2; max.f16x2 %0, %1, magnitudes; }"
            : "=r"(d)
            : "r"(a), "r"(b));
    return d;
}

// d (16, 8) += a (16, 32) b (32, 8), all signed bytes with sums in 32 bits. A lane has columns 4 *
// (lane % 4) to 3 after it, and 16 after those, of rows lane / 4 and 8 after it of a (rows change
// first), the same rows of column lane / 4 of b, and of d what multiply_tensors has.
#define ASSAY_HAS_BYTES_16X8X32 true
#define ASSAY_MULTIPLY_BYTES_16X8X32(a, b, sums) assay::multiply_bytes_16x8x32(a, b, sums)
METAL_FUNC void multiply_bytes_16x8x32(const uint (&a)[2][2], const uint (&b)[2], int (&d)[2][2]) {
    __asm__("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+r"(d[0][0]), "+r"(d[0][1]), "+r"(d[1][0]), "+r"(d[1][1])
            : "r"(a[0][0]), "r"(a[1][0]), "r"(a[0][1]), "r"(a[1][1]), "r"(b[0]), "r"(b[1]));
}

// Four bytes of a and b, each chosen by a digit of the selector, the lowest first: 0 to 3 are those
// of a.
#define ASSAY_PERMUTE(a, b, selector) assay::permute(a, b, selector)
METAL_FUNC uint permute(uint a, uint b, uint selector) {
    uint d;
    __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector));
    return d;
}
#endif

} // namespace assay
