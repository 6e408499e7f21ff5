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
    size_t count = size_multiply(tokens, dim);
    const operand operands[] = {{"x", x, count, ACCESS_READ},
                                {"state", state, dim, ACCESS_READ},
                                {"mu", mu, size_multiply(mixes, dim), ACCESS_READ},
                                {"out", out, size_multiply(mixes, count), ACCESS_WRITE}};
    if (size_multiply(mixes, count) > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %u mixes of %u rows of %u overflow a 32-bit index",
                       k->name, mixes, tokens, dim);
    launch *l = record_floats(t, k, sizeof(float), operands, COUNT_OF(operands), e);
    if (!l)
        return false;
    launch_set_u32(l, 4, tokens);
    launch_set_u32(l, 5, dim);
    launch_set_u32(l, 6, mixes);
    launch_set_threads_rounded(l, (uint32_t)count, k->group);
    l->flops = 3 * (uint64_t)mixes * count;
    l->oracle = token_shift_oracle;
    return true;
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
    {.name = "token_shift",
     .about = "one thread per value, for all mixes",
     .file = "token_shift.metal",
     .group = 256},
};

const op token_shift_op = {
    .name = "token_shift",
    .about = "x + (previous - x) * mu, for several mu",
    .dims = "tokens x dim x mixes",
    .kernels = kernels,
    .kernel_count = COUNT_OF(kernels),
    .shapes = {shapes, COUNT_OF(shapes), {{3, 13, 6}}},
    .build = token_shift_build,
};
