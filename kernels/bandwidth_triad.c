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
    const operand operands[] = {{"b", b, count, ACCESS_READ},
                                {"c", c, count, ACCESS_READ},
                                {"out", out, count, ACCESS_WRITE}};
    launch *l = record_floats(t, k, 16, operands, COUNT_OF(operands), e);
    if (!l)
        return false;
    launch_set_u32(l, 3, n);
    launch_set_f32(l, 4, scalar);
    launch_set_groups(l, (size3){groups, 1, 1}, (size3){k->group, 1, 1});
    l->flops = 8 * (uint64_t)n;
    l->oracle = bandwidth_triad_oracle;
    return true;
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
    {.name = "bandwidth_triad",
     .about = "float4 loads and stores, strided by the grid",
     .file = "bandwidth_triad.metal",
     .group = 256},
};

const op bandwidth_triad_op = {
    .name = "bandwidth_triad",
    .about = "out = b + scalar * c",
    .dims = "n x groups",
    .kernels = kernels,
    .kernel_count = COUNT_OF(kernels),
    .shapes = {shapes, COUNT_OF(shapes), {{777, 2}}},
    .build = bandwidth_triad_build,
};
