/* qkv_rope_append: launches, oracle and cases. */
#include "kernels.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/size.h"
#include "harness/check/accuracy.h"
#include "normed.h"
#include "record.h"
#include "reference/reference.h"

enum { ROUNDINGS_OF_TURN = 10 }; /* as rope.c has them for frequencies from a table */

/* A projection of x, turned where `freqs` is not NULL, into the elements of out from `at` on. */
static void expect(const launch *l, oracle_io *io, const double *x, uint32_t pos, int weights,
                   uint32_t rows, const float *freqs, expected *out, size_t at) {
    uint32_t in_dim = oracle_u32(io, 11), head_dim = oracle_u32(io, 12);
    double *value = out->value + at, *scale = out->scale + at;
    out->terms = NORMED_TERMS(in_dim);
    out->roundings = NORMED_ROUNDINGS + (double)ROUNDINGS_OF_TURN;
    normed_multiply(l->kernel->format, io->in[weights], x, rows, in_dim, value, scale);
    double operations = out->roundings + 2 * sqrt(out->terms);
    double sine = l->pipeline->math == MATH_SAFE ? 0 : FAST_SINE / operations;
    for (size_t i = 0; freqs && i + 1 < rows; i += 2)
        reference_rope_fused(pos * (double)freqs[i % head_dim / 2], sine, value + i, scale + i);
}

static void qkv_rope_append_oracle(const launch *l, oracle_io *io) {
    uint32_t q_dim = oracle_u32(io, 9), kv_dim = oracle_u32(io, 10), in_dim = oracle_u32(io, 11);
    uint32_t start = oracle_u32(io, 14), tokens = io->in[15] ? oracle_u32(io, 15) : 1;
    expected *keys = &io->out[6], *values = &io->out[7];
    for (size_t j = 0; j < keys->count; j++)
        keys->scale[j] = values->scale[j] = 0; /* every other row must survive as it is */
    for (uint32_t t = 0; t < tokens; t++) {
        double *x = normed_new((const float *)io->in[0] + (size_t)t * in_dim, io->in[1], in_dim,
                               oracle_f32(io, 13));
        uint32_t pos = start + t;
        size_t row = size_multiply(pos, kv_dim);
        expect(l, io, x, pos, 2, q_dim, io->in[8], &io->out[5], (size_t)t * q_dim);
        if (row + kv_dim <= keys->count) {
            expect(l, io, x, pos, 3, kv_dim, io->in[8], keys, row);
            expect(l, io, x, pos, 4, kv_dim, NULL, values, row);
        }
        free(x);
    }
}

static bool qkv_rope_append_accepts(const kernel *k, const shape *s, err *e) {
    (void)k;
    return (s->dim[3] != 0 && s->dim[3] % 2 == 0) ||
           err_set(e, EXIT_CANNOT, "needs an even head_dim, not %u", s->dim[3]);
}

static bool check_heads(const kernel *k, const qkv_sizes *s, uint32_t pos, err *e) {
    uint32_t size = s->head_dim ? s->head_dim : 1;
    if (!RECORD_TAKES(&qkv_rope_append_op, k, e, pos, s->q_dim / size, s->kv_dim / size,
                      s->head_dim, s->in_dim, s->tokens))
        return false;
    return (s->q_dim != 0 && s->kv_dim != 0 && s->q_dim % size == 0 && s->kv_dim % size == 0) ||
           err_set(e, EXIT_CANNOT, "%s: %u and %u are not whole heads of %u", k->name, s->q_dim,
                   s->kv_dim, s->head_dim);
}

static bool check_caches(const kernel *k, const qkv_sizes *s, const qkv_slices *a, param pos,
                         err *e) {
    size_t row_bytes = size_multiply(s->kv_dim, sizeof(float));
    size_t row = pos.at.buffer ? 0 : pos.bits, rows = a->k_cache.bytes / row_bytes;
    if (a->k_cache.bytes % row_bytes || a->v_cache.bytes != a->k_cache.bytes)
        return err_set(e, EXIT_CANNOT,
                       "%s: caches of %zu and %zu bytes are not the same whole rows of %zu",
                       k->name, a->k_cache.bytes, a->v_cache.bytes, row_bytes);
    return (row < rows && s->tokens <= rows - row) ||
           err_set(e, EXIT_CANNOT, "%s: %u rows from row %zu on do not fit caches of %zu rows",
                   k->name, s->tokens, row, rows);
}

/* Kernels of one token have no such argument. Of the caches only new rows are moved; all others must
 * survive. */
bool qkv_rope_append_record(tape *t, const kernel *k, const qkv_slices *a, const qkv_sizes *s,
                            param pos, err *e) {
    if (!check_heads(k, s, pos.at.buffer ? 0 : pos.bits, e) || !check_caches(k, s, a, pos, e))
        return false;
    uint32_t all = s->q_dim + 2 * s->kv_dim;
    size_t cells = a->k_cache.bytes / sizeof(float),
           kv_values = size_multiply(s->tokens, s->kv_dim);
    const launch_arg args[] = {ARG_IN4("x", a->x, size_multiply(s->tokens, s->in_dim)),
                               ARG_IN4("norm_w", a->norm_w, s->in_dim),
                               ARG_WEIGHTS("wq", a->wq, k->format, s->q_dim, s->in_dim, 2),
                               ARG_WEIGHTS("wk", a->wk, k->format, s->kv_dim, s->in_dim, 2),
                               ARG_WEIGHTS("wv", a->wv, k->format, s->kv_dim, s->in_dim, 2),
                               ARG_OUT("q", a->q, size_multiply(s->tokens, s->q_dim)),
                               ARG_BOTH("k_cache", a->k_cache, cells),
                               ARG_BOTH("v_cache", a->v_cache, cells),
                               ARG_IN("freqs", a->freqs, s->head_dim / 2),
                               ARG_U32(s->q_dim),
                               ARG_U32(s->kv_dim),
                               ARG_U32(s->in_dim),
                               ARG_U32(s->head_dim),
                               ARG_F32(s->eps),
                               ARG_PARAM(pos),
                               ARG_U32(s->tokens)};
    const launch_work work = {
        .groups = record_tiles(k, all, s->tokens),
        .flops = s->tokens *
                 (2 * (uint64_t)all * s->in_dim + 4 * (uint64_t)s->in_dim + 3 * (uint64_t)all + 3),
        .unmoved = sizeof(float) * (4 * cells - 2 * kv_values + s->head_dim / 2),
        .appends = s->tokens == 1 ? 1u << 6 | 1u << 7 : 0,
        .oracle = qkv_rope_append_oracle};
    return record_args(t, k, args, COUNT_OF(args) - (k->tokens == 0), &work, e);
}

/* The position comes from device memory, as it does in a model; one more row is never written. */
static bool qkv_rope_append_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    uint32_t pos = dim[0], head_dim = dim[3];
    qkv_sizes s = {dim[1] * head_dim, dim[2] * head_dim,   dim[4],
                   head_dim,          dim[5] ? dim[5] : 1, 1e-5f};
    size_t cells = size_multiply(pos + s.tokens + 1, s.kv_dim);
    const weight_format *f = c->kernel->format;
    float *freqs = malloc(size_multiply(head_dim / 2, sizeof *freqs) + 1);
    assert(freqs);
    for (uint32_t i = 0; i < head_dim / 2; i++)
        freqs[i] = (float)pow(10000, -2.0 * i / head_dim);
    qkv_slices a;
    slice place;
    bool ok = case_input_f32(c, "x", size_multiply(s.tokens, s.in_dim), &a.x, e) &&
              case_input_f32(c, "norm_w", s.in_dim, &a.norm_w, e) &&
              case_input_weights(c, "wq", f, s.q_dim, s.in_dim, &a.wq, e) &&
              case_input_weights(c, "wk", f, s.kv_dim, s.in_dim, &a.wk, e) &&
              case_input_weights(c, "wv", f, s.kv_dim, s.in_dim, &a.wv, e) &&
              case_output(c, "q", size_multiply(s.tokens, s.q_dim) * sizeof(float), &a.q, e) &&
              case_input_f32(c, "k_cache", cells, &a.k_cache, e) &&
              case_input_f32(c, "v_cache", cells, &a.v_cache, e) &&
              case_input_bytes(c, "freqs", freqs, head_dim / 2 * sizeof *freqs, &a.freqs, e) &&
              case_input_bytes(c, "pos", &pos, sizeof pos, &place, e) &&
              qkv_rope_append_record(c->tape, c->kernel, &a, &s, param_at(place), e);
    free(freqs);
    return ok;
}

/* Rows: boundaries between q, k and v at every place in a threadgroup of 8. Blocks of a row: around
 * the 16 that lanes take at a time. Then those of models. */
static const shape shapes[] = {
    {{0, 1, 1, 2, 32}},     {{1, 1, 1, 2, 64}},       {{3, 3, 1, 2, 480}},  {{7, 5, 1, 6, 512}},
    {{2, 2, 2, 34, 544}},   {{5, 4, 2, 16, 1056}},    {{0, 9, 3, 64, 576}}, {{10, 9, 3, 64, 576}},
    {{2047, 9, 3, 64, 96}}, {{100, 8, 2, 128, 1024}},
};

/* Stacked rows around the 16, 32 and 64, tokens around the 32 and 64 of a tile. */
static const shape tiled[] = {
    {{0, 1, 1, 2, 32, 1}},     {{1, 5, 1, 2, 64, 33}},      {{3, 3, 1, 6, 96, 31}},
    {{7, 1, 1, 22, 160, 63}},  {{2, 2, 1, 16, 288, 65}},    {{0, 9, 3, 64, 576, 8}},
    {{10, 3, 1, 64, 128, 64}}, {{100, 2, 1, 128, 32, 130}},
};
static const shape_list tiled_list = SHAPE_LIST(tiled, 3, 3, 1, 6, 96, 5);

static const kernel kernels[] = {
    NORMED_KERNEL("qkv_rope_append", "two rows per simdgroup, the norm in the same pass", 8),
    NORMED_TILED("qkv_rope_append", 2),
};

OP(qkv_rope_append, "norm, query, key and value, rotated and appended to the caches",
   "pos x heads x kv_heads x head_dim x in x tokens", kernels, SHAPE_LIST(shapes, 3, 3, 1, 6, 96),
   .inner = "in", .many = "tokens", .accepts = qkv_rope_append_accepts,
   .sizes = "heads kv_heads head_dim in tokens", .places = "pos", .build = qkv_rope_append_build);
