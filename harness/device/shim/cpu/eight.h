// eight: vectors of eight as a CPU has them, for kernels/eight.h. In checked mode they are pairs of
// Metal's vectors, as on a GPU: its reports are about those.
#pragma once
#pragma clang system_header

#if !defined(ASSAY_CHECKED)
#define ASSAY_EIGHT_FLOATS assay::native<float, 8>
#define ASSAY_EIGHT_INTS assay::native<int, 8>

namespace assay {
template <class To, class From> METAL_FUNC void load_converted(const From *from, To &to) {
    native<From, 8> v;
    __builtin_memcpy(&v, from, sizeof v);
    to = __builtin_convertvector(v, To);
}
} // namespace assay

namespace metal {

#define ASSAY_LOAD_EIGHT(To, From)                                                                 \
    METAL_FUNC void load_eight(const From *from, assay::native<To, 8> &to) {                       \
        assay::load_converted(from, to);                                                           \
    }
ASSAY_LOAD_EIGHT(int, uchar)
ASSAY_LOAD_EIGHT(int, char)
ASSAY_LOAD_EIGHT(float, float)
ASSAY_LOAD_EIGHT(float, half)
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
METAL_FUNC assay::native<float, 8> to_floats(assay::native<int, 8> n) {
    return __builtin_convertvector(n, assay::native<float, 8>);
}
METAL_FUNC assay::native<float, 8>
multiply_add(assay::native<float, 8> a, assay::native<float, 8> b, assay::native<float, 8> c) {
#pragma clang fp contract(fast)
    return a * b + c;
}
METAL_FUNC float total(assay::native<float, 8> v) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

} // namespace metal
#endif
