/* layout: what each op of products has, and where: the arguments of its kernels and the sizes of its
 * shapes, as lists that the record function, the oracle and the test cases all go through. */
#pragma once

#include "harness/device/launch.h"
#include "product.h"

/* What an argument or a size is: buffers, then numbers. */
typedef enum {
    NOTHING,
    WEIGHTS,
    INPUT,
    SECOND, /* up */
    NORM,
    POWERS,
    BIAS,
    OUTPUT,
    FREQS,
    ROWS,
    COLUMNS,
    TOKENS,
    ACTIVATION,
    HAS_BIAS,
    HEAD_DIM,
    POSITION,
    EPS,
    STACK, /* rows of three matrices, then columns */
    LIST,  /* product_shape of all matrices */
    HEADS, /* of a shape: rows / head_dim */
    COUNT,
    FORMAT,
} product_role;

typedef struct {
    product_role role;
    uint32_t of; /* which matrix */
    const char *name;
} product_part;

typedef enum { AS_IT_IS, SPLIT_HALVES, SILU, NORMED } product_prologue;
typedef enum { STORED, ACTIVATED, MIXED, GATED, APPENDED } product_epilogue;

typedef struct {
    const op *op;
    const char *variant; /* NULL: of all kernels of the op */
    product_prologue prologue;
    product_epilogue epilogue;
    size_t matrices;
    bool varies; /* there may be fewer */
    product_part args[LAUNCH_BUFFERS];
    product_part shape[SHAPE_DIMS];
} product_layout;

/* What the caches of an op hold. */
elem product_get_cache_elem(const product_layout *a);

/* A matrix of matvec_mixed as its kernel reads it. */
typedef struct {
    uint32_t rows, columns, groups;
    uint8_t format, activation, has_bias, accumulates;
} product_shape;

/* The formats by the numbers that the kernel knows; NULL: there are no more. */
const weight_format *product_get_format(uint32_t number);

/* Where a number of a description is: not for EPS, STACK and LIST. Heads are rows at first. */
uint32_t *product_find_size(product *p, product_part which);
/* Where a buffer is, how many floats of it are used, and how. Caches are used whole. */
slice *product_find_buffer(product *p, product_part which);
size_t product_count_floats(const product_layout *a, const product *p, product_part which);
access_mode product_get_access(const product_layout *a, const product *p, product_part which);
/* What all matrices of an op share, from the first of them, and what the kernel decides. */
void product_spread(const product_layout *a, const kernel *k, product *p);

/* What the kernels of products should compute (oracle.c). */
void product_oracle(const launch *l, oracle_io *io);
