// types: the scalar types of MSL.
//
// Owns what exists before any vector does: their names and traits, the bfloat of compilers without
// one, conversions, numeric_limits, the literals of half and bfloat. No libc or libstdc++ header is
// included anywhere in the shim, because kernels define names those headers own (erf, sum, ...). Only
// what MSL defines stands in namespace metal; helpers of the shim are in namespace assay.
#pragma once
#pragma clang system_header

// nodebug: its instructions belong to the line of the .metal file that called for them. At its end
// metal.h defines it again for kernels, without that: their lines are their own.
#define METAL_FUNC inline __attribute__((always_inline, nodebug))
// After the parameters of a lambda, for the same reason.
#define ASSAY_LAMBDA __attribute__((always_inline, nodebug))
#define METAL_INTERNAL METAL_FUNC

#ifndef __METAL__
#define __METAL__ 1
#endif
#ifndef __HAVE_BFLOAT__
#define __HAVE_BFLOAT__ 1
#endif

typedef signed char int8_t;
typedef _Float16 half;

// __bf16 has had arithmetic since LLVM 18; Apple counts its versions differently. soft/compile.c asks
// the same compilers to round it after every operation.
#if defined(__apple_build_version__) ? __clang_major__ >= 17 : __clang_major__ >= 18
#define ASSAY_NATIVE_BFLOAT 1
typedef __bf16 bfloat;
#else
#define ASSAY_NATIVE_BFLOAT 0
struct bfloat;
#endif

#define ASSAY_CONSTANT
#include "common.h"
#undef ASSAY_CONSTANT

namespace metal {
template <class T> struct remove_addrspace { using type = T; };
template <class T> using remove_addrspace_t = typename remove_addrspace<T>::type;
} // namespace metal

// bfloat --------------------------------------------------------------------------------------
// The class of compilers whose __bf16 cannot compute. What converts implicitly is chosen so that real
// kernels have one best overload: bfloat becomes float (and only float) by itself; integers become
// bfloat; float and half need a cast, as the result would lose bits.
#if !ASSAY_NATIVE_BFLOAT

struct bfloat : assay::operators::of_bfloats {
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
template <class S> using bfloat_with =
    metal::enable_if_t<metal::is_arithmetic_v<S> && !metal::is_same_v<S, bfloat>,
                       metal::conditional_t<metal::is_integral_v<S>, bfloat, float>>;

namespace operators {

#define ASSAY_BFLOAT_ARITHMETIC(op)                                                                \
    METAL_FUNC constexpr bfloat operator op(bfloat a, bfloat b) {                                  \
        return bfloat(a.wide() op b.wide());                                                       \
    }                                                                                              \
    template <class S, class R = assay::bfloat_with<S>>                                            \
    METAL_FUNC constexpr R operator op(bfloat a, S b) {                                            \
        return R(a.wide() op static_cast<float>(R(b)));                                            \
    }                                                                                              \
    template <class S, class R = assay::bfloat_with<S>>                                            \
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
    template <class S, class R = assay::bfloat_with<S>>                                            \
    METAL_FUNC constexpr bool operator op(bfloat a, S b) {                                         \
        return a.wide() op static_cast<float>(b);                                                  \
    }                                                                                              \
    template <class S, class R = assay::bfloat_with<S>>                                            \
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
} // namespace operators
} // namespace assay

#elif defined(__x86_64__) && !defined(__CUDA__)

// The compiler calls this to narrow; libgcc has it only since version 13.
extern "C" __attribute__((weak, visibility("hidden"))) bfloat __truncsfbf2(float f) {
    const uint u = __builtin_bit_cast(uint, f);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    const uint rounded = nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return __builtin_bit_cast(bfloat, static_cast<ushort>(rounded));
}

#endif

// Conversions ----------------------------------------------------------------------------------
// Between scalars, as MSL does them and C++ does not: half to bfloat, floats out of an integer's range.
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

// What static_cast becomes in files that use bfloat (msl/rewrite.c): compilers refuse any cast between
// their 16-bit float types, which MSL allows.
template <class T, class S> METAL_FUNC constexpr T cast(S &&s) {
    using V = metal::remove_cv_t<metal::remove_reference_t<S>>;
    if constexpr (!metal::is_floating_point_v<T> || !metal::is_floating_point_v<V>)
        return static_cast<T>(static_cast<S &&>(s));
    else if constexpr (sizeof(T) == 2 && sizeof(V) == 2 && !metal::is_same_v<T, V>)
        return static_cast<T>(static_cast<float>(s));
    else
        return static_cast<T>(s);
}

} // namespace assay

// numeric_limits -------------------------------------------------------------------------------
namespace metal {

template <class T> struct _numeric_limits_impl { static constexpr bool is_specialized = false; };

template <class T> struct assay_limits {
    static constexpr bool is_specialized = true;
    static constexpr bool is_integer = is_integral_v<T>;
    static constexpr bool is_exact = is_integer;
    static constexpr bool is_bounded = true;
    static constexpr bool is_signed = is_signed_v<T>;
    static constexpr bool is_modulo = !is_signed;
    static constexpr bool is_iec559 = !is_integer;
    static constexpr bool has_infinity = !is_integer;
    static constexpr bool has_quiet_NaN = !is_integer;
    static constexpr bool has_signaling_NaN = !is_integer;
    static constexpr int radix = 2;
};

#define ASSAY_INTEGER_LIMITS(T, low, high, bits)                                                   \
    template <> struct _numeric_limits_impl<T> : assay_limits<T> {                                 \
        static constexpr int digits = bits;                                                        \
        static constexpr int digits10 = (bits)*3 / 10;                                             \
        static constexpr int max_digits10 = 0;                                                     \
        static constexpr int min_exponent = 0;                                                     \
        static constexpr int max_exponent = 0;                                                     \
        static constexpr int min_exponent10 = 0;                                                   \
        static constexpr int max_exponent10 = 0;                                                   \
        static constexpr T min() { return static_cast<T>(low); }                                   \
        static constexpr T lowest() { return static_cast<T>(low); }                                \
        static constexpr T max() { return static_cast<T>(high); }                                  \
        static constexpr T epsilon() { return T(0); }                                              \
        static constexpr T round_error() { return T(0); }                                          \
        static constexpr T infinity() { return T(0); }                                             \
        static constexpr T quiet_NaN() { return T(0); }                                            \
        static constexpr T signaling_NaN() { return T(0); }                                        \
        static constexpr T denorm_min() { return T(0); }                                           \
    };
ASSAY_INTEGER_LIMITS(bool, 0, 1, 1)
ASSAY_INTEGER_LIMITS(char, SCHAR_MIN, SCHAR_MAX, 7)
ASSAY_INTEGER_LIMITS(int8_t, SCHAR_MIN, SCHAR_MAX, 7)
ASSAY_INTEGER_LIMITS(uchar, 0, UCHAR_MAX, 8)
ASSAY_INTEGER_LIMITS(short, SHRT_MIN, SHRT_MAX, 15)
ASSAY_INTEGER_LIMITS(ushort, 0, USHRT_MAX, 16)
ASSAY_INTEGER_LIMITS(int, INT_MIN, INT_MAX, 31)
ASSAY_INTEGER_LIMITS(uint, 0, UINT_MAX, 32)
ASSAY_INTEGER_LIMITS(long, LONG_MIN, LONG_MAX, 63)
ASSAY_INTEGER_LIMITS(ulong, 0, ULONG_MAX, 64)
#undef ASSAY_INTEGER_LIMITS

#define ASSAY_FLOAT_LIMITS(T, smallest, largest, step, tiny, mantissa, decimals, low, high, low10, \
                           high10)                                                                 \
    template <> struct _numeric_limits_impl<T> : assay_limits<T> {                                 \
        static constexpr int digits = mantissa;                                                    \
        static constexpr int digits10 = decimals;                                                  \
        static constexpr int max_digits10 = (mantissa)*30103 / 100000 + 2;                         \
        static constexpr int min_exponent = low;                                                   \
        static constexpr int max_exponent = high;                                                  \
        static constexpr int min_exponent10 = low10;                                               \
        static constexpr int max_exponent10 = high10;                                              \
        static constexpr T min() { return static_cast<T>(smallest); }                              \
        static constexpr T lowest() { return static_cast<T>(-(largest)); }                         \
        static constexpr T max() { return static_cast<T>(largest); }                               \
        static constexpr T epsilon() { return static_cast<T>(step); }                              \
        static constexpr T round_error() { return static_cast<T>(0.5f); }                          \
        static constexpr T infinity() { return static_cast<T>(__builtin_inff()); }                 \
        static constexpr T quiet_NaN() { return static_cast<T>(__builtin_nanf("")); }              \
        static constexpr T signaling_NaN() { return static_cast<T>(__builtin_nansf("")); }         \
        static constexpr T denorm_min() { return static_cast<T>(tiny); }                           \
    };
ASSAY_FLOAT_LIMITS(float, FLT_MIN, FLT_MAX, FLT_EPSILON, 0x1p-149f, 24, 6, -125, 128, -37, 38)
ASSAY_FLOAT_LIMITS(half, 0x1p-14f, 0x1.ffcp15f, 0x1p-10f, 0x1p-24f, 11, 3, -13, 16, -4, 4)
ASSAY_FLOAT_LIMITS(bfloat, 0x1p-126f, 0x1.fep127f, 0x1p-7f, 0x1p-133f, 8, 2, -125, 128, -37, 38)
#undef ASSAY_FLOAT_LIMITS

template <class T> struct numeric_limits : _numeric_limits_impl<remove_cv_t<T>> {};

} // namespace metal

// Literals -------------------------------------------------------------------------------------
// 1.5h and 0x1p-3h, and 1.5bf, which msl/rewrite.c spells with a suffix that C++ lets us define. The
// digits are read at compile time, in a template, so that no optimisation level leaves a conversion to
// run time (from long double it would be a library call).
namespace assay {

constexpr int digit_of(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

constexpr double scale_by(double value, int base, int exponent) {
    for (; exponent > 0; --exponent)
        value *= base;
    for (; exponent < 0; ++exponent)
        value /= base;
    return value;
}

// text is a C++ number without its suffix: digits, perhaps a point, perhaps an exponent.
constexpr double read_number(const char *text) {
    const bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const int base = hexadecimal ? 16 : 10;
    const char *p = hexadecimal ? text + 2 : text;
    double value = 0;
    int behind_point = 0;
    bool after_point = false;
    for (; *p; ++p) {
        const bool exponent = hexadecimal ? *p == 'p' || *p == 'P' : *p == 'e' || *p == 'E';
        if (exponent)
            break;
        if (*p == '.')
            after_point = true;
        if (*p == '.' || *p == '\'')
            continue;
        value = value * base + digit_of(*p);
        behind_point += after_point;
    }
    value = scale_by(value, base, -behind_point);
    if (!*p)
        return value;
    ++p;
    const bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        ++p;
    int exponent = 0;
    for (; *p; ++p)
        exponent = exponent * 10 + digit_of(*p);
    return scale_by(value, hexadecimal ? 2 : 10, negative ? -exponent : exponent);
}

// Rounded to odd, so that rounding the float again is as good as rounding the number once.
constexpr float to_odd_float(double value) {
    const float nearest = static_cast<float>(value);
    if (nearest == value)
        return nearest;
    const uint bits = __builtin_bit_cast(uint, nearest);
    return __builtin_bit_cast(float, nearest > value ? (bits - 1) | 1 : bits | 1);
}

template <char... c> struct number {
    static constexpr char text[sizeof...(c) + 1] = {c..., 0};
    static constexpr half as_half = static_cast<half>(read_number(text));
    static constexpr bfloat as_bfloat = static_cast<bfloat>(to_odd_float(read_number(text)));
};

} // namespace assay

template <char... c> METAL_FUNC constexpr half operator""h() {
    constexpr half value = assay::number<c...>::as_half;
    return value;
}
template <char... c> METAL_FUNC constexpr bfloat operator""_assay_bf() {
    constexpr bfloat value = assay::number<c...>::as_bfloat;
    return value;
}
