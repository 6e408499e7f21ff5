/* rope: launches, oracles and cases of the rotary embedding of one buffer (rope_apply), of q and k
 * (rope_apply_dual), and of those of many tokens, with angles from a table of frequencies
 * (rope_apply_table). The last two differ only in arguments 6 and 7. */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "harness/check/accuracy.h"
#include "record.h"
#include "reference/reference.h"

/* Fills in the tolerance of `out`, whose values and scales, those of the pairs of x, are
 * already set: frequencies are powers of theta, or come from a table (theta is 0).
 *
 Precise sin and cos may be off by 4 ULP and pow by 16: twice that in roundings. The angle's own
 * error is in the scale, which reference_rope multiplies by it.
 *
 * Under fast math the error of pow grows with its exponent, that of a fast division of the exponent
 * by head_dim is multiplied by ln(theta), and sin and cos are off by 2^-13 of the values they are
 * multiplied with, whatever the angle: where a fast sin is off by more, far from 0, a kernel has to
 * use the precise one. */
static void judge(const launch *l, const float *x, double theta, expected *out) {
    bool has_pow = theta > 0;
    out->terms = 2;
    out->roundings = has_pow ? 40 : 10;
    if (l->pipeline->math == MATH_SAFE)
        return;
    if (has_pow)
        out->roundings = 8 + fast_pow(log2(theta)) + FAST_DIVIDE * fabs(log(theta));
    double operations = out->roundings + 2 * sqrt(out->terms);
    for (size_t i = 0; i < out->count; i++) {
        double pair = fabs((double)x[i]) + fabs((double)x[i ^ 1]);
        out->scale[i] += pair * FAST_SINE / operations;
    }
}

/* rope_apply ----------------------------------------------------------------------------------- */

static void rope_apply_oracle(const launch *l, oracle_io *io) {
    expected *out = &io->out[0];
    double theta = (double)oracle_f32(io, 4);
    reference_rope(io->in[0], oracle_u32(io, 1), oracle_u32(io, 2), oracle_u32(io, 3), theta,
                   out->value, out->scale);
    judge(l, io->in[0], theta, out);
}

bool rope_apply_record(tape *t, const kernel *k, slice qk, uint32_t heads, uint32_t head_dim,
                       param pos, float theta, err *e) {
    size_t count = size_multiply(heads, head_dim);
    if (!RECORD_TAKES(&rope_apply_op, k, e, 0, heads, head_dim))
        return false;
    if (count > UINT32_MAX / sizeof(float))
        return err_set(e, EXIT_CANNOT, "%s: %u heads of %u overflow a 32-bit index", k->name, heads,
                       head_dim);
    const launch_work w = {.threads = (uint32_t)count / 2,
                           .flops = 3 * (uint64_t)count, /* the angle is not counted */
                           .oracle = rope_apply_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_BOTH("qk", qk, count), ARG_U32(heads), ARG_U32(head_dim),
                       ARG_PARAM(pos), ARG_F32(theta));
}

/* The position comes from device memory, as it does in a model. */
static bool rope_apply_build(kernel_case *c, err *e) {
    uint32_t pos = c->shape.dim[0], heads = c->shape.dim[1], head_dim = c->shape.dim[2];
    slice qk, place;
    return case_input_f32(c, "qk", size_multiply(heads, head_dim), &qk, e) &&
           case_input_bytes(c, "pos", &pos, sizeof pos, &place, e) &&
           rope_apply_record(c->tape, c->kernel, qk, heads, head_dim, param_at(place), 10000, e);
}

static const shape apply_shapes[] = {
    {{0, 1, 2}},     {{1, 1, 2}},      {{7, 5, 6}},      {{2, 3, 170}},       {{0, 9, 64}},
    {{2047, 9, 64}}, {{100, 32, 128}}, {{8191, 8, 128}}, {{1000, 1001, 128}},
};

static const kernel apply_kernels[] = {
    OP_KERNEL("rope_apply", NULL, "one thread per pair", "rope_apply.metal", .group = 256,
              .multiple_of = 2),
};

OP(rope_apply, "rotary embedding of neighbouring pairs, in place", "pos x heads x head_dim",
   apply_kernels, SHAPE_LIST(apply_shapes, 5, 3, 22), .inner = "head_dim",
   .sizes = "heads head_dim", .places = "pos", .build = rope_apply_build);

/* Of q and k ----------------------------------------------------------------------------------- */

static void rope_apply_dual_oracle(const launch *l, oracle_io *io) {
    double theta = (double)oracle_f32(io, 6);
    for (int i = 0; i < 2; i++) { /* q and nq, then k and nk */
        expected *out = &io->out[i];
        reference_rope(io->in[i], oracle_u32(io, 2 + i), oracle_u32(io, 4), oracle_u32(io, 5),
                       theta, out->value, out->scale);
        judge(l, io->in[i], theta, out);
    }
}

static void rope_apply_table_oracle(const launch *l, oracle_io *io) {
    uint32_t head_dim = oracle_u32(io, 4), pos = oracle_u32(io, 5), n_tokens = oracle_u32(io, 7);
    for (int i = 0; i < 2; i++) {
        expected *out = &io->out[i];
        const float *in = io->in[i];
        uint32_t heads = oracle_u32(io, 2 + i);
        for (uint32_t t = 0; t < n_tokens; t++) {
            size_t at = (size_t)t * heads * head_dim;
            reference_rope_table(in + at, heads, head_dim, pos + t, io->in[6], out->value + at,
                                 out->scale + at);
        }
        judge(l, in, 0, out);
    }
}

/* `turn` is argument 6; a kernel for one token has none after it. */
static bool record(tape *t, const kernel *k, slice q_heads, slice k_heads, uint32_t n_tokens,
                   uint32_t nq, uint32_t nk, uint32_t head_dim, param pos, const launch_arg *turn,
                   oracle_fn oracle, err *e) {
    size_t row = size_multiply(n_tokens, head_dim), q_count = size_multiply(nq, row),
           k_count = size_multiply(nk, row), count = q_count + k_count;
    if (count > UINT32_MAX / sizeof(float))
        return err_set(e, EXIT_CANNOT,
                       "%s: %u tokens of %u + %u heads of %u overflow a 32-bit index", k->name,
                       n_tokens, nq, nk, head_dim);
    bool takes_heads = k->rows != 0; /* all heads of a token at once */
    const launch_work w = {.threads = (uint32_t)(takes_heads ? row : count) / 2,
                           .flops = 3 * (uint64_t)count, /* the angle is not counted */
                           .oracle = oracle};
    const launch_arg args[] = {ARG_BOTH("q", q_heads, q_count),
                               ARG_BOTH("k", k_heads, k_count),
                               ARG_U32(nq),
                               ARG_U32(nk),
                               ARG_U32(head_dim),
                               ARG_PARAM(pos),
                               *turn,
                               ARG_U32(n_tokens)};
    bool has_tokens = k != rope_apply_dual_op.kernels;
    return record_args(t, k, args, COUNT_OF(args) - !has_tokens, &w, e);
}

bool rope_apply_dual_record(tape *t, const kernel *k, slice q_heads, slice k_heads, uint32_t nq,
                            uint32_t nk, uint32_t head_dim, param pos, float theta, err *e) {
    const launch_arg turn = ARG_F32(theta);
    return RECORD_TAKES(&rope_apply_dual_op, k, e, 0, nq, nk, head_dim) &&
           record(t, k, q_heads, k_heads, 1, nq, nk, head_dim, pos, &turn, rope_apply_dual_oracle,
                  e);
}

bool rope_apply_table_record(tape *t, const kernel *k, slice q_heads, slice k_heads,
                             uint32_t n_tokens, uint32_t nq, uint32_t nk, uint32_t head_dim,
                             param pos, slice freqs, err *e) {
    const launch_arg turn = ARG_IN("freqs", freqs, head_dim / 2);
    return RECORD_TAKES(&rope_apply_table_op, k, e, 0, n_tokens, nq, nk, head_dim) &&
           record(t, k, q_heads, k_heads, n_tokens, nq, nk, head_dim, pos, &turn,
                  rope_apply_table_oracle, e);
}

/* The position comes from device memory, as it does in a model. The last pairs of q and k are
 * followed by one that must not change: rotating the NaN of a guard zone would go unseen. */
static bool make_inputs(kernel_case *c, uint32_t n_tokens, const uint32_t heads[2],
                        uint32_t head_dim, slice *q_heads, slice *k_heads, slice *place, err *e) {
    uint32_t pos = c->shape.dim[0];
    size_t row = size_multiply(n_tokens, head_dim);
    return case_input_f32(c, "q", size_multiply(heads[0], row) + 2, q_heads, e) &&
           case_input_f32(c, "k", size_multiply(heads[1], row) + 2, k_heads, e) &&
           case_input_bytes(c, "pos", &pos, sizeof pos, place, e);
}

static bool rope_apply_dual_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    slice q_heads, k_heads, place;
    return make_inputs(c, 1, dim + 1, dim[3], &q_heads, &k_heads, &place, e) &&
           rope_apply_dual_record(c->tape, c->kernel, q_heads, k_heads, dim[1], dim[2], dim[3],
                                  param_at(place), 10000, e);
}

/* The frequencies are arbitrary numbers from 0 to 1, in no order. */
static bool rope_apply_table_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    float *table = array_new(dim[4] / 2, sizeof *table);
    for (uint32_t p = 0; p < dim[4] / 2; p++)
        table[p] = (float)rng_uniform(&c->random);
    slice q_heads, k_heads, place, freqs;
    bool ok = make_inputs(c, dim[1], dim + 2, dim[4], &q_heads, &k_heads, &place, e) &&
              case_input_bytes(c, "freqs", table, dim[4] / 2 * sizeof *table, &freqs, e) &&
              rope_apply_table_record(c->tape, c->kernel, q_heads, k_heads, dim[1], dim[2], dim[3],
                                      dim[4], param_at(place), freqs, e);
    free(table);
    return ok;
}

static const shape dual_shapes[] = {
    {{0, 1, 1, 2}},     {{7, 5, 3, 6}},      {{2, 3, 1, 130}},       {{0, 9, 3, 64}},
    {{2047, 9, 3, 64}}, {{100, 32, 8, 128}}, {{1000, 501, 77, 128}},
};

/* One pair and many; tokens with more and with fewer pairs than a threadgroup has threads, and with
 * exactly as many; the model's heads at position 0 and far from it. */
static const shape shapes[] = {
    {{0, 1, 1, 1, 2}},      {{7, 33, 5, 3, 6}},   {{0, 2, 9, 3, 64}},     {{1, 7, 9, 3, 64}},
    {{2000, 48, 9, 3, 64}}, {{5, 3, 32, 8, 128}}, {{4000, 9, 2, 1, 256}},
};

static const kernel dual_kernels[] = {OP_KERNEL(
    "rope_apply_dual", NULL, "one thread per pair of q or of k", "rope_apply.metal", .group = 256,
    .multiple_of = 2)},
                    table_kernels[] = {
                        OP_KERNEL("rope_apply_table", "plain", "one thread per pair of q or of k",
                                  "rope_apply_table.metal", .group = 256, .multiple_of = 2),
                        OP_KERNEL("rope_apply_table_heads", "heads",
                                  "one thread per pair of all heads", "rope_apply_table.metal",
                                  .group = 8, .rows = 1, .multiple_of = 2)};

OP(rope_apply_dual, "rotary embedding of q and k in one launch", "pos x nq x nk x head_dim",
   dual_kernels, SHAPE_LIST(dual_shapes, 5, 3, 2, 22), .inner = "head_dim",
   .sizes = "nq nk head_dim", .places = "pos", .build = rope_apply_dual_build);
OP(rope_apply_table, "rotary embedding of many tokens, frequencies from a table",
   "pos x tokens x nq x nk x head_dim", table_kernels, SHAPE_LIST(shapes, 5, 4, 3, 2, 22),
   .inner = "head_dim", .sizes = "tokens nq nk head_dim", .places = "pos",
   .build = rope_apply_table_build);
