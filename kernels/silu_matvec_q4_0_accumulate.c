/* silu_matvec_q4_0_accumulate: launches, oracle and cases. */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

static void silu_matvec_q4_0_accumulate_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[3];
    uint32_t out_dim = oracle_u32(io, 4), in_dim = oracle_u32(io, 5);
    double *x = array_new(1, 2 * size_multiply(in_dim, sizeof *x)), *magnitude = x + in_dim;
    reference_ffn_silu(io->in[1], io->in[2], in_dim, x, magnitude);
    for (size_t i = 0; i < out_dim; i++)
        out->scale[i] = fabs(out->value[i]); /* the value starts as y before the launch */
    reference_matvec_fused(&format_q4_0, io->in[0], x, magnitude, out_dim, in_dim, 1, out->value,
                           out->scale);
    free(x);
    out->terms = in_dim + 1.0;
    out->roundings = 16; /* 12 of ffn_silu, 4 of a product */
}

/* Geometry: k->rows rows per threadgroup of k->group threads. */
bool silu_matvec_q4_0_accumulate_record(tape *t, const kernel *k, slice w, slice gate, slice up,
                                        slice y, uint32_t out_dim, uint32_t in_dim, err *e) {
    if (!RECORD_TAKES(&silu_matvec_op, k, e, out_dim, in_dim))
        return false;
    const launch_work work = {.groups = record_tiles(k, out_dim, 1),
                              .flops =
                                  2 * (uint64_t)out_dim * in_dim + out_dim + 4 * (uint64_t)in_dim,
                              .oracle = silu_matvec_q4_0_accumulate_oracle};
    return RECORD_ARGS(t, k, &work, e, ARG_WEIGHTS("w", w, &format_q4_0, out_dim, in_dim, 2),
                       ARG_IN4("gate", gate, in_dim), ARG_IN4("up", up, in_dim),
                       ARG_BOTH("y", y, out_dim), ARG_U32(out_dim), ARG_U32(in_dim));
}

static bool silu_matvec_q4_0_accumulate_build(kernel_case *c, err *e) {
    uint32_t out_dim = c->shape.dim[0], in_dim = c->shape.dim[1];
    slice w, gate, up, y;
    return case_input_weights(c, "w", &format_q4_0, out_dim, in_dim, &w, e) &&
           case_input_f32(c, "gate", in_dim, &gate, e) && case_input_f32(c, "up", in_dim, &up, e) &&
           case_input_f32(c, "y", out_dim, &y, e) &&
           silu_matvec_q4_0_accumulate_record(c->tape, c->kernel, w, gate, up, y, out_dim, in_dim,
                                              e);
}

/* Only the down projection of a model has this form. */
static const shape shapes[] = {
    {{1, 32}},    {{2, 64}},  {{7, 96}},    {{8, 992}},    {{9, 1024}},
    {{15, 1056}}, {{17, 32}}, {{1, 11008}}, {{576, 1536}},
};

static const kernel kernels[] = {
    OP_KERNEL("silu_matvec_q4_0_accumulate", NULL,
              "one simdgroup per row, each computes its activations",
              "silu_matvec_q4_0_accumulate.metal", .format = &format_q4_0, .accumulates = true,
              .group = 256, .rows = 8),
};

OP(silu_matvec, "y += W (silu(gate) * up)", "out x in", kernels, SHAPE_LIST(shapes, 7, 96),
   .inner = "in", .sizes = "out in", .build = silu_matvec_q4_0_accumulate_build);
