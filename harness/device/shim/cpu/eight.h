// eight: vectors of eight floats or integers and of sixteen bytes as a CPU has them, for kernels/eight.h
// and kernels/bytes.h. In checked mode they are pairs of Metal's vectors, as on a GPU, or Metal's: its
// reports are about those.
#pragma once
#pragma clang system_header

#if defined(__ARM_FEATURE_MATMUL_INT8)
#define ASSAY_MULTIPLIES_BYTES true
#endif

#if defined(__ARM_FEATURE_MATMUL_INT8) && !defined(ASSAY_CHECKED)
#define ASSAY_SIXTEEN_BYTES assay::native<unsigned char, 16>
#define ASSAY_UNSET [[clang::uninitialized]]

#if !__has_builtin(__builtin_neon_vmmlaq_s32) // older clangs
#define __builtin_neon_vmmlaq_s32 __builtin_neon_vmmlaq_v
#endif

namespace metal {

typedef assay::native<unsigned char, 16> assay_sixteen;

METAL_FUNC void load_bytes(const uchar *q, assay_sixteen &v) {
    __builtin_memcpy(&v, q, sizeof v);
}
METAL_FUNC assay_sixteen get_low_nibbles(assay_sixteen v) { return v & (uchar)15; }
METAL_FUNC assay_sixteen get_high_nibbles(assay_sixteen v) { return v >> (uchar)4; }
template <uint from> METAL_FUNC assay_sixteen get_pairs(assay_sixteen v) {
    return (from < 4 ? v << (uchar)(4 - from) : v >> (uchar)(from - 4)) & (uchar)48;
}
METAL_FUNC void join_halves(assay_sixteen a, assay_sixteen b, assay_sixteen &low,
                            assay_sixteen &high) {
    low = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    high =
        __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
}
METAL_FUNC vec<uint, 4> add_dots(assay_sixteen a, assay_sixteen b, vec<uint, 4> sums) {
    typedef __attribute__((neon_vector_type(16))) signed char bytes;
    enum { AS_INTS = 34 }; // what the compiler's function has a vector of
    return __builtin_bit_cast(
        vec<uint, 4>, __builtin_neon_vmmlaq_s32(__builtin_bit_cast(bytes, sums),
                                                __builtin_bit_cast(bytes, a),
                                                __builtin_bit_cast(bytes, b), AS_INTS));
}
METAL_FUNC void split_floats(const vec<float, 4> *floats, assay_sixteen *bytes) {
    assay::native<float, 16> v;
    __builtin_memcpy(&v, floats, sizeof v);
    const assay::native<uint, 16> words =
        __builtin_bit_cast(assay::native<uint, 16>,
                           __builtin_convertvector(v, assay::native<int, 16>)) + 0x80808080u;
    assay::native<uchar, 32> low, high;
    __builtin_memcpy(&low, &words, sizeof low);
    __builtin_memcpy(&high, (const char *)&words + sizeof low, sizeof high);
#define ASSAY_EVERY_FOURTH(k)                                                                      \
    __builtin_shufflevector(low, high, k, k + 4, k + 8, k + 12, k + 16, k + 20, k + 24, k + 28,    \
                            k + 32, k + 36, k + 40, k + 44, k + 48, k + 52, k + 56, k + 60) ^      \
        (uchar)128
    bytes[0] = ASSAY_EVERY_FOURTH(0);
    bytes[1] = ASSAY_EVERY_FOURTH(1);
    bytes[2] = ASSAY_EVERY_FOURTH(2);
    bytes[3] = ASSAY_EVERY_FOURTH(3);
#undef ASSAY_EVERY_FOURTH
}

} // namespace metal
#endif

#if !defined(ASSAY_CHECKED)
#define ASSAY_EIGHT_FLOATS assay::native<float, 8>
#define ASSAY_LOAD_AHEAD(at) __builtin_prefetch(at)
#if defined(__aarch64__) // as wide as a register: what formats store has eight bits
#define ASSAY_EIGHT_INTS assay::native<short, 8>
#define ASSAY_FOUR_FLOATS assay::four_floats
#else
#define ASSAY_EIGHT_INTS assay::native<int, 8>
#define ASSAY_FOUR_FLOATS const float *
#endif

namespace assay {
template <class To, class From> METAL_FUNC void load_converted(const From *from, To &to) {
    native<From, 8> v;
    __builtin_memcpy(&v, from, sizeof v);
    to = __builtin_convertvector(v, To);
}
#if defined(__aarch64__)
struct four_floats {
    native<float, 4> v;
    four_floats() = default;
    METAL_FUNC explicit four_floats(const float *at) { __builtin_memcpy(&v, at, sizeof v); }
    METAL_FUNC float operator[](unsigned i) const { return v[i]; }
};
// The upper two bytes of the floats of 0 to 15, less the bias.
struct upper_bytes {
    struct {
        unsigned char at[16];
    } third, fourth;
};
constexpr upper_bytes get_upper_bytes(int bias) {
    upper_bytes b = {};
    for (int i = 0; i < 16; i++) {
        const unsigned bits = __builtin_bit_cast(unsigned, float(i - bias));
        b.third.at[i] = (unsigned char)(bits >> 16 & 255);
        b.fourth.at[i] = (unsigned char)(bits >> 24);
    }
    return b;
}
#endif
} // namespace assay

namespace metal {

#define ASSAY_LOAD_EIGHT(To, From)                                                                 \
    METAL_FUNC void load_eight(const From *from, To &to) { assay::load_converted(from, to); }
ASSAY_LOAD_EIGHT(ASSAY_EIGHT_INTS, uchar)
ASSAY_LOAD_EIGHT(ASSAY_EIGHT_INTS, char)
ASSAY_LOAD_EIGHT(ASSAY_EIGHT_FLOATS, float)
ASSAY_LOAD_EIGHT(ASSAY_EIGHT_FLOATS, half)
#undef ASSAY_LOAD_EIGHT
METAL_FUNC void load_eight(const ushort *bfloats, assay::native<float, 8> &to) {
    assay::native<uint, 8> bits;
    assay::load_converted(bfloats, bits);
    to = __builtin_bit_cast(assay::native<float, 8>, bits << 16u);
}
METAL_FUNC void join(vec<float, 4> low, vec<float, 4> high, assay::native<float, 8> &v) {
    const vec<float, 4> both[2] = {low, high};
    __builtin_memcpy(&v, both, sizeof v);
}
METAL_FUNC assay::native<float, 8> to_floats(ASSAY_EIGHT_INTS n) {
    return __builtin_convertvector(n, assay::native<float, 8>);
}
// See kernels/eight.h.
#if defined(__aarch64__)
// Looked up, because NEON converts only four integers per cycle. make_floats: 16 floats of whose bytes
// only the upper two are not zero.
typedef __attribute__((neon_vector_type(16))) signed char assay_bytes;
METAL_FUNC void make_floats(assay_bytes third, assay_bytes fourth, assay::native<float, 8> *n) {
    enum { AS_BYTES = 32 }; // what the compiler's functions have vectors of
    const assay_bytes first = {-128, -128, 0, 16, -128, -128, 1, 17,
                               -128, -128, 2, 18, -128, -128, 3, 19};
    assay_bytes floats[4];
    for (int k = 0; k < 4; k++)
        floats[k] = __builtin_neon_vqtbl2q_v(third, fourth, first + (signed char)(4 * k), AS_BYTES);
    __builtin_memcpy(n, floats, sizeof floats);
}
METAL_FUNC assay::native<uchar, 16> assay_load_sixteen(const uchar *q) {
    assay::native<uchar, 16> bytes;
    __builtin_memcpy(&bytes, q, sizeof bytes);
    return bytes;
}
// The floats of -8 to 15 differ in their upper two bytes alone.
template <int bias> METAL_FUNC void load_nibbles(const uchar *q, assay::native<float, 8> *n) {
    enum { AS_BYTES = 32 };
    constexpr assay::upper_bytes tables = assay::get_upper_bytes(bias);
    const assay_bytes thirds = __builtin_bit_cast(assay_bytes, tables.third);
    const assay_bytes fourths = __builtin_bit_cast(assay_bytes, tables.fourth);
    const assay::native<uchar, 16> both = assay_load_sixteen(q);
    const assay::native<uchar, 16> nibbles[2] = {both & (uchar)15, both >> (uchar)4};
    for (uint i = 0; i < 2; i++) {
        const assay_bytes at = __builtin_bit_cast(assay_bytes, nibbles[i]);
        make_floats(__builtin_neon_vqtbl1q_v(thirds, at, AS_BYTES),
                    __builtin_neon_vqtbl1q_v(fourths, at, AS_BYTES), n + 2 * i);
    }
}
// 0 to 63 as the third byte of a float whose fourth is that of 128 are 128 more than they should be.
METAL_FUNC void load_sixes(const uchar *low, const uchar *high, assay::native<float, 8> *n) {
    typedef assay::native<uchar, 16> sixteen;
    const sixteen even = assay_load_sixteen(low), odd = assay_load_sixteen(low + 32), h = assay_load_sixteen(high);
    const sixteen numbers[4] = {(even & (uchar)15) | (h << (uchar)4 & (uchar)48),
                                (odd & (uchar)15) | (h << (uchar)2 & (uchar)48),
                                even >> (uchar)4 | (h & (uchar)48),
                                odd >> (uchar)4 | (h >> (uchar)2 & (uchar)48)};
    const sixteen upper = (uchar)0x43;
    for (uint i = 0; i < 4; i++) {
        make_floats(__builtin_bit_cast(assay_bytes, numbers[i]),
                    __builtin_bit_cast(assay_bytes, upper), n + 2 * i);
        n[2 * i] = n[2 * i] - 160.0f;
        n[2 * i + 1] = n[2 * i + 1] - 160.0f;
    }
}
#else
template <int bias> METAL_FUNC void load_nibbles(const uchar *q, assay::native<float, 8> *n) {
    assay::native<uchar, 16> bytes;
    __builtin_memcpy(&bytes, q, sizeof bytes);
    const assay::native<uchar, 16> nibbles[2] = {(bytes & (uchar)15) - (uchar)bias,
                                                 (bytes >> (uchar)4) - (uchar)bias};
    for (uint i = 0; i < 4; i++) {
        ASSAY_EIGHT_INTS numbers;
        load_eight((const char *)nibbles + 8 * i, numbers);
        n[i] = to_floats(numbers);
    }
}
#endif
METAL_FUNC assay::native<float, 8>
multiply_add(assay::native<float, 8> a, assay::native<float, 8> b, assay::native<float, 8> c) {
#pragma clang fp contract(fast)
    return a * b + c;
}
METAL_FUNC float get_lane(assay::native<float, 8> v, uint i) { return v[i]; }
// Swaps single floats of neighbours, then pairs, then fours.
METAL_FUNC void transpose(assay::native<float, 8> *v) {
    assay::native<float, 8> t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        t[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int i = 0; i < 8; i += i % 4 == 1 ? 3 : 1) {
        v[i] = __builtin_shufflevector(t[i], t[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        v[i + 2] = __builtin_shufflevector(t[i], t[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = __builtin_shufflevector(v[i], v[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        t[i + 4] = __builtin_shufflevector(v[i], v[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int i = 0; i < 8; i++)
        v[i] = t[i];
}
METAL_FUNC float total(assay::native<float, 8> v) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

} // namespace metal
#endif
