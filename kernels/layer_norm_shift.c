/* layer_norm_shift: launches, oracle and cases. */
#include "kernels.h"

#include <math.h>

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

/* The normalised row is the new state. Its error reaches each mix with the share 1 - mu. */
static void layer_norm_shift_oracle(const launch *l, oracle_io *io) {
    (void)l;
    const float *mu = io->in[3], *before = io->in[4];
    expected *state = &io->out[4], *out = &io->out[5];
    size_t dim = oracle_u32(io, 6), mixes = oracle_u32(io, 7);
    reference_group_norm(io->in[0], io->in[1], io->in[2], 1, 1, dim, (double)oracle_f32(io, 8),
                         state->value, state->scale);
    for (size_t i = 0; i < mixes * dim; i++) {
        double n = state->value[i % dim], size = state->scale[i % dim], share = (double)mu[i];
        double previous = (double)before[i % dim];
        out->value[i] = n + (previous - n) * share;
        out->scale[i] = size * (1 + fabs(share)) + fabs(previous * share);
    }
    state->terms = out->terms = (double)dim;
    state->roundings = 18; /* as layer_norm */
    out->roundings = 21;   /* and a difference, a product and a sum */
}

bool layer_norm_shift_record(tape *t, const kernel *k, slice x, slice w, slice b, slice mu,
                             slice state, slice out, uint32_t dim, uint32_t mixes, float eps,
                             err *e) {
    size_t all = size_multiply(mixes, dim);
    const operand operands[] = {
        {"x", x, dim, ACCESS_READ},         {"w", w, dim, ACCESS_READ},
        {"b", b, dim, ACCESS_READ},         {"mu", mu, all, ACCESS_READ},
        {"state", state, dim, ACCESS_BOTH}, {"out", out, all, ACCESS_WRITE}};
    if (all > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %u mixes of %u overflow a 32-bit index", k->name, mixes,
                       dim);
    launch *l = record_floats(t, k, sizeof(float), operands, COUNT_OF(operands), e);
    if (!l)
        return false;
    launch_set_u32(l, 6, dim);
    launch_set_u32(l, 7, mixes);
    launch_set_f32(l, 8, eps);
    uint32_t wanted = divide_up(dim, k->group); /* one value per thread, as far as threads go */
    uint32_t group = k->group == 1 ? 1 : k->group * (wanted < 4 ? wanted : 4);
    launch_set_groups(l, (size3){1, 1, 1}, (size3){group, 1, 1});
    l->flops = 8 * (uint64_t)dim + 2 * (uint64_t)all + 4;
    l->oracle = layer_norm_shift_oracle;
    return true;
}

static bool layer_norm_shift_build(kernel_case *c, err *e) {
    uint32_t dim = c->shape.dim[0], mixes = c->shape.dim[1];
    size_t all = size_multiply(mixes, dim);
    slice x, w, b, mu, state, out;
    return case_input_f32(c, "x", dim, &x, e) && case_input_f32(c, "w", dim, &w, e) &&
           case_input_f32(c, "b", dim, &b, e) && case_input_f32(c, "mu", all, &mu, e) &&
           case_input_f32(c, "state", (size_t)dim + 1, &state, e) &&
           case_output(c, "out", all * sizeof(float), &out, e) &&
           layer_norm_shift_record(c->tape, c->kernel, x, w, b, mu, state, out, dim, mixes, 1e-5f,
                                   e);
}

static const shape shapes[] = {
    {{1, 1}},   {{4, 6}},   {{31, 1}},  {{33, 6}},   {{255, 1}},  {{256, 6}},
    {{257, 2}}, {{768, 6}}, {{768, 1}}, {{2048, 1}}, {{2049, 6}}, {{4096, 6}},
};

static const kernel kernels[] = {
    {.name = "layer_norm_shift",
     .variant = "threadgroup",
     .about = "one threadgroup",
     .file = "layer_norm_shift.metal",
     .group = 256},
    {.name = "layer_norm_shift_alone",
     .variant = "alone",
     .about = "one thread",
     .file = "layer_norm_shift.metal",
     .group = 1},
};

const op layer_norm_shift_op = {
    .name = "layer_norm_shift",
    .about = "a layer norm of one token, its token shifts, and the state they leave",
    .dims = "dim x mixes",
    .kernels = kernels,
    .kernel_count = COUNT_OF(kernels),
    .shapes = {shapes, COUNT_OF(shapes), {{13, 6}}},
    .build = layer_norm_shift_build,
};
