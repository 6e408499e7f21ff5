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
    if (all > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %u mixes of %u overflow a 32-bit index", k->name, mixes,
                       dim);
    uint32_t wanted = divide_up(dim, k->group); /* one value per thread, as far as threads go */
    const launch_work work = {.groups = {1, 1, 1},
                              .group = k->group == 1 ? 1 : k->group * (wanted < 4 ? wanted : 4),
                              .flops = 8 * (uint64_t)dim + 2 * (uint64_t)all + 4,
                              .oracle = layer_norm_shift_oracle};
    return RECORD_ARGS(t, k, &work, e, ARG_IN("x", x, dim), ARG_IN("w", w, dim),
                       ARG_IN("b", b, dim), ARG_IN("mu", mu, all), ARG_BOTH("state", state, dim),
                       ARG_OUT("out", out, all), ARG_U32(dim), ARG_U32(mixes), ARG_F32(eps));
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
    OP_KERNEL("layer_norm_shift", "threadgroup", "one threadgroup", "layer_norm_shift.metal",
              .group = 256),
    OP_KERNEL("layer_norm_shift_alone", "alone", "one thread", "layer_norm_shift.metal",
              .group = 1),
};

OP(layer_norm_shift, "a layer norm of one token, its token shifts, and the state they leave",
   "dim x mixes", kernels, SHAPE_LIST(shapes, 13, 6), .sizes = "dim",
   .build = layer_norm_shift_build);
