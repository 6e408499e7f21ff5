// common: what the shim and msl/strict/metal.h share: integer types, the macros of MSL 3.1 that are
// numbers, its type traits, the enumerations that barriers, fences and atomics take, and which functions Apple's own
// headers call by another name.
//
// In C++ for OpenCL a value that lives as long as the program needs an address space, which
// ASSAY_CONSTANT names.
#pragma once
#pragma clang system_header

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

#define __METAL_PRECISE_MATH__ 0
#define __METAL_MAYBE_FAST_MATH__ 1
#define __METAL_FAST_MATH__ 2
#define __METAL_MEMORY_SCOPE_SYSTEM__ 4

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define MAXFLOAT FLT_MAX
#define FLT_DIG 6
#define FLT_DECIMAL_DIG 9
#define FLT_MANT_DIG 24
#define FLT_MAX_10_EXP 38
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MIN_EXP (-125)
#define FLT_RADIX 2
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1.0p-126f
#define FLT_EPSILON 0x1.0p-23f
#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN (-2147483647 - 1)

#define HUGE_VALH static_cast<half>(__builtin_inff())
#define MAXHALF HALF_MAX
#define HALF_DIG 3
#define HALF_DECIMAL_DIG 5
#define HALF_MANT_DIG 11
#define HALF_MAX_10_EXP 4
#define HALF_MAX_EXP 16
#define HALF_MIN_10_EXP (-4)
#define HALF_MIN_EXP (-13)
#define HALF_RADIX 2
#define HALF_MAX static_cast<half>(0x1.ffcp15f)
#define HALF_MIN static_cast<half>(0x1.0p-14f)
#define HALF_EPSILON static_cast<half>(0x1.0p-10f)

#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX SCHAR_MAX
#define CHAR_MIN SCHAR_MIN
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul

#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.43429448190325182765f
#define M_LN2_F 0.69314718055994530942f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.78539816339744830962f
#define M_1_PI_F 0.31830988618379067154f
#define M_2_PI_F 0.63661977236758134308f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f

#define M_E_H static_cast<half>(M_E_F)
#define M_LOG2E_H static_cast<half>(M_LOG2E_F)
#define M_LOG10E_H static_cast<half>(M_LOG10E_F)
#define M_LN2_H static_cast<half>(M_LN2_F)
#define M_LN10_H static_cast<half>(M_LN10_F)
#define M_PI_H static_cast<half>(M_PI_F)
#define M_PI_2_H static_cast<half>(M_PI_2_F)
#define M_PI_4_H static_cast<half>(M_PI_4_F)
#define M_1_PI_H static_cast<half>(M_1_PI_F)
#define M_2_PI_H static_cast<half>(M_2_PI_F)
#define M_2_SQRTPI_H static_cast<half>(M_2_SQRTPI_F)
#define M_SQRT2_H static_cast<half>(M_SQRT2_F)
#define M_SQRT1_2_H static_cast<half>(M_SQRT1_2_F)

namespace metal {

template <class T, T v> struct integral_constant {
    static constexpr ASSAY_CONSTANT T value = v;
    using value_type = T;
    using type = integral_constant;
    constexpr operator T() const { return v; }
    constexpr T operator()() const { return v; }
};
template <bool v> using bool_constant = integral_constant<bool, v>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <bool c, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <bool c, class T = void> using enable_if_t = typename enable_if<c, T>::type;

template <bool c, class A, class B> struct conditional { using type = A; };
template <class A, class B> struct conditional<false, A, B> { using type = B; };
template <bool c, class A, class B> using conditional_t = typename conditional<c, A, B>::type;

template <class... B> struct _disjunction : bool_constant<(B::value || ...)> {};
template <class... B> struct _conjunction : bool_constant<(B::value && ...)> {};
template <class B> struct _negation : bool_constant<!B::value> {};

// Each of the first group is X<T>::type and X_t<T>, each of the second X<T>::value and X_v<T>.
#define ASSAY_TYPE_TRAIT(name, pattern, result)                                                    \
    template <class T> struct name { using type = T; };                                            \
    template <class T> struct name<pattern> { using type = result; };                              \
    template <class T> using name##_t = typename name<T>::type;
ASSAY_TYPE_TRAIT(remove_const, const T, T)
ASSAY_TYPE_TRAIT(remove_volatile, volatile T, T)
ASSAY_TYPE_TRAIT(remove_extent, T[], T)
template <class T, size_t n> struct remove_extent<T[n]> { using type = T; };
ASSAY_TYPE_TRAIT(remove_reference, T &, T)
template <class T> struct remove_reference<T &&> { using type = T; };
ASSAY_TYPE_TRAIT(remove_pointer, T *, T)
template <class T> struct remove_pointer<T *const> { using type = T; };
#undef ASSAY_TYPE_TRAIT

#define ASSAY_TYPE_TRAIT(name, ...)                                                                \
    template <class T> struct name { using type = __VA_ARGS__; };                                  \
    template <class T> using name##_t = typename name<T>::type;
ASSAY_TYPE_TRAIT(remove_cv, remove_const_t<remove_volatile_t<T>>)
ASSAY_TYPE_TRAIT(add_const, const T)
ASSAY_TYPE_TRAIT(add_volatile, volatile T)
ASSAY_TYPE_TRAIT(add_cv, const volatile T)
ASSAY_TYPE_TRAIT(add_pointer, remove_reference_t<T> *)
ASSAY_TYPE_TRAIT(add_lvalue_reference, T &)
ASSAY_TYPE_TRAIT(add_rvalue_reference, T &&)
ASSAY_TYPE_TRAIT(underlying_type, __underlying_type(T))
#undef ASSAY_TYPE_TRAIT

#define ASSAY_VALUE_TRAIT(name, ...)                                                               \
    template <class T> struct name : bool_constant<__VA_ARGS__> {};                                \
    template <class T> constexpr ASSAY_CONSTANT bool name##_v = name<T>::value;
#define ASSAY_VALUE_TRAIT_2(name, ...)                                                             \
    template <class A, class B> struct name : bool_constant<__VA_ARGS__> {};                       \
    template <class A, class B> constexpr ASSAY_CONSTANT bool name##_v = name<A, B>::value;
ASSAY_VALUE_TRAIT_2(is_same, __is_same(A, B))
ASSAY_VALUE_TRAIT_2(is_convertible, __is_convertible_to(A, B))
ASSAY_VALUE_TRAIT_2(is_base_of, __is_base_of(A, B))
ASSAY_VALUE_TRAIT(is_void, __is_void(T))
ASSAY_VALUE_TRAIT(is_integral, __is_integral(T))
ASSAY_VALUE_TRAIT(is_floating_point, is_same_v<remove_cv_t<T>, float> ||
                                         is_same_v<remove_cv_t<T>, half> ||
                                         is_same_v<remove_cv_t<T>, bfloat>)
ASSAY_VALUE_TRAIT(is_arithmetic, is_integral_v<T> || is_floating_point_v<T>)
ASSAY_VALUE_TRAIT(is_fundamental, is_arithmetic_v<T> || is_void_v<T>)
ASSAY_VALUE_TRAIT(is_signed, is_floating_point_v<T> || __is_signed(T))
ASSAY_VALUE_TRAIT(is_unsigned, is_integral_v<T> && !__is_signed(T))
ASSAY_VALUE_TRAIT(is_enum, __is_enum(T))
ASSAY_VALUE_TRAIT(is_class, __is_class(T) && !is_same_v<remove_cv_t<T>, bfloat>)
ASSAY_VALUE_TRAIT(is_union, __is_union(T))
ASSAY_VALUE_TRAIT(is_pointer, __is_pointer(T))
ASSAY_VALUE_TRAIT(is_array, __is_array(T))
ASSAY_VALUE_TRAIT(is_function, __is_function(T))
ASSAY_VALUE_TRAIT(is_reference, __is_reference(T))
ASSAY_VALUE_TRAIT(is_lvalue_reference, __is_lvalue_reference(T))
ASSAY_VALUE_TRAIT(is_rvalue_reference, __is_rvalue_reference(T))
ASSAY_VALUE_TRAIT(is_const, __is_const(T))
ASSAY_VALUE_TRAIT(is_volatile, __is_volatile(T))
ASSAY_VALUE_TRAIT(is_scalar, is_arithmetic_v<T> || __is_enum(T) || __is_pointer(T))
ASSAY_VALUE_TRAIT(is_trivially_copyable, __is_trivially_copyable(T))
#undef ASSAY_VALUE_TRAIT
#undef ASSAY_VALUE_TRAIT_2

template <class T> struct decay {
    using V = remove_reference_t<T>;
    using type = conditional_t<is_array_v<V>, remove_extent_t<V> *, remove_cv_t<V>>;
};
template <class T> using decay_t = typename decay<T>::type;

template <class T> add_rvalue_reference_t<T> declval() noexcept;

template <class T, T... i> struct integer_sequence {
    using value_type = T;
    static constexpr size_t size() { return sizeof...(i); }
};
template <class T, T n> using make_integer_sequence = __make_integer_seq<integer_sequence, T, n>;
template <size_t... i> using index_sequence = integer_sequence<size_t, i...>;
template <size_t n> using make_index_sequence = make_integer_sequence<size_t, n>;

template <class T> struct make_unsigned {
    using type = conditional_t<
        sizeof(T) == 1, uchar,
        conditional_t<sizeof(T) == 2, ushort, conditional_t<sizeof(T) == 4, uint, ulong>>>;
};
template <class T> struct make_signed {
    using type = conditional_t<
        sizeof(T) == 1, int8_t,
        conditional_t<sizeof(T) == 2, short, conditional_t<sizeof(T) == 4, int, long>>>;
};
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
template <class T> using make_signed_t = typename make_signed<T>::type;

} // namespace metal

// Operators are here, where only their operands find them: classes by an empty base. So clang looks at `v.xy - x` of a
// template when v's type is known, and knows what a property is (swizzle.h).
namespace assay::operators {

using namespace metal;
struct of_vectors {};
struct of_matrices {};
struct of_bfloats {};

enum class mem_flags {
    mem_none = 0,
    mem_device = 1,
    mem_threadgroup = 2,
    mem_device_and_threadgroup = 3, // of early versions of the language
    mem_texture = 4,
    mem_threadgroup_imageblock = 8,
    mem_object_data = 16,
};
METAL_FUNC constexpr mem_flags operator|(mem_flags a, mem_flags b) {
    return static_cast<mem_flags>(static_cast<int>(a) | static_cast<int>(b));
}
METAL_FUNC constexpr mem_flags operator&(mem_flags a, mem_flags b) {
    return static_cast<mem_flags>(static_cast<int>(a) & static_cast<int>(b));
}

} // namespace assay::operators

namespace metal {

using assay::operators::mem_flags;

enum thread_scope {
    thread_scope_thread,
    thread_scope_simdgroup,
    thread_scope_threadgroup,
    thread_scope_device,
};
enum memory_scope {
    memory_scope_simdgroup,
    memory_scope_threadgroup,
    memory_scope_device,
};
enum memory_order {
    memory_order_relaxed = __ATOMIC_RELAXED,
    memory_order_acquire = __ATOMIC_ACQUIRE,
    memory_order_release = __ATOMIC_RELEASE,
    memory_order_acq_rel = __ATOMIC_ACQ_REL,
    memory_order_seq_cst = __ATOMIC_SEQ_CST,
};

} // namespace metal

// THE list of functions that Apple's own headers call __metal_x for metal::x, by what they take: one to
// three values, a value and a lane, or what a shift that fills takes. metal.h of the shim and of
// msl/strict make them of it.
// clang-format off
#define ASSAY_ALIASES(ONE, TWO, THREE, LANE, FILL) \
    ONE(acos) ONE(acosh) ONE(asin) ONE(asinh) ONE(atan) ONE(atanh) ONE(ceil) ONE(cos) ONE(cosh) \
    ONE(cospi) ONE(exp) ONE(exp10) ONE(exp2) ONE(fabs) ONE(floor) ONE(fract) ONE(log) ONE(log10) \
    ONE(log2) ONE(rint) ONE(round) ONE(rsqrt) ONE(sin) ONE(sinh) ONE(sinpi) ONE(sqrt) ONE(tan) \
    ONE(tanh) ONE(tanpi) ONE(trunc) ONE(simd_max) ONE(simd_min) \
    ONE(simd_prefix_exclusive_product) ONE(simd_prefix_exclusive_sum) \
    ONE(simd_prefix_inclusive_product) ONE(simd_prefix_inclusive_sum) ONE(simd_product) \
    ONE(simd_sum) ONE(simd_xor) \
    TWO(atan2) TWO(divide) TWO(fmax) TWO(fmin) TWO(fmod) TWO(nextafter) TWO(pow) TWO(powr) \
    THREE(fma) THREE(fmax3) THREE(fmedian3) THREE(fmin3) \
    LANE(simd_broadcast) LANE(simd_shuffle) LANE(simd_shuffle_down) \
    LANE(simd_shuffle_rotate_down) LANE(simd_shuffle_rotate_up) LANE(simd_shuffle_up) \
    LANE(simd_shuffle_xor) \
    FILL(simd_shuffle_and_fill_down) FILL(simd_shuffle_and_fill_up)
// clang-format on
