/* rope_apply_dual: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"
#include "rope.h"

static void rope_apply_dual_oracle(const launch *l, oracle_io *io) {
    double theta = (double)oracle_f32(io, 6);
    for (int i = 0; i < 2; i++) { /* q and nq, then k and nk */
        expected *out = &io->out[i];
        reference_rope(io->in[i], oracle_u32(io, 2 + i), oracle_u32(io, 4), oracle_u32(io, 5),
                       theta, out->value, out->scale);
        rope_judge(l, io->in[i], out->count, theta, out);
    }
}

bool rope_apply_dual_record(tape *t, const kernel *k, slice q_heads, slice k_heads, uint32_t nq,
                            uint32_t nk, uint32_t head_dim, param pos, float theta, err *e) {
    size_t q_count = size_multiply(nq, head_dim), k_count = size_multiply(nk, head_dim),
           count = q_count + k_count;
    if (!RECORD_TAKES(&rope_apply_dual_op, k, e, 0, nq, nk, head_dim))
        return false;
    if (count > UINT32_MAX / sizeof(float))
        return err_set(e, EXIT_CANNOT, "%s: %u + %u heads of %u overflow a 32-bit index", k->name,
                       nq, nk, head_dim);
    const launch_work w = {.threads = (uint32_t)count / 2,
                           .flops = 3 * (uint64_t)count, /* the angle is not counted */
                           .oracle = rope_apply_dual_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_BOTH("q", q_heads, q_count),
                       ARG_BOTH("k", k_heads, k_count), ARG_U32(nq), ARG_U32(nk), ARG_U32(head_dim),
                       ARG_PARAM(pos), ARG_F32(theta));
}

/* The position comes from device memory, as it does in a model. */
static bool rope_apply_dual_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    uint32_t pos = dim[0], nq = dim[1], nk = dim[2], head_dim = dim[3];
    slice q_heads, k_heads, place;
    return case_input_f32(c, "q", size_multiply(nq, head_dim), &q_heads, e) &&
           case_input_f32(c, "k", size_multiply(nk, head_dim), &k_heads, e) &&
           case_input_bytes(c, "pos", &pos, sizeof pos, &place, e) &&
           rope_apply_dual_record(c->tape, c->kernel, q_heads, k_heads, nq, nk, head_dim,
                                  param_at(place), 10000, e);
}

static const shape shapes[] = {
    {{0, 1, 1, 2}},     {{7, 5, 3, 6}},      {{2, 3, 1, 130}},       {{0, 9, 3, 64}},
    {{2047, 9, 3, 64}}, {{100, 32, 8, 128}}, {{1000, 501, 77, 128}},
};

static const kernel kernels[] = {
    OP_KERNEL("rope_apply_dual", NULL, "one thread per pair of q or of k", "rope_apply_dual.metal",
              .group = 256, .multiple_of = 2),
};

OP(rope_apply_dual, "rotary embedding of q and k in one launch", "pos x nq x nk x head_dim",
   kernels, SHAPE_LIST(shapes, 5, 3, 2, 22), .inner = "head_dim", .sizes = "nq nk head_dim",
   .places = "pos", .build = rope_apply_dual_build);
