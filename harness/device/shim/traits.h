// traits: the type traits of MSL 3.1. msl/strict/metal.h includes it too: in C++ for OpenCL a value
// that lives as long as the program needs an address space, which ASSAY_CONSTANT names.
#pragma once
#pragma clang system_header

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
