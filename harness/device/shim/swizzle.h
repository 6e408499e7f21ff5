// swizzle: the macros that give a vector class its swizzles, .xy, .wzyx, .bgr...
//
// A swizzle is a *property*: the compiler turns v.yx into v.get_yx() and v.yx = e into
// v.put_yx(e) (-fdeclspec). So it has no storage, the vector stays a plain struct that is trivially
// copyable, and the result is a real vec<T, N> that templates can deduce. Swizzles that repeat a
// component name a setter that does not exist: reading works, writing does not compile.
//
// The letters grow one at a time: ASSAY_GROWk_N(M, N, xy, rg, x, y) calls M with every name that
// has one letter more, M(N, xyx, rgr, x, y, x) M(N, xyy, rgg, x, y, y)... N is how many components
// the class has; k tells the levels apart, since a macro does not expand inside itself.
#pragma once
#pragma clang system_header

#define ASSAY_GROW1_2(M, N) M(N, x, r, x) M(N, y, g, y)
#define ASSAY_GROW1_3(M, N) ASSAY_GROW1_2(M, N) M(N, z, b, z)
#define ASSAY_GROW1_4(M, N) ASSAY_GROW1_3(M, N) M(N, w, a, w)

#define ASSAY_GROW2_2(M, N, n, c, ...)                                                             \
    M(N, n##x, c##r, __VA_ARGS__, x) M(N, n##y, c##g, __VA_ARGS__, y)
#define ASSAY_GROW2_3(M, N, n, c, ...)                                                             \
    ASSAY_GROW2_2(M, N, n, c, __VA_ARGS__) M(N, n##z, c##b, __VA_ARGS__, z)
#define ASSAY_GROW2_4(M, N, n, c, ...)                                                             \
    ASSAY_GROW2_3(M, N, n, c, __VA_ARGS__) M(N, n##w, c##a, __VA_ARGS__, w)

#define ASSAY_GROW3_2(M, N, n, c, ...)                                                             \
    M(N, n##x, c##r, __VA_ARGS__, x) M(N, n##y, c##g, __VA_ARGS__, y)
#define ASSAY_GROW3_3(M, N, n, c, ...)                                                             \
    ASSAY_GROW3_2(M, N, n, c, __VA_ARGS__) M(N, n##z, c##b, __VA_ARGS__, z)
#define ASSAY_GROW3_4(M, N, n, c, ...)                                                             \
    ASSAY_GROW3_3(M, N, n, c, __VA_ARGS__) M(N, n##w, c##a, __VA_ARGS__, w)

#define ASSAY_GROW4_2(M, N, n, c, ...)                                                             \
    M(N, n##x, c##r, __VA_ARGS__, x) M(N, n##y, c##g, __VA_ARGS__, y)
#define ASSAY_GROW4_3(M, N, n, c, ...)                                                             \
    ASSAY_GROW4_2(M, N, n, c, __VA_ARGS__) M(N, n##z, c##b, __VA_ARGS__, z)
#define ASSAY_GROW4_4(M, N, n, c, ...)                                                             \
    ASSAY_GROW4_3(M, N, n, c, __VA_ARGS__) M(N, n##w, c##a, __VA_ARGS__, w)

// One swizzle: a getter, and a property under both of its names.
#define ASSAY_SWIZZLE(count, n, c, ...)                                                            \
    METAL_FUNC constexpr vec<T, count> get_##n() const {                                           \
        return vec<T, count>(__VA_ARGS__);                                                         \
    }                                                                                              \
    __declspec(property(get = get_##n, put = put_##n)) vec<T, count> n, c;
#define ASSAY_SWIZZLE2(N, n, c, ...) ASSAY_SWIZZLE(2, n, c, __VA_ARGS__)
#define ASSAY_SWIZZLE3(N, n, c, ...) ASSAY_SWIZZLE(3, n, c, __VA_ARGS__)
#define ASSAY_SWIZZLE4(N, n, c, ...) ASSAY_SWIZZLE(4, n, c, __VA_ARGS__)
#define ASSAY_COLOUR(N, n, c, ...)                                                                 \
    METAL_FUNC constexpr T get_##n() const {                                                       \
        return n;                                                                                  \
    }                                                                                              \
    METAL_FUNC constexpr void put_##n(T t_) {                                                      \
        n = t_;                                                                                    \
    }                                                                                              \
    __declspec(property(get = get_##n, put = put_##n)) T c;

#define ASSAY_PAIR(N, ...) ASSAY_GROW2_##N(ASSAY_SWIZZLE2, N, __VA_ARGS__)

#define ASSAY_TRIPLE(N, ...) ASSAY_GROW3_##N(ASSAY_SWIZZLE3, N, __VA_ARGS__)
#define ASSAY_TO_TRIPLE(N, ...) ASSAY_GROW2_##N(ASSAY_TRIPLE, N, __VA_ARGS__)

#define ASSAY_QUAD(N, ...) ASSAY_GROW4_##N(ASSAY_SWIZZLE4, N, __VA_ARGS__)
#define ASSAY_HALFWAY_QUAD(N, ...) ASSAY_GROW3_##N(ASSAY_QUAD, N, __VA_ARGS__)
#define ASSAY_TO_QUAD(N, ...) ASSAY_GROW2_##N(ASSAY_HALFWAY_QUAD, N, __VA_ARGS__)

// Setters: the swizzles that name each component once.
#define ASSAY_PUT(count, n, ...)                                                                   \
    METAL_FUNC constexpr void put_##n(vec<T, count> v_) {                                          \
        __VA_ARGS__;                                                                               \
    }
#define ASSAY_PUT2(a, b) ASSAY_PUT(2, a##b, a = v_.x, b = v_.y)
#define ASSAY_PUT3(a, b, c) ASSAY_PUT(3, a##b##c, a = v_.x, b = v_.y, c = v_.z)
#define ASSAY_PUT4(a, b, c, d) ASSAY_PUT(4, a##b##c##d, a = v_.x, b = v_.y, c = v_.z, d = v_.w)
#define ASSAY_PUT2_ORDERS(a, b) ASSAY_PUT2(a, b) ASSAY_PUT2(b, a)
// PUT with a, b and c in each order; a fourth stays last.
#define ASSAY_ORDERS(PUT, a, b, c, ...)                                                            \
    PUT(a, b, c, ##__VA_ARGS__)                                                                    \
    PUT(a, c, b, ##__VA_ARGS__)                                                                    \
    PUT(b, a, c, ##__VA_ARGS__)                                                                    \
    PUT(b, c, a, ##__VA_ARGS__)                                                                    \
    PUT(c, a, b, ##__VA_ARGS__)                                                                    \
    PUT(c, b, a, ##__VA_ARGS__)

#define ASSAY_PUTS_2 ASSAY_PUT2_ORDERS(x, y)
#define ASSAY_PUTS_3                                                                               \
    ASSAY_PUTS_2 ASSAY_PUT2_ORDERS(x, z) ASSAY_PUT2_ORDERS(y, z) ASSAY_ORDERS(ASSAY_PUT3, x, y, z)
#define ASSAY_PUTS_4                                                                               \
    ASSAY_PUTS_3                                                                                   \
    ASSAY_PUT2_ORDERS(x, w)                                                                        \
    ASSAY_PUT2_ORDERS(y, w)                                                                        \
    ASSAY_PUT2_ORDERS(z, w)                                                                        \
    ASSAY_ORDERS(ASSAY_PUT3, x, y, w)                                                              \
    ASSAY_ORDERS(ASSAY_PUT3, x, z, w)                                                              \
    ASSAY_ORDERS(ASSAY_PUT3, y, z, w)                                                              \
    ASSAY_ORDERS(ASSAY_PUT4, x, y, z, w)                                                           \
    ASSAY_ORDERS(ASSAY_PUT4, x, y, w, z)                                                           \
    ASSAY_ORDERS(ASSAY_PUT4, x, z, w, y)                                                           \
    ASSAY_ORDERS(ASSAY_PUT4, y, z, w, x)

// All swizzles of a class of N components x, y... of type T. A vector of two or three can also be
// read into a longer one (v.xyxy).
#define ASSAY_SWIZZLES(N)                                                                          \
    ASSAY_GROW1_##N(ASSAY_COLOUR, N) ASSAY_GROW1_##N(ASSAY_PAIR, N)                                \
        ASSAY_GROW1_##N(ASSAY_TO_TRIPLE, N) ASSAY_GROW1_##N(ASSAY_TO_QUAD, N) ASSAY_PUTS_##N
