// integer: the integer functions of MSL, for all integer types and their vectors.
#pragma once
#pragma clang system_header

#include "math.h"

namespace assay {

template <class T> using if_integral = metal::enable_if_t<metal::is_integral_v<T>, int>;
template <class T> constexpr uint bits_of = sizeof(T) * 8;

// A type that holds the product of any two T and a third one added to it.
template <class T> using twice =
    metal::conditional_t<metal::is_signed_v<T>, metal::conditional_t<sizeof(T) < 8, long, __int128>,
                         metal::conditional_t<sizeof(T) < 8, ulong, unsigned __int128>>;

template <class T, class W> METAL_FUNC constexpr T clamp_to(W x) {
    constexpr T low = metal::numeric_limits<T>::min();
    constexpr T high = metal::numeric_limits<T>::max();
    return x < static_cast<W>(low) ? low : x > static_cast<W>(high) ? high : static_cast<T>(x);
}

} // namespace assay

namespace metal {

template <class T, assay::if_integral<T> = 0>
METAL_FUNC constexpr make_unsigned_t<T> absdiff(T x, T y) {
    using U = make_unsigned_t<T>;
    return static_cast<U>(x > y ? static_cast<U>(x) - static_cast<U>(y)
                                : static_cast<U>(y) - static_cast<U>(x));
}
template <class T, int n> METAL_FUNC vec<make_unsigned_t<T>, n> absdiff(vec<T, n> x, vec<T, n> y) {
    return assay::each<vec<make_unsigned_t<T>, n>>(
        [](T a, T b) ASSAY_LAMBDA { return absdiff(a, b); }, x, y);
}

template <class T, assay::if_integral<T> = 0> METAL_FUNC T addsat(T x, T y) {
    T sum;
    if (!__builtin_add_overflow(x, y, &sum))
        return sum;
    return y < 0 ? numeric_limits<T>::min() : numeric_limits<T>::max();
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC T subsat(T x, T y) {
    T difference;
    if (!__builtin_sub_overflow(x, y, &difference))
        return difference;
    return x < y ? numeric_limits<T>::min() : numeric_limits<T>::max();
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T hadd(T x, T y) {
    return static_cast<T>((x & y) + ((x ^ y) >> 1));
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T rhadd(T x, T y) {
    return static_cast<T>((x | y) - ((x ^ y) >> 1));
}

template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T popcount(T x) {
    return static_cast<T>(__builtin_popcountll(static_cast<make_unsigned_t<T>>(x)));
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T clz(T x) {
    const make_unsigned_t<T> u = static_cast<make_unsigned_t<T>>(x);
    const int width = static_cast<int>(assay::bits_of<T>);
    return static_cast<T>(u ? __builtin_clzll(u) - (64 - width) : width);
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T ctz(T x) {
    const make_unsigned_t<T> u = static_cast<make_unsigned_t<T>>(x);
    return static_cast<T>(u ? __builtin_ctzll(u) : static_cast<int>(assay::bits_of<T>));
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T reverse_bits(T x) {
    const ulong reversed = __builtin_bitreverse64(static_cast<make_unsigned_t<T>>(x));
    return static_cast<T>(reversed >> (64 - assay::bits_of<T>));
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T rotate(T x, T count) {
    using U = make_unsigned_t<T>;
    const U u = static_cast<U>(x);
    const uint left = static_cast<uint>(count) & (assay::bits_of<T> - 1);
#if defined(__CUDA__)
    // By half the width and by less than that: before LLVM 18 the instructions for a rotation of
    // 64 bits are wrong for counts outside of 0 to 63, and nothing else keeps the count inside.
    if constexpr (sizeof(T) == 8) {
        const ulong near = left & 32 ? u << 32 | u >> 32 : u, far = near << 32 | near >> 32;
        return static_cast<T>(near << (left & 31) >> 32 << 32 | far << (left & 31) >> 32);
    }
#endif
    const uint right = (assay::bits_of<T> - left) & (assay::bits_of<T> - 1);
    return static_cast<T>(u << left | u >> right);
}

template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T mulhi(T x, T y) {
    using W = assay::twice<T>;
    return static_cast<T>((static_cast<W>(x) * static_cast<W>(y)) >> assay::bits_of<T>);
}
METAL_FUNC constexpr uint mulhi(uint x, uint y) {
    return static_cast<uint>((static_cast<ulong>(x) * y) >> 32);
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T madhi(T x, T y, T z) {
    using U = make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(mulhi(x, y)) + static_cast<U>(z));
}
template <class T, assay::if_integral<T> = 0> METAL_FUNC constexpr T madsat(T x, T y, T z) {
    using W = assay::twice<T>;
    return assay::clamp_to<T>(static_cast<W>(x) * static_cast<W>(y) + static_cast<W>(z));
}

// The low 24 bits of the operands count, with their sign.
METAL_FUNC constexpr int mul24(int x, int y) {
    const long a = static_cast<int>(static_cast<uint>(x) << 8) >> 8;
    const long b = static_cast<int>(static_cast<uint>(y) << 8) >> 8;
    return static_cast<int>(a * b);
}
METAL_FUNC constexpr uint mul24(uint x, uint y) {
    return (x & 0xffffffu) * (y & 0xffffffu);
}
METAL_FUNC constexpr int mad24(int x, int y, int z) {
    return static_cast<int>(static_cast<uint>(mul24(x, y)) + static_cast<uint>(z));
}
METAL_FUNC constexpr uint mad24(uint x, uint y, uint z) {
    return mul24(x, y) + z;
}

ASSAY_EACH(addsat)
ASSAY_EACH(subsat)
ASSAY_EACH(hadd)
ASSAY_EACH(rhadd)
ASSAY_EACH(popcount)
ASSAY_EACH(clz)
ASSAY_EACH(ctz)
ASSAY_EACH(reverse_bits)
ASSAY_EACH(rotate)
ASSAY_EACH(mulhi)
ASSAY_EACH(madhi)
ASSAY_EACH(madsat)
ASSAY_EACH(mul24)
ASSAY_EACH(mad24)

// Bit fields. offset + bits is at most the width; an empty field is zero.
#define ASSAY_CHECK_FIELD(T, offset, bits)                                                         \
    ASSAY_CHECK(static_cast<ulong>(offset) + bits > assay::bits_of<T>, SOFT_FIELD, offset + bits,  \
                nullptr)
template <class T, assay::if_integral<T> = 0>
METAL_FUNC constexpr T extract_bits(T x, uint offset, uint bits) {
    ASSAY_CHECK_FIELD(T, offset, bits);
    constexpr uint most = assay::bits_of<T> - 1;
    const uint above = assay::bits_of<T> - bits;
    const T up = static_cast<T>(static_cast<make_unsigned_t<T>>(x) << ((above - offset) & most));
    return bits == 0 ? T(0) : static_cast<T>(up >> (above & most));
}
template <class T, assay::if_integral<T> = 0>
METAL_FUNC constexpr T insert_bits(T base, T insert, uint offset, uint bits) {
    ASSAY_CHECK_FIELD(T, offset, bits);
    using U = make_unsigned_t<T>;
    constexpr uint most = assay::bits_of<T> - 1;
    const U ones = static_cast<U>(static_cast<U>(~U(0)) >> ((assay::bits_of<T> - bits) & most));
    const U mask = bits == 0 ? U(0) : static_cast<U>(ones << (offset & most));
    return static_cast<T>((static_cast<U>(base) & ~mask) |
                          (static_cast<U>(static_cast<U>(insert) << (offset & most)) & mask));
}
#undef ASSAY_CHECK_FIELD
template <class T, int n> METAL_FUNC vec<T, n> extract_bits(vec<T, n> v, uint offset, uint bits) {
    return assay::each<vec<T, n>>([=](T x) ASSAY_LAMBDA { return extract_bits(x, offset, bits); },
                                  v);
}
template <class T, int n>
METAL_FUNC vec<T, n> insert_bits(vec<T, n> base, vec<T, n> insert, uint offset, uint bits) {
    return assay::each<vec<T, n>>(
        [=](T b, T i) ASSAY_LAMBDA { return insert_bits(b, i, offset, bits); }, base, insert);
}

} // namespace metal
