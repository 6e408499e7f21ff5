/* rope_apply_tokens: launches, oracles and cases of the rotary embedding of many tokens, with
 * angles from a base (rope_apply_tokens) or from a table of frequencies (rope_apply_table). The two
 * differ only in argument 6. */
#include "kernels.h"

#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"
#include "rope.h"

/* Tokens of q and then of k, each by `turn`. */
typedef void (*turn_fn)(const oracle_io *io, const float *in, size_t heads, size_t head_dim,
                        uint32_t pos, double *value, double *scale);

static void turn_tokens(const launch *l, oracle_io *io, turn_fn turn, double theta) {
    uint32_t head_dim = oracle_u32(io, 4), pos = oracle_u32(io, 5), n_tokens = oracle_u32(io, 7);
    for (int i = 0; i < 2; i++) { /* q and nq, then k and nk */
        expected *out = &io->out[i];
        const float *in = io->in[i];
        uint32_t heads = oracle_u32(io, 2 + i);
        for (uint32_t t = 0; t < n_tokens; t++) {
            size_t at = (size_t)t * heads * head_dim;
            turn(io, in + at, heads, head_dim, pos + t, out->value + at, out->scale + at);
        }
        rope_judge(l, in, out->count, theta, out);
    }
}

static void turn_by_base(const oracle_io *io, const float *in, size_t heads, size_t head_dim,
                         uint32_t pos, double *value, double *scale) {
    reference_rope(in, heads, head_dim, pos, (double)oracle_f32(io, 6), value, scale);
}

static void turn_by_table(const oracle_io *io, const float *in, size_t heads, size_t head_dim,
                          uint32_t pos, double *value, double *scale) {
    reference_rope_table(in, heads, head_dim, pos, io->in[6], value, scale);
}

static void rope_apply_tokens_oracle(const launch *l, oracle_io *io) {
    turn_tokens(l, io, turn_by_base, (double)oracle_f32(io, 6));
}

static void rope_apply_table_oracle(const launch *l, oracle_io *io) {
    turn_tokens(l, io, turn_by_table, 0);
}

/* `turn` is argument 6. */
static bool record(tape *t, const op *o, const kernel *k, slice q_heads, slice k_heads,
                   uint32_t n_tokens, uint32_t nq, uint32_t nk, uint32_t head_dim, param pos,
                   const launch_arg *turn, oracle_fn oracle, err *e) {
    size_t row = size_multiply(n_tokens, head_dim), q_count = size_multiply(nq, row),
           k_count = size_multiply(nk, row), count = q_count + k_count;
    if (!RECORD_TAKES(o, k, e, 0, n_tokens, nq, nk, head_dim))
        return false;
    if (count > UINT32_MAX / sizeof(float))
        return err_set(e, EXIT_CANNOT,
                       "%s: %u tokens of %u + %u heads of %u overflow a 32-bit index", k->name,
                       n_tokens, nq, nk, head_dim);
    bool takes_heads = k->rows != 0; /* all heads of a token at once */
    const launch_work w = {.threads = (uint32_t)(takes_heads ? row : count) / 2,
                           .flops = 3 * (uint64_t)count, /* the angle is not counted */
                           .oracle = oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_BOTH("q", q_heads, q_count),
                       ARG_BOTH("k", k_heads, k_count), ARG_U32(nq), ARG_U32(nk), ARG_U32(head_dim),
                       ARG_PARAM(pos), *turn, ARG_U32(n_tokens));
}

bool rope_apply_tokens_record(tape *t, const kernel *k, slice q_heads, slice k_heads,
                              uint32_t n_tokens, uint32_t nq, uint32_t nk, uint32_t head_dim,
                              param pos, float theta, err *e) {
    const launch_arg turn = ARG_F32(theta);
    return record(t, &rope_apply_tokens_op, k, q_heads, k_heads, n_tokens, nq, nk, head_dim, pos,
                  &turn, rope_apply_tokens_oracle, e);
}

bool rope_apply_table_record(tape *t, const kernel *k, slice q_heads, slice k_heads,
                             uint32_t n_tokens, uint32_t nq, uint32_t nk, uint32_t head_dim,
                             param pos, slice freqs, err *e) {
    const launch_arg turn = ARG_IN("freqs", freqs, head_dim / 2);
    return record(t, &rope_apply_table_op, k, q_heads, k_heads, n_tokens, nq, nk, head_dim, pos,
                  &turn, rope_apply_table_oracle, e);
}

/* The position comes from device memory, as it does in a model. The last pairs of q and k are
 * followed by one that must not change: rotating the NaN of a guard zone would go unseen. */
static bool make_inputs(kernel_case *c, slice *q_heads, slice *k_heads, slice *place, err *e) {
    const uint32_t *dim = c->shape.dim;
    uint32_t pos = dim[0], n_tokens = dim[1], nq = dim[2], nk = dim[3], head_dim = dim[4];
    size_t row = size_multiply(n_tokens, head_dim);
    return case_input_f32(c, "q", size_multiply(nq, row) + 2, q_heads, e) &&
           case_input_f32(c, "k", size_multiply(nk, row) + 2, k_heads, e) &&
           case_input_bytes(c, "pos", &pos, sizeof pos, place, e);
}

static bool rope_apply_tokens_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    slice q_heads, k_heads, place;
    return make_inputs(c, &q_heads, &k_heads, &place, e) &&
           rope_apply_tokens_record(c->tape, c->kernel, q_heads, k_heads, dim[1], dim[2], dim[3],
                                    dim[4], param_at(place), 10000, e);
}

/* The frequencies are arbitrary numbers from 0 to 1, in no order. */
static bool rope_apply_table_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    float *table = array_new(dim[4] / 2, sizeof *table);
    for (uint32_t p = 0; p < dim[4] / 2; p++)
        table[p] = (float)rng_uniform(&c->random);
    slice q_heads, k_heads, place, freqs;
    bool ok = make_inputs(c, &q_heads, &k_heads, &place, e) &&
              case_input_bytes(c, "freqs", table, dim[4] / 2 * sizeof *table, &freqs, e) &&
              rope_apply_table_record(c->tape, c->kernel, q_heads, k_heads, dim[1], dim[2], dim[3],
                                      dim[4], param_at(place), freqs, e);
    free(table);
    return ok;
}

/* One pair and many; tokens with more and with fewer pairs than a threadgroup has threads, and with
 * exactly as many; the model's heads at position 0 and far from it. */
static const shape shapes[] = {
    {{0, 1, 1, 1, 2}},      {{7, 33, 5, 3, 6}},   {{0, 2, 9, 3, 64}},     {{1, 7, 9, 3, 64}},
    {{2000, 48, 9, 3, 64}}, {{5, 3, 32, 8, 128}}, {{4000, 9, 2, 1, 256}},
};

#define KERNEL(name)                                                                               \
    OP_KERNEL(name, NULL, "one thread per pair of q or of k", name ".metal", .group = 256,         \
              .multiple_of = 2)
static const kernel tokens_kernels[] = {KERNEL("rope_apply_tokens")},
                    table_kernels[] = {
                        OP_KERNEL("rope_apply_table", "plain", "one thread per pair of q or of k",
                                  "rope_apply_table.metal", .group = 256, .multiple_of = 2),
                        OP_KERNEL("rope_apply_table_heads", "heads",
                                  "one thread per pair of all heads", "rope_apply_table.metal",
                                  .group = 8, .rows = 1, .multiple_of = 2)};

#define DIMS "pos x tokens x nq x nk x head_dim"
OP(rope_apply_tokens, "rotary embedding of q and k of many tokens", DIMS, tokens_kernels,
   SHAPE_LIST(shapes, 5, 4, 3, 2, 22), .inner = "head_dim", .sizes = "tokens nq nk head_dim",
   .places = "pos", .build = rope_apply_tokens_build);
OP(rope_apply_table, "rotary embedding of many tokens, frequencies from a table", DIMS,
   table_kernels, SHAPE_LIST(shapes, 5, 4, 3, 2, 22), .inner = "head_dim",
   .sizes = "tokens nq nk head_dim", .places = "pos", .build = rope_apply_table_build);
