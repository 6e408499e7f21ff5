// bytes: vectors of sixteen bytes as a CPU has them, for kernels/bytes.h. In checked mode they are
// Metal's vectors, which reports are about.
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
