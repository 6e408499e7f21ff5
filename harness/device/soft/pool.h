/* pool: the OS threads of the software device. One of them, the leader, takes command buffers from
 * a queue in order; the others help it with the threadgroups of each launch. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "checked.h"
#include "harness/base/err.h"

typedef struct soft_pool soft_pool;

/* One launch of a command buffer, ready to run. */
typedef struct {
    const soft_kernel *kernel;
    const char *name; /* for messages */
    bool flush;       /* f32 denormals count as 0 while it runs */
    soft_launch launch;
    const char *object;                 /* checked mode: the compiled kernel's file */
    const soft_bound *bound;            /* checked mode: its bindings, SOFT_BUFFERS of them */
    soft_dynamic dynamic[SOFT_DYNAMIC]; /* checked mode: its threadgroup memory */
    __attribute__((aligned(16))) uint8_t inline_bytes[SOFT_INLINE_BYTES];
} soft_item;

/* Checked mode has one thread, and findings. */
typedef enum { POOL_FAST, POOL_CHECKED, POOL_TRACED } pool_mode;
/* cpu_clock: the time of work is the CPU time of the threads, divided by their number. */
soft_pool *soft_pool_new(int threads, pool_mode mode, bool cpu_clock, err *e);
finding_list *soft_pool_get_findings(soft_pool *p);
void soft_pool_free(soft_pool *p); /* waits for what is queued */

/* Room for the items of a command buffer, to be filled and queued. */
typedef struct soft_job soft_job;
soft_job *soft_pool_new_job(soft_pool *p, size_t count);
soft_item *soft_job_get_item(soft_job *j, size_t i);
soft_bound *soft_job_get_bound(soft_job *j); /* SOFT_BUFFERS for each item, for checked mode */
uint64_t soft_pool_queue(soft_pool *p, soft_job *j); /* the id to wait for */

/* Waits for a queued job; gives the time its work took and when it was finished. */
bool soft_pool_wait(soft_pool *p, uint64_t id, uint64_t *work_ns, uint64_t *done_at_ns, err *e);
