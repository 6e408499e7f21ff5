/* token_shift: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

static void token_shift_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[3];
    reference_token_shift(io->in[0], io->in[1], io->in[2], oracle_u32(io, 4), oracle_u32(io, 5),
                          oracle_u32(io, 6), out->value, out->scale);
    out->roundings = 3;
}

bool token_shift_record(tape *t, const kernel *k, slice x, slice state, slice mu, slice out,
                        uint32_t tokens, uint32_t dim, uint32_t mixes, err *e) {
    size_t count = size_multiply(tokens, dim), all = size_multiply(mixes, count);
    if (all > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %u mixes of %u rows of %u overflow a 32-bit index",
                       k->name, mixes, tokens, dim);
    const launch_work w = {
        .threads = (uint32_t)count, .flops = 3 * (uint64_t)all, .oracle = token_shift_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN("x", x, count), ARG_IN("state", state, dim),
                       ARG_IN("mu", mu, size_multiply(mixes, dim)), ARG_OUT("out", out, all),
                       ARG_U32(tokens), ARG_U32(dim), ARG_U32(mixes));
}

static bool token_shift_build(kernel_case *c, err *e) {
    uint32_t tokens = c->shape.dim[0], dim = c->shape.dim[1], mixes = c->shape.dim[2];
    size_t count = size_multiply(tokens, dim);
    slice x, state, mu, out;
    return case_input_f32(c, "x", count, &x, e) && case_input_f32(c, "state", dim, &state, e) &&
           case_input_f32(c, "mu", size_multiply(mixes, dim), &mu, e) &&
           case_output(c, "out", size_multiply(mixes, count) * sizeof(float), &out, e) &&
           token_shift_record(c->tape, c->kernel, x, state, mu, out, tokens, dim, mixes, e);
}

/* One mix as a channel mix has, six as a time mix has; 1 token and odd numbers of them. */
static const shape shapes[] = {
    {{1, 1, 1}},   {{1, 31, 1}},  {{2, 33, 1}},  {{1, 768, 1}},  {{1, 768, 6}},
    {{3, 768, 6}}, {{7, 257, 6}}, {{5, 256, 2}}, {{64, 128, 6}}, {{33, 2048, 1}},
};

static const kernel kernels[] = {
    OP_KERNEL("token_shift", NULL, "one thread per value, for all mixes", "token_shift.metal",
              .group = 256),
};

OP(token_shift, "x + (previous - x) * mu, for several mu", "tokens x dim x mixes", kernels,
   SHAPE_LIST(shapes, 3, 13, 6), .sizes = "tokens dim", .build = token_shift_build);
