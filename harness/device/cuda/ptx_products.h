/* ptx_products: products of simdgroup matrices, merged into larger ones where a kernel's text allows it. */
#pragma once

#include <stdbool.h>

#include "harness/base/err.h"

/* What shim/ptx/product.h writes after an instruction (mma) that has a matrix in its first 8 rows only. */
#define PTX_UPPER_ROWS "// assay upper rows"

/* Rewrites the file of the PTX, if it has such products: two that have the same second matrix become one, and two
 * of those one after the other, with the same sums, one of twice as many columns. */
bool ptx_merge_products(const char *path, err *e);
/* The same of a text, which the caller frees, as it does the result. */
char *ptx_merge_text(const char *ptx);
