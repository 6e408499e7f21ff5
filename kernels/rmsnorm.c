/* rmsnorm: launches, oracle and cases. */
#include "kernels.h"

#include <assert.h>
#include <stdlib.h>

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

static const kernel kernels[] = {
    {.name = "rmsnorm",
     .variant = "plain",
     .about = "one thread per output, each sums the whole row",
     .file = "rmsnorm.metal",
     .group = 256},
    {.name = "rmsnorm_simdgroup",
     .variant = "simdgroup",
     .about = "one simdgroup",
     .file = "rmsnorm.metal",
     .group = 32,
     .rows = 1},
    {.name = "rmsnorm_threadgroup",
     .variant = "threadgroup",
     .about = "one threadgroup",
     .file = "rmsnorm.metal",
     .group = 256,
     .rows = 1},
    {.name = "rmsnorm_rows",
     .variant = "rows",
     .about = "one threadgroup per row, any number of rows",
     .file = "rmsnorm.metal",
     .group = 256,
     .rows = 1,
     .tokens = 1},
    {.name = "rmsnorm_rows_simdgroup",
     .variant = "rows_simdgroup",
     .about = "one simdgroup per row, any number of rows",
     .file = "rmsnorm.metal",
     .group = 32,
     .rows = 1,
     .tokens = 1},
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
    size_t row_bytes = size_multiply(dim, sizeof(float)), bytes = size_multiply(rows, row_bytes);
    if (!record_trim(k, "x", bytes, sizeof(float), &x, e) ||
        !record_trim(k, "w", row_bytes, sizeof(float), &w, e) ||
        !record_trim(k, "y", bytes, sizeof(float), &y, e))
        return false;
    if (rows != 1 && k->tokens == 0)
        return err_set(e, EXIT_CANNOT, "%s: takes one row, not %u; use rmsnorm_rows", k->name,
                       rows);
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    launch_bind(l, 0, x, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, w, ACCESS_READ, ELEM_F32);
    launch_bind(l, 2, y, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 3, dim);
    launch_set_f32(l, 4, eps);
    if (k->rows == 0) /* one thread per output */
        launch_set_threads_rounded(l, dim, k->group);
    else
        launch_set_groups(l, (size3){rows, 1, 1}, (size3){k->group, 1, 1});
    l->bytes = 2 * bytes + row_bytes;
    l->flops =
        (uint64_t)rows * (4 * (uint64_t)dim + 3); /* x*x, +, *inverse, *w; / + rsqrt per row */
    l->oracle = rmsnorm_oracle;
    return true;
}

static bool rmsnorm_accepts(const kernel *k, const shape *s, err *e) {
    if (k->rows == 0 && s->dim[1] > 4096) /* dim^2 reads: slow, and shows nothing new */
        return err_set(e, EXIT_CANNOT, "reads dim^2 values: run only on rows of up to 4096");
    return k->tokens != 0 || s->dim[0] == 1 || err_set(e, EXIT_CANNOT, "takes only one row");
}

/* The third dimension, if it is 1, stands for x = 3, 4, 0, 3, 4, 0... and w = 1: the example worked
 * out by hand (3, 4, 0 has the mean square 25 / 3). */
static bool make_by_hand(kernel_case *c, slice *x, slice *w, size_t count, size_t dim, err *e) {
    static const float pattern[] = {3, 4, 0};
    float *values = malloc(size_multiply(count, sizeof *values));
    assert(values && dim <= count);
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

static const shape shapes[] = {
    {{1, 1}},   {{1, 3, 1}}, {{1, 31}},     {{1, 32}},   {{1, 33}},    {{1, 255}},   {{1, 256}},
    {{1, 257}}, {{1, 576}},  {{1, 576, 1}}, {{1, 1536}}, {{1, 4096}},  {{1, 16384}}, {{2, 1}},
    {{2, 33}},  {{5, 257}},  {{3, 576}},    {{64, 576}}, {{17, 4096}},
};

const op rmsnorm_op = {
    .name = "rmsnorm",
    .about = "y = x / sqrt(mean(x^2) + eps) * w",
    .dims = "rows x dim x by_hand",
    .kernels = kernels,
    .kernel_count = COUNT_OF(kernels),
    .shapes = {shapes, COUNT_OF(shapes), {{1, 77}}},
    .accepts = rmsnorm_accepts,
    .build = rmsnorm_build,
};
