// declared: private variables that checked mode keeps an eye on.
//
// A variable declared without a value is known as such until something is stored in it; an array
// stands far from everything else, so that a pointer that leaves it is seen. The kernel uses both through references whose
// origin the compiler cannot see: accesses to variables that it knows to be private would not be
// instrumented. msl/declare.c writes the macros below.
#pragma once
#pragma clang system_header

#include "checked.h"
#include "vec.h"

#if !defined(ASSAY_CHECKED_LESS)

inline void *operator new(decltype(sizeof 0), void *at, assay::type_description *) {
    return at;
}

namespace assay {

// Which bytes of a T are values: SOFT_MARK_UNSET, 0 for padding, SOFT_MARK_MAYBE where that cannot
// be told. A class can be asked byte by byte if it can be a constant: padding has no value then.
template <soft_u64 n> struct byte_row {
    unsigned char at[n];
};

template <int> struct any_value {};
template <class T, soft_u64 i, class = void> struct is_value {
    static constexpr bool value = false;
};
template <class T, soft_u64 i>
struct is_value<
    T, i, decltype(void(any_value<__builtin_bit_cast(byte_row<sizeof(T)>, T{}).at[i] * 0>()))> {
    static constexpr bool value = true;
};

template <class T, size_t... i>
constexpr byte_row<sizeof(T)> ask_each(metal::index_sequence<i...>) {
    return {{(is_value<T, i>::value ? SOFT_MARK_UNSET : 0)...}};
}

template <class T> struct values_of {
    static constexpr bool is_class = __is_class(T) || __is_union(T);
    byte_row<sizeof(T)> row;
    constexpr values_of() : row() {
        if constexpr (is_class && sizeof(T) <= 256 && is_value<T, 0>::value)
            row = ask_each<T>(metal::make_index_sequence<sizeof(T)>());
        else
            for (soft_u64 i = 0; i < sizeof(T); ++i)
                row.at[i] = is_class ? SOFT_MARK_MAYBE : SOFT_MARK_UNSET;
    }
};
template <class T, int n> struct values_of<metal::vec<T, n>> {
    byte_row<sizeof(metal::vec<T, n>)> row;
    constexpr values_of() : row() {
        for (soft_u64 i = 0; i < n * sizeof(T); ++i)
            row.at[i] = SOFT_MARK_UNSET;
    }
};

template <class T> constexpr values_of<T> values = values_of<T>();

template <class T> struct is_array_type { static constexpr bool value = false; };
template <class T, soft_u64 n> struct is_array_type<T[n]> { static constexpr bool value = true; };

// Where a variable stands: an array in a room of its own, anything else where it is.
template <class T> ASSAY_INLINE T *find_place(T &variable) {
    if constexpr (!is_array_type<T>::value)
        return &variable;
    soft_worker *w = soft_here();
    const char *site;
    SOFT_SITE(site);
    return static_cast<T *>(w->checks->reserve(w, sizeof(T), site + 1));
}

template <class T> class declared {
    using E = metal::remove_cv_t<typename element_of<T>::type>;
    static constexpr soft_u64 count = sizeof(T) / sizeof(E);

  public:
    // Without a value: a constructor may give it some.
    ASSAY_INLINE explicit declared(T &variable) : where(find_place(variable)) {
        hide();
        tell(values<E>.row.at, 1);
        if constexpr (!__is_trivially_constructible(E))
            for (soft_u64 i = 0; i < count; ++i)
                ::new (first() + i, nullptr) E;
    }
    // With one: what it was declared with is copied.
    ASSAY_INLINE declared(T &variable, const T &value) : where(find_place(variable)) {
        hide();
        tell(nullptr, 1);
        const E *from = reinterpret_cast<const E *>(&value);
        for (soft_u64 i = 0; i < count; ++i)
            ::new (first() + i, nullptr) E(from[i]);
    }
    ASSAY_INLINE ~declared() { tell(nullptr, 0); }
    ASSAY_INLINE T &get() const { return *where; }

  private:
    T *where;

    ASSAY_INLINE E *first() const {
        return const_cast<E *>(reinterpret_cast<const volatile E *>(where));
    }
    ASSAY_INLINE void hide() { __asm__ volatile("" : "+r"(where)); }
    ASSAY_INLINE void tell(const unsigned char *marks, soft_u32 begins) const {
        soft_worker *w = soft_here();
        void *at = const_cast<void *>(static_cast<const volatile void *>(where));
        w->checks->declare(w, at, sizeof(T), marks, sizeof(E), begins);
    }
};

} // namespace assay

// Some C++ does not allow what this adds: a jump past the declaration, for one. Then compile.c
// defines ASSAY_SKIP_57 as "~, 1" and what is declared on line 57 is left as it was.
#define ASSAY_NAME(line, variable) ASSAY_PICK(ASSAY_NAME_, ASSAY_SKIP_##line)(variable)
#define ASSAY_BIND(line, variable) ASSAY_PICK(ASSAY_BIND_, ASSAY_SKIP_##line)(variable)
#define ASSAY_BIND_ARRAY(line, variable) ASSAY_PICK(ASSAY_ARRAY_, ASSAY_SKIP_##line)(variable)
#define ASSAY_PICK(prefix, ...) ASSAY_JOIN(prefix, ASSAY_SECOND(__VA_ARGS__, 0, 0))
#define ASSAY_SECOND(...) ASSAY_SECOND_OF(__VA_ARGS__)
#define ASSAY_SECOND_OF(a, b, ...) b
#define ASSAY_JOIN(a, b) ASSAY_JOIN_2(a, b)
#define ASSAY_JOIN_2(a, b) a##b

#define ASSAY_NAME_0(variable) assay_##variable
#define ASSAY_BIND_0(variable)                                                                     \
    assay::declared<decltype(assay_##variable)> assay_life_of_##variable(assay_##variable);        \
    auto &variable = assay_life_of_##variable.get()
#define ASSAY_ARRAY_0(variable)                                                                    \
    assay::declared<decltype(assay_##variable)> assay_life_of_##variable(assay_##variable,         \
                                                                         assay_##variable);        \
    auto &variable = assay_life_of_##variable.get()
#define ASSAY_NAME_1(variable) variable
#define ASSAY_BIND_1(variable) ((void)0)
#define ASSAY_ARRAY_1(variable) ((void)0)

#else

#define ASSAY_NAME(line, variable) variable
#define ASSAY_BIND(line, variable) ((void)0)
#define ASSAY_BIND_ARRAY(line, variable) ((void)0)

#endif
