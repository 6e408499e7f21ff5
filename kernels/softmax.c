/* softmax: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

static void softmax_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[1];
    uint32_t n = oracle_u32(io, 2);
    reference_softmax(io->in[0], out->count / n, n, out->value, out->scale);
    out->terms = n;
    out->roundings = 20; /* exp to 4 ULP above and below, a division to 2, a difference */
}

bool softmax_record(tape *t, const kernel *k, slice x, slice y, uint32_t rows, uint32_t n, err *e) {
    size_t count = size_multiply(rows, n);
    const launch_work w = {
        .groups = {rows, 1, 1}, .flops = 5 * (uint64_t)count, .oracle = softmax_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN("x", x, count), ARG_OUT("y", y, count), ARG_U32(n));
}

static bool softmax_build(kernel_case *c, err *e) {
    uint32_t rows = c->shape.dim[0], n = c->shape.dim[1];
    size_t count = size_multiply(rows, n);
    slice x, y;
    return case_input_f32(c, "x", count, &x, e) &&
           case_output(c, "y", count * sizeof(float), &y, e) &&
           softmax_record(c->tape, c->kernel, x, y, rows, n, e);
}

static const shape shapes[] = {
    {{1, 1}},   {{1, 2}},  {{1, 31}},  {{1, 33}},   {{1, 255}},   {{1, 256}},
    {{1, 257}}, {{3, 65}}, {{2, 576}}, {{5, 1000}}, {{1, 65536}},
};

static const kernel kernels[] = {
    OP_KERNEL("softmax", "threadgroup", "one threadgroup per row", "softmax.metal", .group = 256),
    OP_KERNEL("softmax_alone", "alone", "one thread per row", "softmax.metal", .group = 1),
};

OP(softmax, "y = e^x / sum of e^x", "rows x n", kernels, SHAPE_LIST(shapes, 3, 77),
   .build = softmax_build);
