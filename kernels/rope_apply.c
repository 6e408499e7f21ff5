/* rope_apply: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"
#include "rope.h"

static void rope_apply_oracle(const launch *l, oracle_io *io) {
    expected *out = &io->out[0];
    double theta = (double)oracle_f32(io, 4);
    reference_rope(io->in[0], oracle_u32(io, 1), oracle_u32(io, 2), oracle_u32(io, 3), theta,
                   out->value, out->scale);
    rope_judge(l, io->in[0], out->count, theta, out);
}

bool rope_apply_record(tape *t, const kernel *k, slice qk, uint32_t heads, uint32_t head_dim,
                       param pos, float theta, err *e) {
    uint32_t pairs = head_dim / 2;
    size_t bytes = size_multiply(size_multiply(heads, head_dim), sizeof(float));
    if (head_dim % 2 != 0)
        return err_set(e, EXIT_CANNOT, "%s: head_dim is %u and must be even", k->name, head_dim);
    if (!record_trim(k, "qk", bytes, sizeof(float), &qk, e))
        return false;
    if (bytes > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %u heads of %u overflow a 32-bit index", k->name, heads,
                       head_dim);
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    launch_bind(l, 0, qk, ACCESS_BOTH, ELEM_F32);
    launch_set_u32(l, 1, heads);
    launch_set_u32(l, 2, head_dim);
    launch_set_param(l, 3, pos, ELEM_U32);
    launch_set_f32(l, 4, theta);
    launch_set_threads_rounded(l, heads * pairs, k->group);
    l->bytes = 2 * bytes;
    l->flops = 6 * (uint64_t)heads * pairs; /* the rotation; the angle is not counted */
    l->oracle = rope_apply_oracle;
    return true;
}

/* The position comes from device memory, as it does in a model. */
static bool rope_apply_build(kernel_case *c, err *e) {
    uint32_t pos = c->shape.dim[0], heads = c->shape.dim[1], head_dim = c->shape.dim[2];
    slice qk, place;
    return case_input_f32(c, "qk", size_multiply(heads, head_dim), &qk, e) &&
           case_input_bytes(c, "pos", &pos, sizeof pos, &place, e) &&
           rope_apply_record(c->tape, c->kernel, qk, heads, head_dim, param_at(place), 10000, e);
}

static const shape shapes[] = {
    {{0, 1, 2}},    {{1, 1, 2}},      {{3, 1, 62}},     {{3, 1, 64}},        {{3, 1, 66}},
    {{7, 5, 6}},    {{2, 3, 170}},    {{2, 1, 512}},    {{2, 1, 514}},       {{0, 9, 64}},
    {{1, 9, 64}},   {{10, 9, 64}},    {{100, 9, 64}},   {{100, 3, 64}},      {{2047, 9, 64}},
    {{1, 32, 128}}, {{100, 32, 128}}, {{8191, 8, 128}}, {{1000, 1001, 128}},
};

static const kernel kernels[] = {
    {.name = "rope_apply",
     .about = "one thread per pair",
     .file = "rope_apply.metal",
     .group = 256},
};

const op rope_apply_op = {
    .name = "rope_apply",
    .about = "rotary embedding of neighbouring pairs, in place",
    .dims = "pos x heads x head_dim",
    .kernels = kernels,
    .kernel_count = COUNT_OF(kernels),
    .shapes = {shapes, COUNT_OF(shapes), {{5, 3, 22}}},
    .build = rope_apply_build,
};
