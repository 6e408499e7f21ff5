/* normed: what the oracles of ops that fuse a norm with a projection have in common. */
#pragma once

#include "reference/quant.h"

/* Two sums of in_dim terms, one after the other; the roundings are those of rmsnorm (10) and of a
 * product (4). */
#define NORMED_TERMS(in_dim) (4.0 * (in_dim))
#define NORMED_ROUNDINGS 14.0

/* x (in_dim) / rms(x) * norm_w in double precision, followed by the magnitudes. The caller frees it. */
double *normed_new(const float *x, const float *norm_w, uint32_t in_dim, float eps);

/* value (rows) = W normed, and its scale. */
void normed_multiply(const weight_format *f, const void *w, const double *normed, uint32_t rows,
                     uint32_t in_dim, double *value, double *scale);

/* Kernels of such an op for Q4_0: one for one token, */
#define NORMED_KERNEL(op_, about_, rows_)                                                          \
    {                                                                                              \
        .name = op_ "_q4_0", .variant = "plain", .about = about_, .file = op_ ".metal",            \
        .format = &format_q4_0, .group = 128, .rows = rows_                                        \
    }
/* and tiles of rows and tokens (tiles.h), whose shapes are the tiled_list of the file; `outputs` is
 * how many outputs 2 rows are. */
#define NORMED_TILE(op_, end, about_, group_, rows_, tokens_)                                      \
    {                                                                                              \
        .name = op_ "_q4_0_tiled" end, .variant = "tiled" end, .about = about_,                    \
        .file = op_ "_tiled.metal", .format = &format_q4_0, .group = group_, .rows = rows_,        \
        .tokens = tokens_, .shapes = &tiled_list                                                   \
    }
#define NORMED_TILED(op_, outputs)                                                                 \
    NORMED_TILE(op_, "", "tiles of 64 rows and 64 tokens, weights decoded once per tile", 128,     \
                32 * outputs, 64),                                                                 \
        NORMED_TILE(op_, "_split", "tiles of 16 rows and 32 tokens, columns split in four", 128,   \
                    8 * outputs, 32),                                                              \
        NORMED_TILE(op_, "_few", "tiles of 16 rows and 8 tokens, columns split in nine", 288,      \
                    8 * outputs, 8)
