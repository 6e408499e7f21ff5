// mixed: what the kernels of matvec_mixed share: their arguments, and which product a threadgroup has.
#pragma once

#include "../activations.h"
#include "../formats/formats.h"

// As product.c fills it: groups counts threadgroups, each of which has rows of one product only.
struct product_shape {
    uint rows, in_dim, groups;
    uchar format, activation, has_bias, accumulates;
};
struct product_list {
    product_shape items[7];
};

#define FORMAT_NUMBER(f, ...) number_##f,
enum format_number { FORMATS(FORMAT_NUMBER) };

#define PRODUCT(n, first)                                                                          \
    device const uchar *w##n [[buffer(first)]], device const float *x##n [[buffer(first + 1)]],    \
        device const float *bias##n [[buffer(first + 2)]],                                         \
        device float *y##n [[buffer(first + 3)]]
#define PRODUCTS                                                                                   \
    PRODUCT(0, 0), PRODUCT(1, 4), PRODUCT(2, 8), PRODUCT(3, 12), PRODUCT(4, 16), PRODUCT(5, 20),   \
        PRODUCT(6, 24), constant product_list &list [[buffer(28)]]

// The product p of this threadgroup, whose number among its threadgroups group becomes, and its w, x,
// bias and y.
#define TAKE_PRODUCT(i)                                                                            \
    if (n == i) {                                                                                  \
        w = w##i;                                                                                  \
        x = x##i;                                                                                  \
        bias = bias##i;                                                                            \
        y = y##i;                                                                                  \
    }
#define FIND_PRODUCT(group)                                                                        \
    uint n = 0;                                                                                    \
    while (n < 6 && group >= list.items[n].groups) {                                               \
        group -= list.items[n].groups;                                                             \
        n++;                                                                                       \
    }                                                                                              \
    const product_shape p = list.items[n];                                                         \
    device const uchar *w = w0;                                                                    \
    device const float *x = x0;                                                                    \
    device const float *bias = bias0;                                                              \
    device float *y = y0;                                                                          \
    TAKE_PRODUCT(1)                                                                                \
    TAKE_PRODUCT(2)                                                                                \
    TAKE_PRODUCT(3)                                                                                \
    TAKE_PRODUCT(4)                                                                                \
    TAKE_PRODUCT(5)                                                                                \
    TAKE_PRODUCT(6)
