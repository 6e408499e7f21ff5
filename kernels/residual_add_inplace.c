/* residual_add_inplace: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/os.h"
#include "record.h"
#include "reference/reference.h"

static void residual_add_inplace_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[0];
    reference_residual_add(io->in[0], io->in[1], out->count, out->value, out->scale);
    out->roundings = 0; /* one addition and nothing else */
}

bool residual_add_inplace_record(tape *t, const kernel *k, slice a, slice b, uint32_t n,
                                 err *e) {
    size_t bytes = os_multiply(n, sizeof(float));
    if (!record_trim(k, "a", bytes, sizeof(float), &a, e) ||
        !record_trim(k, "b", bytes, sizeof(float), &b, e))
        return false;
    launch *l = tape_add(t, "residual_add_inplace.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, a, ACCESS_BOTH, ELEM_F32);
    launch_bind(l, 1, b, ACCESS_READ, ELEM_F32);
    launch_set_u32(l, 2, n);
    launch_set_threads_rounded(l, n, k->group);
    l->bytes = 3 * bytes;
    l->flops = n;
    l->oracle = residual_add_inplace_oracle;
    return true;
}

static bool residual_add_inplace_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0];
    slice a, b;
    return case_input_f32(c, "a", n, &a, e) && case_input_f32(c, "b", n, &b, e) &&
           residual_add_inplace_record(c->tape, c->kernel, a, b, n, e);
}

static const shape shapes[] = {
    {{1}},   {{31}},  {{32}},   {{33}},   {{255}},   {{256}},
    {{257}}, {{576}}, {{1536}}, {{4096}}, {{49152}}, {{1000003}},
};

static const kernel rows[] = {
    {.name = "residual_add_inplace", .about = "a thread a float", .group = 256},
};

const op residual_add_inplace_op = {
    .name = "residual_add_inplace",
    .about = "a += b",
    .dims = "n",
    .kernels = rows,
    .kernel_count = COUNT_OF(rows),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{77}},
    .build = residual_add_inplace_build,
};
