/* product: out = epilogue(W . prologue(x)), for weights in any format: the ops matvec,
 * matvec_activate, matvec_mixed, matvec_batched, matvec_split, silu_matvec, rmsnorm_matvec,
 * gate_up_silu and qkv_rope_append.
 *
 * One description and one record function serve all of them. product.c says what each op has, in
 * which order its kernels take it and what they should compute; table.h lists the kernels. */
#pragma once

#include "harness/check/op.h"
#include "kernels/activations.h"

enum { PRODUCT_MATRICES = 7 };

/* y (tokens, rows) = W x, or y += W x, for each of x (tokens, columns); W (rows, columns) exactly,
 * columns whole blocks of the format. */
typedef struct {
    slice w, x, y;
    slice bias; /* (rows); without a buffer: none */
    const weight_format *format;
    uint32_t rows, columns;
    uint32_t activation;       /* of activations.h, after the bias */
    bool accumulates;          /* then there is no bias and no activation */
    uint32_t has_bias, number; /* of the format: both are found by product_record */
} product_matrix;

/* What an op does not have is 0. Only matvec_mixed has formats, x, bias, activation and accumulation
 * per matrix. The others take the x, columns, bias and activation of the first one, and the kernel
 * decides format and accumulation. */
typedef struct {
    product_matrix items[PRODUCT_MATRICES];
    uint32_t
        count; /* matvec_mixed: 1 to 7; matvec_batched: 2 or 3; matvec_split: 1 to 3; the others have a fixed number */
    uint32_t tokens; /* only kernels with k->tokens take a number other than 1 */
    slice powers;    /* matvec_split: x is what split_halves makes of it, and powers with it */
    slice up;        /* silu_matvec: silu(x) * up is multiplied; up (columns) */
    slice norm_w; /* rmsnorm_matvec and the ops below: rmsnorm(x) is multiplied; norm_w (columns) */
    float eps;
    /* gate_up_silu: y of the first matrix = silu(W0 x) * (W1 x).
     *
     * qkv_rope_append: y of the first matrix is q, those of the others are the caches (any number of
     * rows, rows of the matrix). Token t is turned to position pos + t, by (pos + t) * freqs[p] for
     * pair p of each head, and rows pos + t of the caches get its key, turned too, and its value.
     * head_dim is even, rows are whole heads; freqs (head_dim / 2). */
    slice freqs;
    uint32_t head_dim;
    param pos;
} product;

bool product_record(tape *t, const kernel *k, const product *p, err *e);

/* The same for one matrix: y (batch, out_dim) = W x, or y += W x. */
bool matvec_record(tape *t, const kernel *k, slice w, slice x, slice y, uint32_t out_dim,
                   uint32_t in_dim, uint32_t batch, err *e);

/* Of which the offset of W must be a multiple. */
size_t product_get_alignment(const kernel *k);
