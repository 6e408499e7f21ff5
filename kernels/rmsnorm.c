/* rmsnorm: launches, oracle and cases. */
#include "kernels.h"

#include <assert.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

#define ONE_ROW                                                                                    \
    {{1, 1}}, {{1, 3, 1}}, {{1, 31}}, {{1, 32}}, {{1, 33}}, {{1, 255}}, {{1, 256}}, {{1, 257}},    \
        {{1, 576}}, {{1, 576, 1}}, {{1, 1536}}, {{1, 1027}}, {                                     \
        { 1, 4096 }                                                                                \
    }
static const shape shapes[] = {ONE_ROW,    {{1, 16384}}, {{2, 1}},    {{2, 33}},   {{5, 257}},
                               {{3, 576}}, {{64, 576}},  {{3, 1030}}, {{17, 4096}}};
/* For a kernel that reads dim^2 values: longer rows are slow, and show nothing new. */
static const shape one_row[] = {ONE_ROW};
static const shape_list one_row_list = SHAPE_LIST(one_row, 1, 77);

static const kernel kernels[] = {
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

OP(rmsnorm, "y = x / sqrt(mean(x^2) + eps) * w", "rows x dim x by_hand", kernels,
   SHAPE_LIST(shapes, 1, 77), .many = "rows", .sizes = "rows dim", .build = rmsnorm_build);
