/* reference: what every kernel should compute, in plain C and double precision.
 *
 * Written to be read: one function an op, no tricks, no blocking. Inputs are what a device buffer
 * holds (f32, quantised blocks), outputs are doubles. Nothing here knows of devices, launches or
 * tolerances.
 *
 * `magnitude`, where a function has it, is the sum of the absolute values of the terms that made
 * each output: rounding errors are relative to it, not to the output, which cancellation may have
 * made small. */
#ifndef ASSAY_REFERENCE_H
#define ASSAY_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* dst (count) = src (count) */
void reference_buffer_copy(const float *src, size_t count, double *dst);

/* Row `row` of both caches (rows, kv_dim) = k, v (kv_dim); other rows stay as they are. */
void reference_kv_cache_copy(const float *k, const float *v, size_t kv_dim, size_t row,
                             double *k_cache, double *v_cache);

/* out (count) = a + b */
void reference_residual_add(const float *a, const float *b, size_t count, double *out,
                            double *magnitude);

/* out (count) = silu(gate) * up, where silu(g) = g / (1 + e^-g) */
void reference_ffn_silu(const float *gate, const float *up, size_t count, double *out,
                        double *magnitude);

/* y (rows, dim) = x / sqrt(mean(x^2) + eps) * w, each row by itself; w (dim) */
void reference_rmsnorm(const float *x, const float *w, size_t rows, size_t dim, double eps,
                       double *y, double *magnitude);

/* y (heads, head_dim) = x with pair p of each head turned by pos * theta^(-2p / head_dim). Pairs
 * are neighbours: elements 2p and 2p + 1. */
void reference_rope(const float *x, size_t heads, size_t head_dim, uint32_t pos, double theta,
                    double *y, double *magnitude);

/* y (out_dim) += W x, with W (out_dim, in_dim) in Q4_0 blocks and x (in_dim). Adds to magnitude
 * too. */
void reference_matvec_q4_0(const void *w, const float *x, size_t out_dim, size_t in_dim, double *y,
                           double *magnitude);

/* The largest of some numbered values. NaN is skipped, of equals the lowest number wins. */
typedef struct {
    double value;   /* -INFINITY if there is none */
    uint32_t index; /* UINT32_MAX if there is none: no values, or all NaN */
} maximum;
maximum reference_maximum(const float *values, const uint32_t *indices, size_t count);

/* sums[g] = the sum of all floats that threadgroup g of `groups` reads when threads of one grid
 * stride over count groups of four floats, `group` threads a threadgroup. */
void reference_read_sums(const float *data, size_t count, size_t groups, size_t group, double *sums,
                         double *magnitude);

#endif
