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

/* Geometry: k->rows rows and k->tokens tokens per threadgroup of k->group threads; kernels of one
 * token have no such argument. */
bool gate_up_silu_record(tape *t, const kernel *k, const gate_up_slices *a, uint32_t out_dim,
                         uint32_t in_dim, uint32_t tokens, float eps, err *e) {
    slice x = a->x, norm_w = a->norm_w, out = a->out;
    size_t norm_bytes = size_multiply(in_dim, sizeof(float)),
           in_bytes = size_multiply(tokens, norm_bytes),
           out_bytes = size_multiply(size_multiply(tokens, out_dim), sizeof(float));
    if (!RECORD_TAKES(&gate_up_silu_op, k, e, out_dim, in_dim, tokens) ||
        !record_check_weights(k, "w_gate", k->format, a->w_gate, out_dim, in_dim, 2, e) ||
        !record_check_weights(k, "w_up", k->format, a->w_up, out_dim, in_dim, 2, e) ||
        !record_trim(k, "x", in_bytes, 16, &x, e) ||
        !record_trim(k, "norm_w", norm_bytes, 16, &norm_w, e) ||
        !record_trim(k, "out", out_bytes, sizeof(float), &out, e))
        return false;
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    launch_bind(l, 0, x, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, norm_w, ACCESS_READ, ELEM_F32);
    launch_bind(l, 2, a->w_gate, ACCESS_READ, ELEM_U8);
    launch_bind(l, 3, a->w_up, ACCESS_READ, ELEM_U8);
    launch_bind(l, 4, out, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 5, out_dim);
    launch_set_u32(l, 6, in_dim);
    launch_set_f32(l, 7, eps);
    if (k->tokens != 0)
        launch_set_u32(l, 8, tokens);
    uint32_t tiles = k->tokens == 0 ? 1 : divide_up(tokens, k->tokens);
    launch_set_groups(l, (size3){divide_up(out_dim, k->rows), tiles, 1}, (size3){k->group, 1, 1});
    uint64_t outputs = (uint64_t)out_dim * tokens;
    l->bytes = a->w_gate.bytes + a->w_up.bytes + in_bytes + norm_bytes + out_bytes;
    l->flops = 4 * outputs * in_dim + tokens * (4 * (uint64_t)in_dim + 3) + 4 * outputs;
    l->oracle = gate_up_silu_oracle;
    return true;
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
