/* bandwidth_triad: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

static void bandwidth_triad_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[2];
    reference_triad(io->in[0], io->in[1], (double)oracle_f32(io, 4), out->count, out->value,
                    out->scale);
    out->terms = 0;
    out->roundings = 1; /* the product; the sum is rounded when it is stored */
}

bool bandwidth_triad_record(tape *t, const kernel *k, slice b, slice c, slice out, uint32_t n,
                            float scalar, uint32_t groups, err *e) {
    if (groups == 0 || groups > UINT32_MAX / k->group || n > UINT32_MAX - groups * k->group)
        return err_set(e, EXIT_CANNOT, "%s: cannot make %u float4 with %u threadgroups", k->name, n,
                       groups);
    size_t count = size_multiply(n, 4);
    const launch_work w = {
        .groups = {groups, 1, 1}, .flops = 8 * (uint64_t)n, .oracle = bandwidth_triad_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN4("b", b, count), ARG_IN4("c", c, count),
                       ARG_OUT4("out", out, count), ARG_U32(n), ARG_F32(scalar));
}

/* The inputs have one float4 more than is used, and it is not NaN as a guard zone is. */
static bool bandwidth_triad_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0], groups = c->shape.dim[1];
    size_t count = size_multiply((size_t)n + 1, 4);
    slice b, d, out;
    return case_input_f32(c, "b", count, &b, e) && case_input_f32(c, "c", count, &d, e) &&
           case_output(c, "out", size_multiply(n, 4 * sizeof(float)), &out, e) &&
           bandwidth_triad_record(c->tape, c->kernel, b, d, out, n, 0.4f, groups, e);
}

static const shape shapes[] = {
    {{1, 1}},   {{1, 3}},    {{255, 1}},   {{256, 1}},     {{257, 1}},
    {{257, 2}}, {{1000, 3}}, {{12345, 7}}, {{100003, 64}},
};

static const kernel kernels[] = {
    OP_KERNEL("bandwidth_triad", NULL, "float4 loads and stores, strided by the grid",
              "bandwidth_triad.metal", .group = 256),
};

OP(bandwidth_triad, "out = b + scalar * c", "n x groups", kernels, SHAPE_LIST(shapes, 777, 2),
   .sizes = "n groups", .build = bandwidth_triad_build);
