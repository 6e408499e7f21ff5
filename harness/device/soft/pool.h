/* pool: the OS threads that run kernels. The caller leads; the others help it with the threadgroups of
 * each launch. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "checked.h"
#include "counted.h"
#include "harness/base/err.h"

typedef struct soft_pool soft_pool;

/* A loaded kernel. */
typedef struct soft_image {
    const soft_kernel *kernel; /* NULL: the place is free */
    void *handle;
    const char *sites;     /* of one that is counted: its table */
    bool has_atomics;      /* of one that is checked */
    char name[128];        /* for messages */
    char object[PATH_MAX]; /* the file it was loaded from */
} soft_image;

/* One launch of a command buffer, ready to run. */
typedef struct soft_item {
    uint32_t image;    /* which of the loaded kernels */
    bool flush;        /* f32 denormals count as 0 while it runs */
    uint32_t every;    /* of this many threadgroups, one runs */
    uint64_t only;     /* runs this one alone, counted from 1; 0: all of them */
    uintptr_t watched; /* checked mode reports who stores here last */
    size_t watched_bytes;
    soft_launch launch;
    const soft_bound *bound;            /* checked mode: its bindings, SOFT_BUFFERS of them */
    soft_dynamic dynamic[SOFT_DYNAMIC]; /* checked mode: its threadgroup memory */
    __attribute__((aligned(16))) uint8_t inline_bytes[SOFT_INLINE_BYTES];
} soft_item;

/* Checked mode has one thread, and findings; so has counting, and rows. */
typedef enum { POOL_FAST, POOL_CHECKED, POOL_TRACED, POOL_COUNTED } pool_mode;
/* cpu_clock: the time of work is the CPU time of the threads, divided by their number. */
soft_pool *soft_pool_new(int threads, pool_mode mode, bool cpu_clock, err *e);
finding_list *soft_pool_get_findings(soft_pool *p);
/* Of the last launch; none if nothing is counted. */
const counted_row *soft_pool_get_counts(const soft_pool *p, size_t *count, uint32_t *bytes);
void soft_pool_free(soft_pool *p);

/* For handlers of signals: is this the stack pointer of a fiber? And: a signal for the threads other
 * than the caller. */
bool soft_pool_has_fiber(const soft_pool *p, uintptr_t sp);
void soft_pool_signal_helpers(const soft_pool *p, int number);

/* Runs the launches of a command buffer and gives the time that took. *running is the one at work;
 * problem is "" when all went well. */
uint64_t soft_pool_run(soft_pool *p, const soft_item *items, size_t count, const soft_image *images,
                       volatile int *running, char problem[256]);
