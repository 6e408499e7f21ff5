// bytes: sixteen bytes side by side that are multiplied as integers, for kernels whose threads work
// alone. They are eight bytes each of two rows.
//
// CPUs that multiply such pairs have them as one vector (shim/cpu/eight.h), and only there
// MULTIPLIES_BYTES is true. Here they are four words: what checked mode runs on the same CPUs.
#pragma once

METAL_FUNC void load_bytes(device const uchar *q, thread uint4 &v) {
    for (uint i = 0; i < 4; i++)
        v[i] = q[4 * i] | uint(q[4 * i + 1]) << 8u | uint(q[4 * i + 2]) << 16u |
               uint(q[4 * i + 3]) << 24u;
}
METAL_FUNC uint4 get_low_nibbles(uint4 v) {
    return v & 0x0F0F0F0Fu;
}
METAL_FUNC uint4 get_high_nibbles(uint4 v) {
    return v >> 4u & 0x0F0F0F0Fu;
}
// Bits `from` and `from` + 1 of each byte, as bits 4 and 5.
template <uint from> METAL_FUNC uint4 get_pairs(uint4 v) {
    return (v >> from & 0x03030303u) << 4u;
}
METAL_FUNC void join_halves(uint4 a, uint4 b, thread uint4 &low, thread uint4 &high) {
    low = uint4(a.xy, b.xy);
    high = uint4(a.zw, b.zw);
}
METAL_FUNC uint dot_bytes(uint2 a, uint2 b) {
    const int4 products = int4(as_type<char4>(a.x)) * int4(as_type<char4>(b.x)) +
                          int4(as_type<char4>(a.y)) * int4(as_type<char4>(b.y));
    return uint((products.x + products.y) + (products.z + products.w));
}
// + the products of both halves of a with both of b, whose bytes have signs: a.low b.low, a.low b.high,
// a.high b.low, a.high b.high.
METAL_FUNC uint4 add_dots(uint4 a, uint4 b, uint4 sums) {
    return sums + uint4(dot_bytes(a.xy, b.xy), dot_bytes(a.xy, b.zw), dot_bytes(a.zw, b.xy),
                        dot_bytes(a.zw, b.zw));
}
// 16 numbers of at most 2^30 as bytes with signs: the lowest of all, the next, and so on.
METAL_FUNC void split_floats(thread const float4 *floats, thread uint4 *bytes) {
    for (uint k = 0; k < 4; k++)
        for (uint i = 0; i < 4; i++) {
            const uint4 words = as_type<uint4>(int4(floats[i])) + 0x80808080u;
            const uint4 v = words >> (8 * k) & 255u;
            bytes[k][i] = (v.x | v.y << 8u | v.z << 16u | v.w << 24u) ^ 0x80808080u;
        }
}

#ifdef __ASSAY__
typedef ASSAY_SIXTEEN_BYTES sixteen_bytes;
#define MULTIPLIES_BYTES ASSAY_MULTIPLIES_BYTES
#define UNSET ASSAY_UNSET // an array that is set before it is read, which takes time to clear
#else
typedef uint4 sixteen_bytes;
#define MULTIPLIES_BYTES false
#define UNSET
#endif

template <uint n> METAL_FUNC sixteen_bytes fill_bytes() {
    const uint4 words = uint4(n * 0x01010101u);
    return as_type<sixteen_bytes>(words);
}
// Sixteen bytes of two rows: the first eight of both, then the others.
struct byte_rows {
    sixteen_bytes halves[2];
    METAL_FUNC byte_rows(device const uchar *a, device const uchar *b) {
        sixteen_bytes rows[2];
        load_bytes(a, rows[0]);
        load_bytes(b, rows[1]);
        join_halves(rows[0], rows[1], halves[0], halves[1]);
    }
};
