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
    size_t count = size_multiply(heads, head_dim);
    if (!RECORD_TAKES(&rope_apply_op, k, e, 0, heads, head_dim))
        return false;
    if (count > UINT32_MAX / sizeof(float))
        return err_set(e, EXIT_CANNOT, "%s: %u heads of %u overflow a 32-bit index", k->name, heads,
                       head_dim);
    const launch_work w = {.threads = (uint32_t)count / 2,
                           .flops = 3 * (uint64_t)count, /* the angle is not counted */
                           .oracle = rope_apply_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_BOTH("qk", qk, count), ARG_U32(heads), ARG_U32(head_dim),
                       ARG_PARAM(pos), ARG_F32(theta));
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
    {{0, 1, 2}},     {{1, 1, 2}},      {{7, 5, 6}},      {{2, 3, 170}},       {{0, 9, 64}},
    {{2047, 9, 64}}, {{100, 32, 128}}, {{8191, 8, 128}}, {{1000, 1001, 128}},
};

static const kernel kernels[] = {
    OP_KERNEL("rope_apply", NULL, "one thread per pair", "rope_apply.metal", .group = 256,
              .multiple_of = 2),
};

OP(rope_apply, "rotary embedding of neighbouring pairs, in place", "pos x heads x head_dim",
   kernels, SHAPE_LIST(shapes, 5, 3, 22), .inner = "head_dim", .sizes = "heads head_dim",
   .places = "pos", .build = rope_apply_build);
