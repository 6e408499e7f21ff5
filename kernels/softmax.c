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
    const operand operands[] = {{"x", x, count, ACCESS_READ}, {"y", y, count, ACCESS_WRITE}};
    launch *l = record_floats(t, k, sizeof(float), operands, COUNT_OF(operands), e);
    if (!l)
        return false;
    launch_set_u32(l, 2, n);
    launch_set_groups(l, (size3){rows, 1, 1}, (size3){k->group, 1, 1});
    l->flops = 5 * (uint64_t)count;
    l->oracle = softmax_oracle;
    return true;
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
    {.name = "softmax",
     .variant = "threadgroup",
     .about = "one threadgroup per row",
     .file = "softmax.metal",
     .group = 256},
    {.name = "softmax_alone",
     .variant = "alone",
     .about = "one thread per row",
     .file = "softmax.metal",
     .group = 1},
};

const op softmax_op = {
    .name = "softmax",
    .about = "y = e^x / sum of e^x",
    .dims = "rows x n",
    .kernels = kernels,
    .kernel_count = COUNT_OF(kernels),
    .shapes = {shapes, COUNT_OF(shapes), {{3, 77}}},
    .build = softmax_build,
};
