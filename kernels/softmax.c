/* softmax: launches, oracle and cases. */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

static void softmax_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[1];
    uint32_t n = oracle_u32(io, 2);
    out->terms = n;
    out->roundings = 20; /* exp to 4 ULP above and below, a division to 2, a difference */
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

static const shape shapes[] = {
    {{1, 1}}, {{1, 2}}, {{1, 31}}, {{1, 33}}, {{3, 65}}, {{2, 576}}, {{5, 1000}}, {{1, 65536}},
};

static const kernel kernels[] = {
    OP_KERNEL("softmax", NULL, "one threadgroup per row", "softmax.metal", .group = 256),
};

OP(softmax, "y = e^x / sum of e^x", "rows x n", kernels, SHAPE_LIST(shapes, 3, 77),
   .sizes = "rows n", .build = softmax_build);
