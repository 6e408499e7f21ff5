/* gate_up_silu: launches, oracle and cases. */
#include "kernels.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "harness/base/size.h"
#include "normed.h"
#include "record.h"
#include "reference/reference.h"

/* The errors of gate and up pass through silu(gate) * up: the slope of silu is at most 1.1. The rest
 * is that of ffn_silu, whose gate and up are here rounded to floats. */
static void expect_token(const weight_format *f, const oracle_io *io, const float *token,
                         uint32_t out_dim, uint32_t in_dim, double *value, double *scale) {
    double *x = normed_new(token, io->in[1], in_dim, oracle_f32(io, 7));
    double *gate = malloc(4 * size_multiply(out_dim, sizeof *gate)), *up = gate + out_dim,
           *gate_scale = up + out_dim, *up_scale = gate_scale + out_dim;
    assert(gate);
    normed_multiply(f, io->in[2], x, out_dim, in_dim, gate, gate_scale);
    normed_multiply(f, io->in[3], x, out_dim, in_dim, up, up_scale);
    for (size_t i = 0; i < out_dim; i++) {
        double silu = gate[i] / (1 + exp(-gate[i]));
        float g = (float)gate[i], u = (float)up[i];
        reference_ffn_silu(&g, &u, 1, &value[i], &scale[i]);
        value[i] = silu * up[i];
        scale[i] += 1.1 * gate_scale[i] * fabs(up[i]) + fabs(silu) * up_scale[i];
    }
    free(gate);
    free(x);
}

static void gate_up_silu_oracle(const launch *l, oracle_io *io) {
    expected *out = &io->out[4];
    uint32_t out_dim = oracle_u32(io, 5), in_dim = oracle_u32(io, 6);
    uint32_t tokens = io->in[8] ? oracle_u32(io, 8) : 1;
    for (size_t t = 0; t < tokens; t++)
        expect_token(l->kernel->format, io, (const float *)io->in[0] + t * in_dim, out_dim, in_dim,
                     out->value + t * out_dim, out->scale + t * out_dim);
    out->terms = NORMED_TERMS(in_dim);
    out->roundings = NORMED_ROUNDINGS + 12;
}

/* Kernels of one token have no such argument. */
bool gate_up_silu_record(tape *t, const kernel *k, const gate_up_slices *a, uint32_t out_dim,
                         uint32_t in_dim, uint32_t tokens, float eps, err *e) {
    if (!RECORD_TAKES(&gate_up_silu_op, k, e, out_dim, in_dim, tokens))
        return false;
    uint64_t outputs = (uint64_t)out_dim * tokens;
    const launch_arg args[] = {ARG_IN4("x", a->x, size_multiply(tokens, in_dim)),
                               ARG_IN4("norm_w", a->norm_w, in_dim),
                               ARG_WEIGHTS("w_gate", a->w_gate, k->format, out_dim, in_dim, 2),
                               ARG_WEIGHTS("w_up", a->w_up, k->format, out_dim, in_dim, 2),
                               ARG_OUT("out", a->out, size_multiply(tokens, out_dim)),
                               ARG_U32(out_dim),
                               ARG_U32(in_dim),
                               ARG_F32(eps),
                               ARG_U32(tokens)};
    const launch_work work = {.groups = record_tiles(k, out_dim, tokens),
                              .flops = 4 * outputs * in_dim + tokens * (4 * (uint64_t)in_dim + 3) +
                                       4 * outputs,
                              .oracle = gate_up_silu_oracle};
    return record_args(t, k, args, COUNT_OF(args) - (k->tokens == 0), &work, e);
}

/* With large weights of the norm, gate times up would not fit in a float, and fast math may compute it first. */
static bool make_norm_w(kernel_case *c, uint32_t count, slice *out, err *e) {
    distribution all = c->inputs;
    c->inputs = all == INPUT_NEGATIVE ? INPUT_NORMAL : all;
    bool ok = case_input_f32(c, "norm_w", count, out, e);
    c->inputs = all;
    return ok;
}

static bool gate_up_silu_build(kernel_case *c, err *e) {
    uint32_t out_dim = c->shape.dim[0], in_dim = c->shape.dim[1];
    uint32_t tokens = c->shape.dim[2] ? c->shape.dim[2] : 1;
    const weight_format *f = c->kernel->format;
    gate_up_slices a;
    return case_input_f32(c, "x", size_multiply(tokens, in_dim), &a.x, e) &&
           make_norm_w(c, in_dim, &a.norm_w, e) &&
           case_input_weights(c, "w_gate", f, out_dim, in_dim, &a.w_gate, e) &&
           case_input_weights(c, "w_up", f, out_dim, in_dim, &a.w_up, e) &&
           case_output(c, "out", size_multiply(tokens, out_dim) * sizeof(float), &a.out, e) &&
           gate_up_silu_record(c->tape, c->kernel, &a, out_dim, in_dim, tokens, 1e-5f, e);
}

/* Rows: around the 4 of a threadgroup. Blocks of a row: around the 16 that lanes take at a time. */
static const shape shapes[] = {
    {{1, 32}},   {{2, 64}},    {{3, 480}}, {{4, 512}},    {{5, 544}},
    {{9, 1024}}, {{15, 1056}}, {{3, 96}},  {{1536, 576}}, {{64, 4096}},
};
/* Outputs around the 8, 16 and 32, tokens around the 32 and 64 of a tile. */
static const shape tiled[] = {
    {{1, 32, 1}},    {{7, 64, 33}},   {{9, 96, 31}},   {{17, 128, 32}},
    {{33, 160, 63}}, {{32, 288, 65}}, {{31, 576, 64}}, {{65, 32, 130}},
};
static const shape_list tiled_list = SHAPE_LIST(tiled, 7, 96, 3);

static const kernel kernels[] = {
    NORMED_KERNEL("gate_up_silu", "one simdgroup per output, the norm in the same pass", 4),
    NORMED_TILED("gate_up_silu", 1),
};

OP(gate_up_silu, "silu(Wg rmsnorm(x)) * (Wu rmsnorm(x))", "out x in x tokens", kernels,
   SHAPE_LIST(shapes, 7, 96), .inner = "in", .many = "tokens", .sizes = "out in tokens",
   .build = gate_up_silu_build);
