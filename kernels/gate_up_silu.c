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
static void gate_up_silu_oracle(const launch *l, oracle_io *io) {
    const weight_format *f = l->kernel->format;
    expected *out = &io->out[4];
    uint32_t out_dim = oracle_u32(io, 5), in_dim = oracle_u32(io, 6);
    double *x = normed_new(io->in[0], io->in[1], in_dim, oracle_f32(io, 7));
    double *gate = malloc(4 * size_multiply(out_dim, sizeof *gate)), *up = gate + out_dim,
           *gate_scale = up + out_dim, *up_scale = gate_scale + out_dim;
    assert(gate);
    normed_multiply(f, io->in[2], x, out_dim, in_dim, gate, gate_scale);
    normed_multiply(f, io->in[3], x, out_dim, in_dim, up, up_scale);
    for (size_t i = 0; i < out_dim; i++) {
        double silu = gate[i] / (1 + exp(-gate[i]));
        float g = (float)gate[i], u = (float)up[i];
        reference_ffn_silu(&g, &u, 1, &out->value[i], &out->scale[i]);
        out->value[i] = silu * up[i];
        out->scale[i] += 1.1 * gate_scale[i] * fabs(up[i]) + fabs(silu) * up_scale[i];
    }
    free(gate);
    free(x);
    out->terms = NORMED_TERMS(in_dim);
    out->roundings = NORMED_ROUNDINGS + 12;
}

/* Geometry: k->rows rows per threadgroup of k->group threads. */
bool gate_up_silu_record(tape *t, const kernel *k, slice x, slice norm_w, slice w_gate, slice w_up,
                         slice out, uint32_t out_dim, uint32_t in_dim, float eps, err *e) {
    size_t in_bytes = size_multiply(in_dim, sizeof(float)),
           out_bytes = size_multiply(out_dim, sizeof(float));
    if (!record_check_weights(k, "w_gate", k->format, w_gate, out_dim, in_dim, 2, e) ||
        !record_check_weights(k, "w_up", k->format, w_up, out_dim, in_dim, 2, e) ||
        !record_trim(k, "x", in_bytes, 16, &x, e) ||
        !record_trim(k, "norm_w", in_bytes, 16, &norm_w, e) ||
        !record_trim(k, "out", out_bytes, sizeof(float), &out, e))
        return false;
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    launch_bind(l, 0, x, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, norm_w, ACCESS_READ, ELEM_F32);
    launch_bind(l, 2, w_gate, ACCESS_READ, ELEM_U8);
    launch_bind(l, 3, w_up, ACCESS_READ, ELEM_U8);
    launch_bind(l, 4, out, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 5, out_dim);
    launch_set_u32(l, 6, in_dim);
    launch_set_f32(l, 7, eps);
    launch_set_groups(l, (size3){divide_up(out_dim, k->rows), 1, 1}, (size3){k->group, 1, 1});
    l->bytes = w_gate.bytes + w_up.bytes + 2 * in_bytes + out_bytes;
    l->flops = 4 * (uint64_t)out_dim * in_dim + 4 * (uint64_t)in_dim + 4 * (uint64_t)out_dim + 3;
    l->oracle = gate_up_silu_oracle;
    return true;
}

static bool gate_up_silu_build(kernel_case *c, err *e) {
    uint32_t out_dim = c->shape.dim[0], in_dim = c->shape.dim[1];
    slice x, norm_w, w_gate, w_up, out;
    return case_input_f32(c, "x", in_dim, &x, e) &&
           case_input_f32(c, "norm_w", in_dim, &norm_w, e) &&
           case_input_weights(c, "w_gate", c->kernel->format, out_dim, in_dim, &w_gate, e) &&
           case_input_weights(c, "w_up", c->kernel->format, out_dim, in_dim, &w_up, e) &&
           case_output(c, "out", out_dim * sizeof(float), &out, e) &&
           gate_up_silu_record(c->tape, c->kernel, x, norm_w, w_gate, w_up, out, out_dim, in_dim,
                               1e-5f, e);
}

/* Rows: around the 4 of a threadgroup. Blocks of a row: around the 16 that lanes take at a time. */
static const shape shapes[] = {
    {{1, 32}},   {{2, 64}},    {{3, 480}}, {{4, 512}},    {{5, 544}},
    {{9, 1024}}, {{15, 1056}}, {{3, 96}},  {{1536, 576}}, {{64, 4096}},
};

static const kernel kernels[] = {
    {.name = "gate_up_silu_q4_0",
     .about = "one simdgroup per output, the norm in the same pass",
     .file = "gate_up_silu.metal",
     .format = &format_q4_0,
     .group = 128,
     .rows = 4},
};

const op gate_up_silu_op = {
    .name = "gate_up_silu",
    .about = "silu(Wg rmsnorm(x)) * (Wu rmsnorm(x))",
    .dims = "out x in",
    .kernels = kernels,
    .kernel_count = COUNT_OF(kernels),
    .shapes = {shapes, COUNT_OF(shapes), {{7, 96}}},
    .build = gate_up_silu_build,
};
