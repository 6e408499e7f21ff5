/* count_ir: makes a kernel tell what it does, in the text of its optimised LLVM module.
 *
 * Each access to memory calls __assay_access with its address, each basic block and each meeting of lanes
 * __assay_block (shim/cpu/counted.h), both with the number of their *site*. What a site is stands in a
 * table, a text that the compiled file carries as `assay_sites`: SITES_HEAD with the number of sites, and
 * then a line per site, or of a block one per line of the source that it has instructions of:
 *
 *     site kind line a b c d e file
 *
 * kind  L S A        load, store, atomic access; a: bytes, b: those in threadgroup memory, where the second
 *                    half of a copy has none: the first is as wide as both
 *       B            block; a to e: flops, integer operations, conversions, special functions, all
 *       M X W        simdgroup function, product of matrices, barrier
 *       P            private array; a: bytes; it is not a site: its number is that of the next one */
#pragma once

#include "counted.h"

#define SITES_HEAD "assay sites "

/* The module with these calls and the table; the caller frees it. */
char *count_module(const char *module);

/* Adds what the engine counted, and private arrays, by the table of the compiled file. */
bool count_read(const char *object, const counted_row *rows, size_t count, count_list *out, err *e);
