/* formats: THE list of weight formats, for C and for MSL.
 *
 * X(format, kind, shapes) for each: the format's name as used in the names of kernels, how the
 * products read it, and which of the shapes of product/shapes.h they are checked with:
 *   parts    16 weights per lane too (product/vec16.h); its kernels are in product/matvec_<format>.metal
 *   blocks   only as below; its kernels are in product/matvec_blocks.metal
 *   floats   one weight at a time too, as <format>_single; product/matvec_floats.metal
 * The kernels that every format has follow from this list. To add a format:
 *   1. write formats/<format>.h, the struct by which kernels read it (below);
 *   2. include it here and add its line to the list;
 *   3. describe and code its blocks in reference/quant.h and quant.c: format_<format>;
 *   4. name it in runner/gguf/type.c if files have it.
 *
 * What a kernel knows of a format F:
 *   F::block   what a row consists of; F::values weights each
 *   F::wide    float4, or float where rows are not whole float4s
 *   F::wides   how many of them are decoded at a time: a unit
 *   F::load    decodes a unit of a row
 *   F::at      decodes one weight of a table
 *
 * And of <format>_eights, by which threads that work alone read it (product/per_thread.h): a block has
 * parts of S::eights eights, S::scales runs of which have a scale each.
 *   S::place       where in a block an eight begins
 *   S::get         the numbers of a part
 *   S::get_bytes   if S::has_bytes: the same of two rows as bytes, S::zero larger (product/per_thread_bytes.h)
 *   S::get_scale   d and m: number n stands for d n, or d n + m if S::has_minimum */

#pragma once

#define FORMATS(X)                                                                                 \
    X(q4_0, parts, ladder)                                                                         \
    X(q4_1, blocks, of_32)                                                                         \
    X(q5_0, blocks, few_of_32)                                                                     \
    X(q5_1, blocks, few_of_32)                                                                     \
    X(q8_0, parts, head_of_32)                                                                     \
    X(q4_k, parts, of_256)                                                                         \
    X(q5_k, blocks, few_of_256)                                                                    \
    X(q6_k, parts, head_of_256)                                                                    \
    X(f16, floats, floats)                                                                         \
    X(bf16, floats, few_floats)                                                                    \
    X(f32, floats, floats)

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
