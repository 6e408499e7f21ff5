/* counted: counts what kernels do that were compiled for it. count_ir.c makes a kernel tell what it does, in the
 * text of its optimised LLVM module; counted.c, in the process that runs it, adds that up.
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

#include "abi.h"
#include "checked.h"
#include "harness/base/err.h"
#include "harness/device/finding.h"

typedef struct soft_counter soft_counter;

/* One row as the engine sends it: the numbers of a site in a space. */
typedef struct {
    uint32_t site, space;
    uint64_t n[COUNT_FIELDS];
} counted_row;

soft_counter *soft_counter_new(soft_worker *w);
void soft_counter_free(soft_counter *c);

/* sites: the table of the compiled kernel. False if it has none. */
bool soft_counter_begin(soft_counter *c, const char *sites, const soft_bound bound[SOFT_BUFFERS]);
/* The rows of the launch that have something in them; they last until the next one begins. */
const counted_row *soft_counter_end(soft_counter *c, size_t *count);

/* The scheduler's: a threadgroup begins; the running simdgroup has stopped or ended; all have reached a
 * barrier or ended. */
void soft_counter_begin_group(soft_worker *w);
void soft_counter_fold(soft_worker *w);
void soft_counter_end_phase(soft_worker *w);

#define SITES_HEAD "assay sites "

/* The module with these calls and the table; the caller frees it. */
char *count_module(const char *module);

/* One line of the table; false if it is none. */
bool count_read_site(const char *line, size_t *site, count_row *out);
/* Adds what the engine counted, and private arrays, by the table of the compiled file. */
bool count_read(const char *object, const counted_row *rows, size_t count, count_list *out, err *e);
