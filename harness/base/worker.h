/* worker: tasks that run in other processes, so that one which crashes or hangs is one failed task
 * and not the end.
 *
 * A worker is this program, started again with the arguments of the plan; it takes many tasks, one
 * at a time. When it dies or keeps silent for too long, the task it had is failed and a fresh worker
 * continues with the next; of a group in which one task hung, no other is tried. Not a fork: GPU
 * drivers do not survive one. A task is a line of text and an answer is bytes; what they mean is up
 * to the caller, so every verb can use this. */
#ifndef ASSAY_WORKER_H
#define ASSAY_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* How a task ended: with an answer, or with a failure: "crashed: SIGSEGV", "timed out after 60 s".
 */
typedef struct {
    char failure[96]; /* "" if there is an answer */
    void *answer;
    size_t bytes;
} worker_outcome;

typedef struct {
    const char *const
        *arguments;           /* what the program is started with, after its name; ends in NULL */
    const char *const *tasks; /* without line ends */
    size_t count;
    int jobs;         /* workers at the same time */
    double timeout_s; /* silence after which a worker is given up */
    /* The outcomes, in the order of the tasks. False with e set ends the run. */
    bool (*deliver)(void *context, size_t task, const worker_outcome *outcome, err *e);
    /* Several times a second, with the number of tasks that have ended. */
    void (*advance)(void *context, size_t done);
    void *context;
} worker_plan;

/* Runs all tasks. Tasks with the same text up to the first '/' do not start together until one of
 * them has ended: what the first compiles, the others find. False with EXIT_INCONCLUSIVE when a
 * signal asked to stop; no worker is left behind in any case. */
bool worker_run(const worker_plan *plan, err *e);

/* In the started program: runs tasks until the other side hangs up. `run` returns an answer made
 * with malloc; it sets *retire when this process should not be trusted with another task. */
typedef void *(*worker_task)(void *context, const char *task, size_t *bytes, bool *retire);
bool worker_serve(worker_task run, void *context, err *e);

/* The protocol: a task is a line on WORKER_IN, its answer a frame and so many bytes on WORKER_OUT.
 */
enum { WORKER_IN = 3, WORKER_OUT = 4, WORKER_MAGIC = 0x41535359 };

typedef struct {
    uint32_t magic;
    uint32_t retire;
    uint64_t bytes;
} worker_frame;

#endif
