// limits: numeric_limits of MSL.
#pragma once
#pragma clang system_header

namespace metal {

template <class T> struct _numeric_limits_impl { static constexpr bool is_specialized = false; };

#define ASSAY_INTEGER_LIMITS(T, low, high, bits)                                                   \
    template <> struct _numeric_limits_impl<T> {                                                   \
        static constexpr bool is_specialized = true;                                               \
        static constexpr bool is_integer = true;                                                   \
        static constexpr bool is_exact = true;                                                     \
        static constexpr bool is_bounded = true;                                                   \
        static constexpr bool is_signed = (low) < 0;                                               \
        static constexpr bool is_modulo = (low) == 0;                                              \
        static constexpr bool is_iec559 = false;                                                   \
        static constexpr bool has_infinity = false;                                                \
        static constexpr bool has_quiet_NaN = false;                                               \
        static constexpr bool has_signaling_NaN = false;                                           \
        static constexpr int radix = 2;                                                            \
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
    template <> struct _numeric_limits_impl<T> {                                                   \
        static constexpr bool is_specialized = true;                                               \
        static constexpr bool is_integer = false;                                                  \
        static constexpr bool is_exact = false;                                                    \
        static constexpr bool is_bounded = true;                                                   \
        static constexpr bool is_signed = true;                                                    \
        static constexpr bool is_modulo = false;                                                   \
        static constexpr bool is_iec559 = true;                                                    \
        static constexpr bool has_infinity = true;                                                 \
        static constexpr bool has_quiet_NaN = true;                                                \
        static constexpr bool has_signaling_NaN = true;                                            \
        static constexpr int radix = 2;                                                            \
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
