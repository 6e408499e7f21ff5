/* weight_format: how the weights of a kernel are stored, as blocks of values. Those that there are
 * stand in reference/quant.h. */
#pragma once

#include <stddef.h>

typedef struct weight_format {
    const char *name;     /* "Q4_0" */
    size_t values, bytes; /* of a block */
    size_t halves;        /* fp16 numbers in a block: the other bytes may be anything */
    size_t half_at[2];    /* where */

    /* values and magnitudes have room for those of a block. The magnitude of a value that is a
     * difference or a sum (n d - 8 d) is the sum of those of its parts: a kernel may multiply them
     * by x one by one. */
    void (*decode)(const void *block, double *values, double *magnitudes);

    /* ggml's reference quantisation bit for bit, but for a scale beyond fp16: it saturates at 65504
     * where ggml writes an infinity, which would make every value of the block one or NaN. */
    void (*encode)(const float *values, void *block);
} weight_format;
