/* counted: counts what kernels do that were compiled for it (count_ir.h). */
#pragma once

#include "abi.h"
#include "checked.h"
#include "harness/base/err.h"
#include "harness/device/counts.h"

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
void soft_counter_pause(soft_worker *w);
void soft_counter_end_phase(soft_worker *w);
