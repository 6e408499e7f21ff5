// product: d = a b + c of simdgroup matrices, and a product of their own for kernels that ask for it.
//
// Tensor cores (mma) multiply where they know the types: compute capability 8.0 and later. Their
// lanes hold other places of a matrix than Apple's, so matrices are held in those, unless the
// kernel's text addresses thread_elements (inline.h). Older GPUs multiply by exchanges between
// lanes: each lane computes the two elements of d that it holds; k goes up and every product and
// sum is rounded once, as on the CPU.
#pragma once
#pragma clang system_header

namespace assay {

// The lane that holds an element of a fragment: the inverse of fragment_row and fragment_column.
METAL_FUNC constexpr uint fragment_lane(uint row, uint column) {
    return (row >> 2 & 1) << 4 | (column >> 2 & 1) << 3 | (row & 3) << 1 | (column >> 1 & 1);
}

#if __CUDA_ARCH__ < 800

template <class T> struct fragment_form : plain_fragment<T, apple_places> {};

template <class V> METAL_FUNC V take_fragment(uint party, V value, uint source) {
    if (party == all_lanes)
        return shuffle(all_lanes, value, source);
    const V got = shuffle(party, value, source);
    return choose(party >> source & 1, got);
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

#else

__attribute__((error("thread_elements that the kernel was not seen to use"))) void refuse_elements();

template <class T> struct fragment_form : turned_fragment<T> {
    static METAL_FUNC void allow_elements() { refuse_elements(); }
};

// Exchanges by all lanes. These statements have no side effects: where a matrix is in several
// products, it is moved once.
METAL_FUNC uint transpose_halves(uint pair) {
    uint d;
    __asm__("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(pair));
    return d;
}
METAL_FUNC uint take_word(uint word, uint source) {
    uint d;
    __asm__("shfl.sync.idx.b32 %0, %1, %2, 31, -1;" : "=r"(d) : "r"(word), "r"(source));
    return d;
}

METAL_FUNC uint get_bits(float x) {
    return __builtin_bit_cast(uint, x);
}
template <class T> METAL_FUNC uint get_pair_bits(metal::vec<T, 2> pair) {
    return static_cast<uint>(words<metal::vec<T, 2>>(pair).word[0]);
}

template <class T> METAL_FUNC metal::vec<T, 2> turn(metal::vec<T, 2> pair) {
    words<metal::vec<T, 2>> w(pair);
    if constexpr (sizeof(T) == 2) {
        w.word[0] = static_cast<int>(transpose_halves(w.word[0]));
    } else {
        const uint x = w.word[0], y = w.word[1];
        const uint lower = transpose_halves((x & 0xFFFFu) | y << 16),
                   upper = transpose_halves(x >> 16 | (y & 0xFFFF0000u));
        w.word[0] = static_cast<int>((lower & 0xFFFFu) | upper << 16);
        w.word[1] = static_cast<int>(lower >> 16 | (upper & 0xFFFF0000u));
    }
    return w.get();
}

template <class T> METAL_FUNC metal::vec<T, 2> take_pair(metal::vec<T, 2> pair, uint source) {
    words<metal::vec<T, 2>> w(pair);
    for (int i = 0; i < w.count; ++i)
        w.word[i] = static_cast<int>(take_word(w.word[i], source));
    return w.get();
}

// d (16, 8) += a (16, 8) b (8, 8) by tensor cores, which take the upper 11 bits of a float. A lane
// has rows lane / 4 and 8 after it, columns lane % 4 and 4 after it of a, the same rows of b, of
// which lane / 4 is its column, and columns 2 * (lane % 4) and 1 after it of d.
METAL_FUNC void multiply_tensors(const uint (&a)[2][2], const uint (&b)[2], float (&d)[2][2]) {
    __asm__("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[1][0]), "+f"(d[1][1])
            : "r"(a[0][0]), "r"(a[1][0]), "r"(a[0][1]), "r"(a[1][1]), "r"(b[0]), "r"(b[1]));
}

// d (8, 8) += a (8, 8) b (8, 8) of halves or bfloats, of which a lane has two neighbours per register. The lower
// 8 rows of the instruction are empty; cuda/ptx.c, which knows the comment, merges two of them.
template <class T> METAL_FUNC void multiply_upper(uint a, uint b, float (&d)[2]) {
    float x = 0.0f, y = 0.0f;
#define ASSAY_MMA_UPPER(type)                                                                      \
    __asm__("mma.sync.aligned.m16n8k8.row.col.f32." type "." type ".f32 "                          \
            "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3}; // assay upper rows"              \
            : "+f"(d[0]), "+f"(d[1]), "+f"(x), "+f"(y)                                             \
            : "r"(a), "r"(0u), "r"(b))
    if constexpr (metal::is_same_v<T, half>)
        ASSAY_MMA_UPPER("f16");
    else
        ASSAY_MMA_UPPER("bf16");
#undef ASSAY_MMA_UPPER
}

// A float as two of 11 bits, the lower one made as large as the upper: of a denormal float, the
// upper bits would be the wrong ones. All of a half or bfloat is in the upper one.
constexpr float lower_scale = 0x1p12f;
template <class T> METAL_FUNC void split(T value, uint &upper, uint &lower) {
    const float x = to<float>(value);
    upper = get_bits(x);
    lower = 0;
    if constexpr (sizeof(T) == 4) {
        upper = (upper + 0x1000u) & 0xFFFFE000u;
        lower = get_bits((x - __builtin_bit_cast(float, upper)) * lower_scale);
    }
}

// The sum of products a (8, 8) b (8, 8), b turned, by tensor cores. Floats have their lower
// parts in the lower 8 rows of the instruction, and the sums of all that has one:
// what is left out is the product of two lower parts, 2^-24 of the whole. So a product of floats is as
// good as that of FMAs, and so is the sum of a few; but an infinity makes NaN of its row or column.
template <class A, class B> struct tensor_sums {
    static constexpr bool is_half = metal::is_same_v<A, B> && sizeof(A) == 2;
    float d[2][2] = {}, rest[2][2] = {};

    METAL_FUNC void add(metal::vec<A, 2> a, metal::vec<B, 2> b) {
        if constexpr (is_half) {
            multiply_upper<A>(get_pair_bits(a), get_pair_bits(b), d[0]);
        } else {
            uint rows[2][2], upper[2], lower[2];
            for (int i = 0; i < 2; ++i) {
                split(A(a[i]), rows[0][i], rows[1][i]);
                split(B(b[i]), upper[i], lower[i]);
            }
            multiply_tensors(rows, upper, d);
            if constexpr (sizeof(B) == 4)
                multiply_tensors(rows, lower, rest);
        }
    }
    METAL_FUNC float get(int i) const {
        if constexpr (is_half)
            return d[0][i];
        const float lower = sizeof(A) == 4 ? d[1][i] + rest[0][i] : rest[0][i];
        return __builtin_fmaf(sizeof(B) == 4 ? lower : d[1][i], 1 / lower_scale, d[0][i]);
    }
    METAL_FUNC metal::vec<float, 2> get() const { return metal::vec<float, 2>(get(0), get(1)); }
};

// a b + c. Halves are added to c by tensor cores.
template <class A, class B>
METAL_FUNC metal::vec<float, 2> multiply_pairs(metal::vec<A, 2> a, metal::vec<B, 2> b,
                                               metal::vec<float, 2> c) {
    tensor_sums<A, B> sums;
    if constexpr (sums.is_half) {
        sums.d[0][0] = c.x;
        sums.d[0][1] = c.y;
        sums.add(a, b);
        return sums.get();
    } else {
        sums.add(a, b);
        return c + sums.get();
    }
}

template <class H> METAL_FUNC auto get_rows(const H &held) {
    return held.is_turned ? turn(held.pair) : held.pair;
}
template <class H> METAL_FUNC auto get_columns(const H &held) {
    return held.is_turned ? held.pair : turn(held.pair);
}
template <class D, class V> METAL_FUNC metal::vec<D, 2> convert_pair(V v) {
    return metal::vec<D, 2>(to<D>(v.x), to<D>(v.y));
}

// Of matrices in tensor_places.
template <class D, class HA, class HB, class HC>
METAL_FUNC typename turned_fragment<D>::type multiply_fragments(const HA &a, const HB &b,
                                                                const HC &c) {
    return {convert_pair<D>(
                multiply_pairs(get_rows(a), get_columns(b), convert_pair<float>(get_rows(c)))),
            false};
}

// The sum of a few products, which tensor cores add up.
#define ASSAY_ADDS_PRODUCTS 1
template <class A, class B, class HA, class HB, int n>
METAL_FUNC turned_fragment<float>::type add_products(const HA (&a)[n], const HB (&b)[n]) {
    tensor_sums<A, B> sums;
    for (int i = 0; i < n; ++i)
        sums.add(get_rows(a[i]), get_columns(b[i]));
    return {sums.get(), false};
}

// Of matrices in apple_places: moved there and back.
template <class D, class A, class B, class C>
METAL_FUNC metal::vec<D, 2> multiply_fragments(metal::vec<A, 2> a, metal::vec<B, 2> b,
                                               metal::vec<C, 2> c) {
    const uint lane = lane_index();
    const uint from = fragment_lane(lane / 4, lane % 4 * 2);
    const uint back = fragment_row(lane) * 4 + fragment_column(lane) / 2;
    const metal::vec<float, 2> none(0.0f),
        sums = take_pair(multiply_pairs(take_pair(a, from), turn(take_pair(b, from)), none), back);
    return metal::vec<D, 2>(to<D>(to<float>(C(c.x)) + sums.x), to<D>(to<float>(C(c.y)) + sums.y));
}

#endif

// Not every GPU has what kernels/product/skinny.h asks for.
#if __CUDA_ARCH__ >= 800
#define ASSAY_HAS_16X8X32 true
#define ASSAY_MULTIPLY_16X8X32(w, x, sums) assay::multiply_16x8x32(w, x, sums)

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
