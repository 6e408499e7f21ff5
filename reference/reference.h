/* reference: what every kernel should compute, in plain C and double precision.
 *
 * Written to be read: one function per op, no tricks, no blocking. Inputs are what a device buffer
 * holds (f32, quantised blocks), outputs are doubles. Nothing here knows of devices, launches or
 * tolerances.
 *
 * `magnitude`, where a function has it, is the sum of the absolute values of the terms that made
 * each output: rounding errors are relative to it, not to the output, which cancellation may have
 * made small. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quant.h"

/* dst (count) = src (count) */
void reference_buffer_copy(const float *src, size_t count, double *dst);

/* Row `row` of both caches (rows, kv_dim) = k, v (kv_dim); other rows stay as they are. */
void reference_kv_cache_copy(const float *k, const float *v, size_t kv_dim, size_t row,
                             double *k_cache, double *v_cache);

/* out (count) = silu(gate) * up, where silu(g) = g / (1 + e^-g) */
void reference_ffn_silu(const float *gate, const float *up, size_t count, double *out,
                        double *magnitude);

/* 1 / (1 + e^-x); max(x, 0)^2; x sigmoid(x); e^(-0.606531 sigmoid(x)), the decay of RWKV-7 */
double reference_sigmoid(double x);
double reference_squared_relu(double x);
double reference_silu(double x);
double reference_decay(double x);

/* y (rows, dim) = x / sqrt(mean(x^2) + eps) * w, each row by itself; w (dim) */
void reference_rmsnorm(const float *x, const float *w, size_t rows, size_t dim, double eps,
                       double *y, double *magnitude);

/* y (heads, head_dim) = x with pair p of each head turned by pos * theta^(-2p / head_dim). Pairs
 * are neighbours: elements 2p and 2p + 1. */
void reference_rope(const float *x, size_t heads, size_t head_dim, uint32_t pos, double theta,
                    double *y, double *magnitude);

/* The same, turned by pos * freqs[p]; freqs (head_dim / 2) */
void reference_rope_table(const float *x, size_t heads, size_t head_dim, uint32_t pos,
                          const float *freqs, double *y, double *magnitude);

/* The same for one pair in double precision, in place, with the magnitude of each of its values:
 * sine is the error of a sine or cosine, in units of the others. */
void reference_rope_fused(double angle, double sine, double *pair, double *magnitude);

/* y (batch, out_dim) += W x for each of x (batch, in_dim); W (out_dim, in_dim) in blocks of a
 * format, in_dim whole blocks. magnitude holds that of y before and gets that of the result: for
 * such long sums, the size of their partial sums (matvec.c). */
void reference_matvec(const weight_format *f, const void *w, const float *x, size_t out_dim,
                      size_t in_dim, size_t batch, double *y, double *magnitude);

/* As reference_matvec, with x in double precision and the magnitude of each of its values: the
 * result of an operation that is fused into the product. */
void reference_matvec_fused(const weight_format *f, const void *w, const double *x,
                            const double *x_magnitude, size_t out_dim, size_t in_dim, size_t batch,
                            double *y, double *magnitude);

/* x (tokens, columns) as split_halves makes it, word by word, and back; columns a multiple of 256. A token has
 * reference_count_halves words. */
size_t reference_count_halves(size_t columns);
void reference_split_halves(const float *x, size_t tokens, size_t columns, uint32_t *halves,
                            float *powers);
void reference_join_halves(const uint32_t *halves, const float *powers, size_t tokens,
                           size_t columns, double *x);

/* out (n_tokens, n_heads, head_dim): query t of q, of the same shape, attends to rows 0 to start +
 * t of the caches (rows, n_kv_heads, head_dim): softmax(scale * q K^T) V, each head by itself.
 * Query heads share the heads of the caches in equal runs.
 *
 * magnitude is of the sum of weight * value. To it is added what an error of the scores does: a
 * score that is off by e changes its key's weight by the factor 1 + e, and the output by weight *
 * (value - output) * e. A score errs in proportion to the magnitude of its own sum and to its
 * distance from the largest one, which is what the exponential is taken of. Where one key has all
 * the weight, value is output and nothing is added, however large the scores. */
typedef struct {
    size_t n_heads, n_kv_heads, head_dim;
} attention_sizes;
typedef struct {
    double score, sum; /* roundings of a score, and of the sum over keys */
} attention_roundings;
void reference_attention(const float *q, const float *k_cache, const float *v_cache,
                         const attention_sizes *n, size_t n_tokens, size_t start, double scale,
                         const attention_roundings *r, double *out, double *magnitude);

/* The largest of some numbered values. NaN is skipped, of equals the lowest number wins. */
typedef struct {
    double value;   /* -INFINITY if there is none */
    uint32_t index; /* UINT32_MAX if there is none: no values, or all NaN */
} maximum;
maximum reference_maximum(const float *values, const uint32_t *indices, size_t count);

/* sums[g] = the sum of all floats that threadgroup g of `groups` reads when threads of one grid
 * stride over count groups of four floats, `group` threads per threadgroup. */
void reference_read_sums(const float *data, size_t count, size_t groups, size_t group, double *sums,
                         double *magnitude);

/* The same for count groups of four halves, and for count Q4_0 blocks. */
void reference_read_sums_f16(const uint16_t *data, size_t count, size_t groups, size_t group,
                             double *sums, double *magnitude);
void reference_read_sums_q4_0(const void *blocks, size_t count, size_t groups, size_t group,
                              double *sums, double *magnitude);

/* out (columns) = row `row` of a table of rows of `columns` values, whole blocks of a format. */
void reference_decode_row(const weight_format *f, const void *table, size_t row, size_t columns,
                          double *out);

/* out (count) = b + scalar * c */
void reference_triad(const float *b, const float *c, double scalar, size_t count, double *out,
                     double *magnitude);

/* out (count) = the sum of four series a = a * keep + x after `rounds` rounds, from 0, x, -x and 2x */
void reference_compute_fma(const float *x, size_t count, uint32_t rounds, double keep, double *out,
                           double *magnitude);

/* What a decode step leaves: history[step % ring] = next, and after = {next, pos + 1,
 * kv_len + 1, step + 1}, for before = {token, pos, kv_len, step}. */
void reference_decode_advance(uint32_t next, const uint32_t before[4], uint32_t ring,
                              double after[4], double *history);

/* logits (vocab), changed in place: each that is named by one of n ids, once or more often, is
 * divided by penalty if it is positive and multiplied if not. Ids past the end name nothing.
 * magnitude is 0 for what is left alone. */
void reference_repetition_penalty(const uint32_t *ids, size_t n, size_t vocab, double penalty,
                                  double *logits, double *magnitude);

/* y (rows, groups, dim) = (x - mean) / sqrt(variance + eps) * w + b, each group of each row by
 * itself; w and b (groups, dim). A layer norm has one group. */
void reference_group_norm(const float *x, const float *w, const float *b, size_t rows,
                          size_t groups, size_t dim, double eps, double *y, double *magnitude);

/* y (rows, dim) = x / max(|x|, eps), each row by itself */
void reference_l2_norm(const float *x, size_t rows, size_t dim, double eps, double *y,
                       double *magnitude);

/* out (mixes, tokens, dim) = x + (previous - x) * mu (mixes, dim); the row before x (tokens, dim)
 * is state (dim) */
void reference_token_shift(const float *x, const float *state, const float *mu, size_t tokens,
                           size_t dim, size_t mixes, double *out, double *magnitude);

/* y (rows, n) = e^x / sum of e^x, each row by itself; `roundings` are those the magnitudes are
 * multiplied by */
void reference_softmax(const float *x, size_t rows, size_t n, double roundings, double *y,
                       double *magnitude);

/* The time mix of RWKV-7. Vectors are (tokens, dim), with dim = heads * head_size; k_k, k_a, r_k,
 * norm_w and norm_b are (dim); packed (4, tokens, dim) holds k, v, a, kk. Each function reads only
 * some of them. An error is how far an f32 is off, in roundings (time_mix_v7.c). */
typedef struct {
    size_t tokens, heads, head_size;
} time_mix_v7_sizes;

typedef struct {
    const float *k, *v, *a, *k_k, *k_a, *v_gate, *v_first; /* no v_gate: v stays as it is */
    const float *r, *w, *g, *r_k, *norm_w, *norm_b;
    double eps;
} time_mix_v7_inputs;

/* packed: k * (1 + (a - 1) * k_a), v + (v_first - v) * v_gate, a, and k * k_k in unit length */
void reference_time_mix_v7_prepare(const time_mix_v7_inputs *x, const time_mix_v7_sizes *n,
                                   double *packed, double *magnitude);

/* The recurrence in place on state (heads, head_size, head_size), token by token:
 * S = S * w + v k^T - (S kk) (kk * a)^T, y = S r */
void reference_time_mix_v7(const float *r, const float *w, const float *packed,
                           const time_mix_v7_sizes *n, double *state, double *state_error,
                           double *y, double *y_error);

/* y, in place, = (group_norm(y) * norm_w + norm_b + (sum over the head of r * k * r_k) * v) * g */
void reference_time_mix_v7_finish(const time_mix_v7_inputs *x, const time_mix_v7_sizes *n,
                                  const float *packed, double *y, double *y_error);

/* The three in a row. */
void reference_time_mix_v7_token(const time_mix_v7_inputs *x, const time_mix_v7_sizes *n,
                                 double *state, double *state_error, double *y, double *y_error);

/* x, which starts as it was, += (sum over the head of r_k * k * r) * v */
void reference_time_first_v7(const float *r_k, const float *r, const float *packed,
                             const time_mix_v7_sizes *n, double *x, double *magnitude);
