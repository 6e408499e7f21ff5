/* formats: THE list of weight formats, for C and for MSL.
 *
 * X(format, shapes) for each: the format's name as used in the names of kernels, and which of the
 * shapes of product/shapes.h its products are checked with. The kernels of matvec and of embedding_lookup
 * are made from this list. To add a format:
 *   1. write formats/<format>.h, the struct by which kernels read it (below), and include it here;
 *   2. add its line to the list;
 *   3. write matvec_<format>.metal, which names its instantiations;
 *   4. describe and code its blocks in reference/quant.h and quant.c: format_<format>;
 *   5. name it in runner/gguf/type.c if files have it.
 *
 * What a kernel knows of a format F:
 *   F::block   what a row consists of; F::values weights each
 *   F::wide    float4, or float where rows are not whole float4s
 *   F::wides   how many of them are decoded at a time: a unit
 *   F::load    decodes a unit of a row
 *   F::at      decodes one weight of a table */

#pragma once

/* Most weights are Q4_0: it has more variants than the others (product/kernels.c). */
#define FORMATS(X) X(q4_0, ladder) BLOCK_FORMATS(X) FLOAT_FORMATS(X)
#define BLOCK_FORMATS(X)                                                                           \
    X(q4_1, of_32)                                                                                 \
    X(q5_0, few_of_32)                                                                             \
    X(q5_1, few_of_32)                                                                             \
    X(q8_0, head_of_32)                                                                            \
    X(q4_k, of_256)                                                                                \
    X(q5_k, few_of_256)                                                                            \
    X(q6_k, head_of_256)
#define FLOAT_FORMATS(X)                                                                           \
    X(f16, floats)                                                                                 \
    X(bf16, few_floats)                                                                            \
    X(f32, floats)

#ifdef __METAL_VERSION__
#include "floats.h"
#include "q4_0.h"
#include "q4_1.h"
#include "q4_k.h"
#include "q5_0.h"
#include "q5_1.h"
#include "q5_k.h"
#include "q6_k.h"
#include "q8_0.h"
#endif
