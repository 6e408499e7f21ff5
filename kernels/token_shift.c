/* token_shift: launches, oracles and cases of token_shift, and of layer_norm_shift, which has a layer norm
 * before it. */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
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

/* layer_norm_shift ----------------------------------------------------------------------------- */

/* The last normalised row is the new state. The errors of a row reach each mix with the share 1 - mu, and
 * with mu those of the next token. */
static void layer_norm_shift_oracle(const launch *l, oracle_io *io) {
    (void)l;
    const float *mu = io->in[3], *before = io->in[4];
    expected *state = &io->out[4], *out = &io->out[5];
    size_t dim = oracle_u32(io, 6), mixes = oracle_u32(io, 7), count = out->count / mixes;
    double *n = array_new(2 * count, sizeof *n), *size = n + count;
    reference_group_norm(io->in[0], io->in[1], io->in[2], count / dim, 1, dim,
                         (double)oracle_f32(io, 8), n, size);
    for (size_t j = 0; j < out->count; j++) {
        size_t i = j % count;
        double share = (double)mu[j / count * dim + i % dim];
        double previous = i < dim ? (double)before[i] : n[i - dim];
        double previous_size = i < dim ? fabs(previous) : size[i - dim];
        out->value[j] = n[i] + (previous - n[i]) * share;
        out->scale[j] = size[i] * (1 + fabs(share)) + previous_size * fabs(share);
    }
    for (size_t i = 0; i < dim; i++) {
        state->value[i] = n[count - dim + i];
        state->scale[i] = size[count - dim + i];
    }
    free(n);
    state->terms = out->terms = (double)dim;
    state->roundings = 18; /* as layer_norm */
    out->roundings = 21;   /* and a difference, a product and a sum */
}

bool layer_norm_shift_record(tape *t, const kernel *k, slice x, slice w, slice b, slice mu,
                             slice state, slice out, uint32_t dim, uint32_t mixes, uint32_t tokens,
                             float eps, err *e) {
    if (!RECORD_TAKES(&layer_norm_shift_op, k, e, dim, mixes, tokens))
        return false;
    size_t all = size_multiply(mixes, dim), count = size_multiply(tokens, dim);
    uint32_t wanted = divide_up(dim, k->group); /* one value per thread, as far as threads go */
    const launch_work work = {.groups = {k->rows ? divide_up(dim, k->rows) : tokens, 1, 1},
                              .group = k->group == 1 || k->tokens || k->rows
                                           ? k->group
                                           : k->group * (wanted < 4 ? wanted : 4),
                              .flops = tokens * (8 * (uint64_t)dim + 2 * (uint64_t)all + 4),
                              .oracle = layer_norm_shift_oracle};
    return RECORD_ARGS(t, k, &work, e, ARG_IN("x", x, count), ARG_IN("w", w, dim),
                       ARG_IN("b", b, dim), ARG_IN("mu", mu, all), ARG_BOTH("state", state, dim),
                       ARG_OUT("out", out, size_multiply(tokens, all)), ARG_U32(dim),
                       ARG_U32(mixes), ARG_F32(eps));
}

static bool layer_norm_shift_accepts(const kernel *k, const shape *s, err *e) {
    if (k->most && s->dim[0] > k->most)
        return err_set(e, EXIT_CANNOT, "takes rows of up to %u, not %u", k->most, s->dim[0]);
    return s->dim[0] == 0 || s->dim[1] <= UINT32_MAX / s->dim[0] ||
           err_set(e, EXIT_CANNOT, "has 32-bit indices: %u mixes of %u overflow them", s->dim[1],
                   s->dim[0]);
}

static bool layer_norm_shift_build(kernel_case *c, err *e) {
    uint32_t dim = c->shape.dim[0], mixes = c->shape.dim[1],
             tokens = c->shape.dim[2] ? c->shape.dim[2] : 1;
    size_t all = size_multiply(mixes, dim);
    slice x, w, b, mu, state, out;
    return case_input_f32(c, "x", size_multiply(tokens, dim), &x, e) &&
           case_input_f32(c, "w", dim, &w, e) && case_input_f32(c, "b", dim, &b, e) &&
           case_input_f32(c, "mu", all, &mu, e) &&
           case_input_f32(c, "state", (size_t)dim + 1, &state, e) &&
           case_output(c, "out", size_multiply(tokens, all) * sizeof(float), &out, e) &&
           layer_norm_shift_record(c->tape, c->kernel, x, w, b, mu, state, out, dim, mixes, tokens,
                                   1e-5f, e);
}

static const shape norm_shapes[] = {
    {{1, 1}},   {{4, 6}},   {{31, 1}},  {{33, 6}},   {{96, 9}},   {{255, 1}},  {{256, 6}},
    {{257, 2}}, {{768, 6}}, {{768, 1}}, {{2048, 1}}, {{2049, 6}}, {{4096, 6}},
};
SHAPES_OF(token_list, ANY_INPUT(13, 6, 3), {{1, 1, 1}}, {{4, 6, 2}}, {{33, 1, 3}}, {{96, 9, 3}},
          {{511, 6, 4}}, {{512, 2, 9}}, {{513, 1, 5}}, {{4096, 1, 2}}, {{768, 6, 8}}, {{768, 1, 8}},
          {{2049, 3, 2}});

static const kernel norm_kernels[] = {
    OP_KERNEL("layer_norm_shift", "threadgroup", "one threadgroup", "layer_norm_shift.metal",
              .group = 256),
    OP_KERNEL("layer_norm_shift_per_thread", "per_thread", "one thread", "layer_norm_shift.metal",
              .group = 1),
    OP_KERNEL("layer_norm_shift_prefetch", "prefetch",
              "a threadgroup per 512 values, weights loaded ahead", "layer_norm_shift.metal",
              .group = 512, .rows = 512, .most = 4096),
    OP_KERNEL("layer_norm_shift_tokens", "tokens", "one threadgroup per token",
              "layer_norm_shift.metal", .group = 512, .tokens = 1, .most = 4096,
              .shapes = &token_list),
};

OP(layer_norm_shift, "a layer norm, its token shifts, and the state they leave",
   "dim x mixes x tokens", norm_kernels, SHAPE_LIST(norm_shapes, 13, 6), .many = "tokens",
   .sizes = "dim tokens", .accepts = layer_norm_shift_accepts, .build = layer_norm_shift_build);
