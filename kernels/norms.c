/* norms: launches, oracles and cases of rmsnorm, of layer_norm, group_norm and l2_norm, and of softmax. */
#include "kernels.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

/* rmsnorm --------------------------------------------------------------------------------------- */

#define ONE_ROW                                                                                    \
    {{1, 1}}, {{1, 3, 1}}, {{1, 31}}, {{1, 32}}, {{1, 33}}, {{1, 255}}, {{1, 256}}, {{1, 257}},    \
        {{1, 576}}, {{1, 576, 1}}, {{1, 1536}}, {{1, 1027}}, {                                     \
        { 1, 4096 }                                                                                \
    }
static const shape rms_shapes[] = {ONE_ROW,    {{1, 16384}}, {{2, 1}},    {{2, 33}},   {{5, 257}},
                                   {{3, 576}}, {{64, 576}},  {{3, 1030}}, {{17, 4096}}};
/* For a kernel that reads dim^2 values: longer rows are slow, and show nothing new. */
static const shape one_row[] = {ONE_ROW};
static const shape_list one_row_list = SHAPE_LIST(one_row, 1, 77);

static const kernel rms_kernels[] = {
    OP_KERNEL("rmsnorm", "plain", "one thread per output, each sums the whole row", "rmsnorm.metal",
              .group = 256, .shapes = &one_row_list),
    OP_KERNEL("rmsnorm_simdgroup", "simdgroup", "one simdgroup", "rmsnorm.metal", .group = 32,
              .rows = 1),
    OP_KERNEL("rmsnorm_per_thread", "per_thread", "one thread", "rmsnorm.metal", .group = 1,
              .rows = 1),
    OP_KERNEL("rmsnorm_rows", "rows", "one threadgroup per row, any number of rows",
              "rmsnorm.metal", .group = 256, .rows = 1, .tokens = 1),
    OP_KERNEL("rmsnorm_rows_simdgroup", "rows_simdgroup",
              "one simdgroup per row, any number of rows", "rmsnorm.metal", .group = 32, .rows = 1,
              .tokens = 1),
};

static void rmsnorm_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[2];
    uint32_t dim = oracle_u32(io, 3);
    reference_rmsnorm(io->in[0], io->in[1], out->count / dim, dim, (double)oracle_f32(io, 4),
                      out->value, out->scale);
    out->terms = dim;
    out->roundings = 10; /* square, divide, add, rsqrt to 2 ULP, two products */
}

bool rmsnorm_record(tape *t, const kernel *k, slice x, slice w, slice y, uint32_t rows,
                    uint32_t dim, float eps, err *e) {
    if (!RECORD_TAKES(&rmsnorm_op, k, e, rows, dim))
        return false;
    size_t count = size_multiply(rows, dim);
    bool is_wide = k->rows == 1 && k->group > 32; /* reads float4s where rows are made of them */
    size_t alignment = is_wide && dim % 4 == 0 ? 16 : sizeof(float);
    const launch_work work = {
        .groups = {rows, 1, 1},
        .threads = k->rows == 0 ? dim : 0,       /* one thread per output */
        .flops = rows * (4 * (uint64_t)dim + 3), /* x*x, +, *inverse, *w; / + rsqrt per row */
        .oracle = rmsnorm_oracle};
    return RECORD_ARGS(t, k, &work, e, ARG_BUFFER("x", x, count, ACCESS_READ, ELEM_F32, alignment),
                       ARG_BUFFER("w", w, dim, ACCESS_READ, ELEM_F32, alignment),
                       ARG_BUFFER("y", y, count, ACCESS_WRITE, ELEM_F32, alignment), ARG_U32(dim),
                       ARG_F32(eps));
}

/* The third dimension, if it is 1, stands for x = 3, 4, 0, 3, 4, 0... and w = 1: the example worked
 * out by hand (3, 4, 0 has the mean square 25 / 3). */
static bool make_by_hand(kernel_case *c, slice *x, slice *w, size_t count, size_t dim, err *e) {
    static const float pattern[] = {3, 4, 0};
    float *values = array_new(count, sizeof *values);
    assert(dim <= count);
    for (size_t i = 0; i < count; i++)
        values[i] = pattern[i % 3];
    bool ok = case_input_bytes(c, "x", values, count * sizeof *values, x, e);
    for (size_t i = 0; i < dim; i++)
        values[i] = 1;
    ok = ok && case_input_bytes(c, "w", values, dim * sizeof *values, w, e);
    free(values);
    return ok;
}

static bool rmsnorm_build(kernel_case *c, err *e) {
    uint32_t rows = c->shape.dim[0], dim = c->shape.dim[1];
    size_t count = size_multiply(rows, dim);
    slice x, w, y;
    bool made = c->shape.dim[2] == 1
                    ? make_by_hand(c, &x, &w, count, dim, e)
                    : case_input_f32(c, "x", count, &x, e) && case_input_f32(c, "w", dim, &w, e);
    return made && case_output(c, "y", count * sizeof(float), &y, e) &&
           rmsnorm_record(c->tape, c->kernel, x, w, y, rows, dim, 1e-5f, e);
}

OP(rmsnorm, "y = x / sqrt(mean(x^2) + eps) * w", "rows x dim x by_hand", rms_kernels,
   SHAPE_LIST(rms_shapes, 1, 77), .many = "rows", .sizes = "rows dim", .build = rmsnorm_build);

/* layer_norm, group_norm, l2_norm --------------------------------------------------------------- */

#define KERNEL(name, variant, about, group_, rows_)                                                \
    OP_KERNEL(name, variant, about, "layer_norm.metal", .group = group_, .rows = rows_)
static const kernel layer_kernels[] = {
    KERNEL("layer_norm", "threadgroup", "one threadgroup per row", 256, 1),
    KERNEL("layer_norm_per_thread", "per_thread", "one thread per row", 1, 1),
    OP_KERNEL("layer_norm_prefetch", "prefetch", "one threadgroup per row, weights loaded ahead",
              "layer_norm.metal", .group = 512, .rows = 1, .most = 4096),
};
static const kernel group_kernels[] = {
    KERNEL("group_norm", "simdgroup", "one simdgroup per group", 256, 8),
    KERNEL("group_norm_per_thread", "per_thread", "one thread per group", 32, 32),
};
static const kernel l2_kernels[] = {
    KERNEL("l2_norm", "simdgroup", "one simdgroup per row", 256, 8),
    KERNEL("l2_norm_per_thread", "per_thread", "one thread per row", 32, 32),
};

/* The difference, the square, two divisions, a sum, rsqrt to 2 ULP, two products, a sum. */
enum { NORM_ROUNDINGS = 18 };

static void expect_norm(const float *x, const float *w, const float *b, size_t groups, size_t dim,
                        float eps, expected *out) {
    reference_group_norm(x, w, b, out->count / dim / groups, groups, dim, (double)eps, out->value,
                         out->scale);
    out->terms = (double)dim;
    out->roundings = NORM_ROUNDINGS;
}

static void layer_norm_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expect_norm(io->in[0], io->in[1], io->in[2], 1, oracle_u32(io, 4), oracle_f32(io, 5),
                &io->out[3]);
}

static void group_norm_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expect_norm(io->in[2], io->in[0], io->in[1], oracle_u32(io, 5), oracle_u32(io, 3),
                oracle_f32(io, 4), &io->out[2]);
}

static void l2_norm_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[0];
    reference_l2_norm(io->in[0], oracle_u32(io, 1), oracle_u32(io, 2), (double)oracle_f32(io, 3),
                      out->value, out->scale);
    out->terms = oracle_u32(io, 2);
    out->roundings = 8; /* the square, rsqrt to 2 ULP, the product, the square of eps */
}

bool layer_norm_record(tape *t, const kernel *k, slice x, slice w, slice b, slice y, uint32_t rows,
                       uint32_t dim, float eps, err *e) {
    if (!RECORD_TAKES(&layer_norm_op, k, e, rows, dim))
        return false;
    size_t count = size_multiply(rows, dim);
    const launch_work work = {.groups = {rows, 1, 1},
                              .flops = 7 * (uint64_t)count + 4 * (uint64_t)rows,
                              .oracle = layer_norm_oracle};
    return RECORD_ARGS(t, k, &work, e, ARG_IN("x", x, count), ARG_IN("w", w, dim),
                       ARG_IN("b", b, dim), ARG_OUT("y", y, count), ARG_U32(dim), ARG_F32(eps));
}

bool group_norm_record(tape *t, const kernel *k, slice w, slice b, slice x, uint32_t rows,
                       uint32_t groups, uint32_t dim, float eps, err *e) {
    size_t weights = size_multiply(groups, dim), count = size_multiply(rows, weights);
    if (count > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %zu values overflow a 32-bit index", k->name, count);
    const launch_work work = {.groups = {divide_up(rows * groups, k->rows), 1, 1},
                              .flops = 7 * (uint64_t)count + 4 * (uint64_t)rows * groups,
                              .oracle = group_norm_oracle};
    return RECORD_ARGS(t, k, &work, e, ARG_IN("w", w, weights), ARG_IN("b", b, weights),
                       ARG_BOTH("x", x, count), ARG_U32(dim), ARG_F32(eps), ARG_U32(groups),
                       ARG_U32(rows * groups));
}

bool l2_norm_record(tape *t, const kernel *k, slice x, uint32_t rows, uint32_t dim, float eps,
                    err *e) {
    size_t count = size_multiply(rows, dim);
    const launch_work w = {.groups = {divide_up(rows, k->rows), 1, 1},
                           .flops = 3 * (uint64_t)count + 2 * (uint64_t)rows,
                           .oracle = l2_norm_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_BOTH("x", x, count), ARG_U32(rows), ARG_U32(dim),
                       ARG_F32(eps));
}

/* --- cases. What is changed in place is followed by a row that must survive. --- */

static bool layer_norm_build(kernel_case *c, err *e) {
    uint32_t rows = c->shape.dim[0], dim = c->shape.dim[1];
    size_t count = size_multiply(rows, dim);
    slice x, w, b, y;
    return case_input_f32(c, "x", count, &x, e) && case_input_f32(c, "w", dim, &w, e) &&
           case_input_f32(c, "b", dim, &b, e) &&
           case_output(c, "y", count * sizeof(float), &y, e) &&
           layer_norm_record(c->tape, c->kernel, x, w, b, y, rows, dim, 1e-5f, e);
}

static bool group_norm_build(kernel_case *c, err *e) {
    uint32_t rows = c->shape.dim[0], groups = c->shape.dim[1], dim = c->shape.dim[2];
    size_t weights = size_multiply(groups, dim);
    slice w, b, x;
    return case_input_f32(c, "w", weights, &w, e) && case_input_f32(c, "b", weights, &b, e) &&
           case_input_f32(c, "x", size_multiply(rows + 1, weights), &x, e) &&
           group_norm_record(c->tape, c->kernel, w, b, x, rows, groups, dim, 64e-5f, e);
}

static bool l2_norm_build(kernel_case *c, err *e) {
    uint32_t rows = c->shape.dim[0], dim = c->shape.dim[1];
    slice x;
    return case_input_f32(c, "x", size_multiply(rows + 1, dim), &x, e) &&
           l2_norm_record(c->tape, c->kernel, x, rows, dim, 1e-12f, e);
}

static const shape layer_shapes[] = {
    {{1, 1}},   {{1, 2}},   {{1, 31}},  {{1, 33}},   {{1, 64}},
    {{1, 255}}, {{1, 256}}, {{1, 257}}, {{1, 768}},  {{1, 2560}},
    {{2, 1}},   {{5, 257}}, {{3, 768}}, {{64, 128}}, {{17, 4096}},
};
static const shape group_shapes[] = {
    {{1, 1, 1}},  {{1, 1, 4}},  {{1, 2, 4}},   {{3, 2, 4}},   {{1, 7, 31}},  {{5, 3, 32}},
    {{2, 4, 33}}, {{1, 1, 64}}, {{1, 12, 64}}, {{7, 12, 64}}, {{64, 9, 64}}, {{3, 3, 128}},
};
static const shape l2_shapes[] = {
    {{1, 1}},  {{1, 4}},  {{2, 4}},   {{7, 31}},   {{8, 32}},
    {{9, 33}}, {{1, 64}}, {{12, 64}}, {{300, 64}}, {{31, 128}},
};

OP(layer_norm, "y = (x - mean) / sqrt(variance + eps) * w + b", "rows x dim", layer_kernels,
   SHAPE_LIST(layer_shapes, 3, 77), .inner = "dim", .sizes = "rows dim", .build = layer_norm_build);
OP(group_norm, "a layer norm of each group of a row, in place", "rows x groups x dim",
   group_kernels, SHAPE_LIST(group_shapes, 3, 2, 13), .sizes = "rows groups dim",
   .build = group_norm_build);
OP(l2_norm, "x / max(|x|, eps), in place", "rows x dim", l2_kernels, SHAPE_LIST(l2_shapes, 5, 13),
   .sizes = "rows dim", .build = l2_norm_build);

/* softmax --------------------------------------------------------------------------------------- */

static void softmax_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[1];
    uint32_t n = oracle_u32(io, 2);
    out->terms = n;
    out->roundings = 20; /* exp to 4 ULP above and below, a division to 2, a difference */
    out->row = n;    /* its own: exp to 3 + |2 x| ULP, or exp2 to 3 + |2 x log2 e| and a product, */
    out->apart = 12; /* and a division to 2.5 */
    reference_softmax(io->in[0], out->count / n, n, out->roundings + 2 * sqrt(out->terms),
                      out->value, out->scale);
}

static bool softmax_record(tape *t, const kernel *k, slice x, slice y, uint32_t rows, uint32_t n,
                           err *e) {
    size_t count = size_multiply(rows, n);
    const launch_work w = {
        .groups = {rows, 1, 1}, .flops = 5 * (uint64_t)count, .oracle = softmax_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN("x", x, count), ARG_OUT("y", y, count), ARG_U32(n));
}

/* From negative numbers, rows around -1e38, where one number has all the weight, and every second one
 * just above -1e4, where many have some. */
static bool make_rows(kernel_case *c, size_t rows, size_t n, slice *out, err *e) {
    float *x = array_new(size_multiply(rows, n), sizeof *x);
    fill_f32(&c->random, c->inputs, x, rows * n);
    for (size_t i = 0; c->inputs == INPUT_NEGATIVE && i < rows * n; i++)
        x[i] = i / n % 2 ? -1e4f - 1e-12f * x[i] : 1e26f * x[i];
    bool ok = case_input_bytes(c, "x", x, rows * n * sizeof *x, out, e);
    free(x);
    return ok;
}

static bool softmax_build(kernel_case *c, err *e) {
    uint32_t rows = c->shape.dim[0], n = c->shape.dim[1];
    size_t count = size_multiply(rows, n);
    slice x, y;
    return make_rows(c, rows, n, &x, e) && case_output(c, "y", count * sizeof(float), &y, e) &&
           softmax_record(c->tape, c->kernel, x, y, rows, n, e);
}

static const shape softmax_shapes[] = {
    {{1, 1}}, {{1, 2}}, {{1, 31}}, {{1, 33}}, {{3, 65}}, {{2, 576}}, {{5, 1000}}, {{1, 65536}},
};

static const kernel softmax_kernels[] = {
    OP_KERNEL("softmax", NULL, "one threadgroup per row", "softmax.metal", .group = 256),
};

OP(softmax, "y = e^x / sum of e^x", "rows x n", softmax_kernels, SHAPE_LIST(softmax_shapes, 3, 77),
   .sizes = "rows n", .build = softmax_build);
