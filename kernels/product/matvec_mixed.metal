// matvec_mixed: up to seven products in one launch, each with a matrix in a format of its own, its
// own x, bias and activation, or adding to its y.
//
// The projections of a recurrent layer are many, small and in several formats, and none depends on
// another. As launches of their own each would take as long as its latency. The format is looked up
// per row: the choice is the same for all lanes of a simdgroup and costs a few instructions.
#include <metal_stdlib>
using namespace metal;

#include "../formats/formats.h"
#include "lean.h"
#include "row.h"

// As product.c fills it: groups counts threadgroups of 8 rows.
struct product_shape {
    uint rows, in_dim, groups;
    uchar format, activation, has_bias, accumulates;
};
struct product_list {
    product_shape items[7];
};

#define FORMAT_NUMBER(f, ...) number_##f,
enum format_number { FORMATS(FORMAT_NUMBER) };

template <typename F>
METAL_FUNC float mixed_dot(device const uchar *w, device const float *x, uint row, uint in_dim,
                           uint lane) {
    const plain_input<typename F::wide> input = {x};
    return dot_row<F>((device const typename F::block *)w, input, row, in_dim, lane);
}

// The same by the parts of lean.h, for the formats that have them.
template <typename H>
METAL_FUNC float lean_dot(device const uchar *w, device const float *x, uint row, uint in_dim,
                          uint lane) {
    lean_rows<H, 1, 1> all;
    all.blocks = in_dim / H::values;
    all.lane = lane;
    all.some = in_dim;
    all.rows[0] = (device const typename H::block *)w + size_t(row) * all.blocks;
    all.take(0);
    float sum = 0.0f;
    all.add_all(x, &sum);
    return simd_sum(sum);
}

// One row by a simdgroup.
METAL_FUNC void make_row(device const uchar *w, device const float *x, device const float *bias,
                         device float *y, product_shape p, uint row, uint lane) {
    float sum = 0.0f;
    switch (p.format) {
#define CASE(f, sum_of)                                                                            \
    case number_##f:                                                                               \
        sum = sum_of(w, x, row, p.in_dim, lane);                                                   \
        break;
#define LEAN_parts(f) CASE(f, lean_dot<f##_parts>)
#define LEAN_blocks(f)
#define LEAN_floats(f)
#define OTHER_parts(f)
#define OTHER_blocks(f) CASE(f, mixed_dot<f>)
#define OTHER_floats(f) CASE(f, mixed_dot<f>)
#define LEAN_CASE(f, kind, ...) LEAN_##kind(f)
#define OTHER_CASE(f, kind, ...) OTHER_##kind(f)
        FORMATS(LEAN_CASE)
        FORMATS(OTHER_CASE)
    }
    if (lane != 0)
        return;
    if (p.has_bias)
        sum += bias[row];
    sum = activate(p.activation, sum);
    y[row] = p.accumulates ? y[row] + sum : sum;
}

#define PRODUCT(n, first)                                                                          \
    device const uchar *w##n [[buffer(first)]], device const float *x##n [[buffer(first + 1)]],    \
        device const float *bias##n [[buffer(first + 2)]], device float *y##n [[buffer(first + 3)]]

// A threadgroup of 256 computes 8 rows of one product, one simdgroup each.
kernel void matvec_mixed(PRODUCT(0, 0), PRODUCT(1, 4), PRODUCT(2, 8), PRODUCT(3, 12),
                         PRODUCT(4, 16), PRODUCT(5, 20), PRODUCT(6, 24),
                         constant product_list &list [[buffer(28)]],
                         uint group [[threadgroup_position_in_grid]],
                         uint sg [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
    uint n = 0;
    while (n < 6 && group >= list.items[n].groups) {
        group -= list.items[n].groups;
        n++;
    }
    const product_shape p = list.items[n];
    const uint row = group * 8 + sg;
    if (row >= p.rows)
        return;
    device const uchar *w = w0;
    device const float *x = x0;
    device const float *bias = bias0;
    device float *y = y0;
#define TAKE(i)                                                                                    \
    if (n == i) {                                                                                  \
        w = w##i;                                                                                  \
        x = x##i;                                                                                  \
        bias = bias##i;                                                                            \
        y = y##i;                                                                                  \
    }
    TAKE(1)
    TAKE(2)
    TAKE(3)
    TAKE(4)
    TAKE(5)
    TAKE(6)
    make_row(w, x, bias, y, p, row, lane);
}
