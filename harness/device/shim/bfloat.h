// bfloat: arithmetic and conversions of the 16-bit float with an 8-bit exponent.
//
// Owns the bfloat class of compilers whose __bf16 cannot compute, and the conversions between
// scalars that C++ does not do as MSL: half <-> bfloat, and floats out of an integer's range.
//
// What converts implicitly is chosen so that real kernels have one best overload.
// bfloat becomes float (and only float) by itself; integers become bfloat; float and half need a
// cast, as the result would lose bits.
#pragma once
#pragma clang system_header

#if !ASSAY_NATIVE_BFLOAT

struct bfloat {
    ushort bits;

    bfloat() = default;
    template <class S, metal::enable_if_t<metal::is_integral_v<S>, int> = 0>
    METAL_FUNC constexpr bfloat(S s) : bits(round(static_cast<float>(s))) {}
    template <class S,
              metal::enable_if_t<metal::is_same_v<S, float> || metal::is_same_v<S, half>, int> = 0>
    METAL_FUNC constexpr explicit bfloat(S s) : bits(round(static_cast<float>(s))) {}

    METAL_FUNC constexpr float wide() const {
        return __builtin_bit_cast(float, static_cast<uint>(bits) << 16);
    }
    template <class S, metal::enable_if_t<metal::is_same_v<S, float>, int> = 0>
    METAL_FUNC constexpr operator S() const {
        return wide();
    }
    template <class S,
              metal::enable_if_t<metal::is_integral_v<S> || metal::is_same_v<S, half>, int> = 0>
    METAL_FUNC constexpr explicit operator S() const {
        return static_cast<S>(wide());
    }

    METAL_FUNC constexpr bfloat operator+() const { return *this; }
    METAL_FUNC constexpr bfloat operator-() const { return bfloat(-wide()); }
    METAL_FUNC constexpr bfloat &operator++() { return *this = bfloat(wide() + 1); }
    METAL_FUNC constexpr bfloat &operator--() { return *this = bfloat(wide() - 1); }

  private:
    // To nearest, ties to even; a NaN stays one.
    static METAL_FUNC constexpr ushort round(float f) {
        const uint u = __builtin_bit_cast(uint, f);
        if ((u & 0x7fffffffu) > 0x7f800000u)
            return static_cast<ushort>((u >> 16) | 0x40u);
        return static_cast<ushort>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
};

namespace assay {
// What bfloat op S gives: bfloat with itself and with integers, float with wider floats.
template <class S> struct bfloat_with {};
template <> struct bfloat_with<float> { using type = float; };
template <> struct bfloat_with<half> { using type = float; };
#define ASSAY_BFLOAT_WITH(S)                                                                       \
    template <> struct bfloat_with<S> { using type = bfloat; };
ASSAY_BFLOAT_WITH(bool)
ASSAY_BFLOAT_WITH(char)
ASSAY_BFLOAT_WITH(int8_t)
ASSAY_BFLOAT_WITH(uchar)
ASSAY_BFLOAT_WITH(short)
ASSAY_BFLOAT_WITH(ushort)
ASSAY_BFLOAT_WITH(int)
ASSAY_BFLOAT_WITH(uint)
ASSAY_BFLOAT_WITH(long)
ASSAY_BFLOAT_WITH(ulong)
#undef ASSAY_BFLOAT_WITH
} // namespace assay

#define ASSAY_BFLOAT_ARITHMETIC(op)                                                                \
    METAL_FUNC constexpr bfloat operator op(bfloat a, bfloat b) {                                  \
        return bfloat(a.wide() op b.wide());                                                       \
    }                                                                                              \
    template <class S, class R = typename assay::bfloat_with<S>::type>                             \
    METAL_FUNC constexpr R operator op(bfloat a, S b) {                                            \
        return R(a.wide() op static_cast<float>(R(b)));                                            \
    }                                                                                              \
    template <class S, class R = typename assay::bfloat_with<S>::type>                             \
    METAL_FUNC constexpr R operator op(S a, bfloat b) {                                            \
        return R(static_cast<float>(R(a)) op b.wide());                                            \
    }                                                                                              \
    template <class S> METAL_FUNC constexpr bfloat &operator op##=(bfloat &a, S b) {               \
        return a = bfloat(a op b);                                                                 \
    }
ASSAY_BFLOAT_ARITHMETIC(+)
ASSAY_BFLOAT_ARITHMETIC(-)
ASSAY_BFLOAT_ARITHMETIC(*)
ASSAY_BFLOAT_ARITHMETIC(/)
#undef ASSAY_BFLOAT_ARITHMETIC

#define ASSAY_BFLOAT_COMPARISON(op)                                                                \
    METAL_FUNC constexpr bool operator op(bfloat a, bfloat b) {                                    \
        return a.wide() op b.wide();                                                               \
    }                                                                                              \
    template <class S, class R = typename assay::bfloat_with<S>::type>                             \
    METAL_FUNC constexpr bool operator op(bfloat a, S b) {                                         \
        return a.wide() op static_cast<float>(b);                                                  \
    }                                                                                              \
    template <class S, class R = typename assay::bfloat_with<S>::type>                             \
    METAL_FUNC constexpr bool operator op(S a, bfloat b) {                                         \
        return static_cast<float>(a) op b.wide();                                                  \
    }
ASSAY_BFLOAT_COMPARISON(<)
ASSAY_BFLOAT_COMPARISON(>)
ASSAY_BFLOAT_COMPARISON(<=)
ASSAY_BFLOAT_COMPARISON(>=)
ASSAY_BFLOAT_COMPARISON(==)
ASSAY_BFLOAT_COMPARISON(!=)
#undef ASSAY_BFLOAT_COMPARISON

#elif defined(__x86_64__) && !defined(__CUDA__)

// The compiler calls this to narrow; libgcc has it only since version 13.
extern "C" __attribute__((weak, visibility("hidden"))) bfloat __truncsfbf2(float f) {
    const uint u = __builtin_bit_cast(uint, f);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    const uint rounded = nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return __builtin_bit_cast(bfloat, static_cast<ushort>(rounded));
}

#endif

namespace assay {

// No branches, so that four of them become one vector instruction: first to the nearest float that
// fits, then the ends that no float reaches.
template <class T> METAL_FUNC constexpr T saturate_to(float x) {
    constexpr bool is_signed = metal::is_signed_v<T>;
    constexpr int bits = static_cast<int>(sizeof(T)) * 8 - is_signed;
    constexpr float above = static_cast<float>(1ul << (bits / 2)) *
                            static_cast<float>(1ul << (bits - bits / 2)); // 2 to the bits
    constexpr float fits = above * (1.0f - 0x1p-24f);
    constexpr float low = is_signed ? -above : 0.0f;
    constexpr T most = static_cast<T>(~0ul >> (64 - bits));
    ASSAY_CHECK(!(x > low - 1.0f || x >= low) || x >= above, SOFT_CONVERT, 0, nullptr);
    const float from_low = x > low ? x : low;
    const T inside = static_cast<T>(from_low < fits ? from_low : fits);
    const T number = x >= above ? most : inside;
    return x == x ? number : T(0);
}

// Any scalar to any other, as a GPU does it.
template <class T, class S> METAL_FUNC constexpr T to(S s) {
    constexpr bool narrow_floats =
        metal::is_floating_point_v<T> && metal::is_floating_point_v<S> && sizeof(T) == sizeof(S);
    if constexpr (metal::is_same_v<T, S>)
        return s;
    else if constexpr (metal::is_same_v<T, bool>)
        return s != static_cast<S>(0);
    else if constexpr (metal::is_integral_v<T> && metal::is_floating_point_v<S>)
        return saturate_to<T>(static_cast<float>(s));
    else if constexpr (narrow_floats)
        return static_cast<T>(static_cast<float>(s));
    else
        return static_cast<T>(s);
}

} // namespace assay
