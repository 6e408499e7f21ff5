/* bias_add: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/os.h"
#include "record.h"
#include "reference/reference.h"

static void bias_add_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[0];
    const float *a = io->in[0];
    uint32_t dim = oracle_u32(io, 2), rows = oracle_u32(io, 3);
    for (size_t r = 0; r < rows; r++)
        reference_residual_add(a + r * dim, io->in[1], dim, out->value + r * dim,
                               out->scale + r * dim);
    out->roundings = 0; /* one addition and nothing else */
}

bool bias_add_record(tape *t, const kernel *k, slice a, slice b, uint32_t rows, uint32_t dim,
                     err *e) {
    size_t b_bytes = os_multiply(dim, sizeof(float)), a_bytes = os_multiply(rows, b_bytes);
    if (!record_trim(k, "a", a_bytes, sizeof(float), &a, e) ||
        !record_trim(k, "b", b_bytes, sizeof(float), &b, e))
        return false;
    if (a_bytes > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %u rows of %u are too many for a 32-bit index", k->name,
                       rows, dim);
    launch *l = tape_add(t, "bias_add.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, a, ACCESS_BOTH, ELEM_F32);
    launch_bind(l, 1, b, ACCESS_READ, ELEM_F32);
    launch_set_u32(l, 2, dim);
    launch_set_u32(l, 3, rows);
    launch_set_threads_rounded(l, rows * dim, k->group);
    l->bytes = 2 * a_bytes + b_bytes;
    l->flops = (uint64_t)rows * dim;
    l->oracle = bias_add_oracle;
    return true;
}

/* Behind the last row stands one more float that must stay as it is: adding to the NaN of a guard
 * zone would go unseen. */
static bool bias_add_build(kernel_case *c, err *e) {
    uint32_t rows = c->shape.dim[0], dim = c->shape.dim[1];
    slice a, b;
    return case_input_f32(c, "a", os_multiply(rows, dim) + 1, &a, e) &&
           case_input_f32(c, "b", dim, &b, e) &&
           bias_add_record(c->tape, c->kernel, a, b, rows, dim, e);
}

static const shape shapes[] = {
    {{1, 1}},   {{1, 31}},   {{3, 1}},    {{2, 33}},     {{1, 255}},     {{1, 256}},
    {{1, 257}}, {{4, 64}},   {{255, 3}},  {{1, 576}},    {{64, 576}},    {{19, 192}},
    {{7, 896}}, {{33, 128}}, {{5, 4096}}, {{100, 1536}}, {{1000, 1003}},
};

static const kernel bias_rows[] = {
    {.name = "bias_add", .about = "a thread a float", .group = 256},
};

const op bias_add_op = {
    .name = "bias_add",
    .about = "a += b for each row of a",
    .dims = "rows x dim",
    .kernels = bias_rows,
    .kernel_count = COUNT_OF(bias_rows),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{7, 11}},
    .build = bias_add_build,
};
