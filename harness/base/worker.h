/* worker: tasks that run in other processes, so that a task that crashes or hangs fails alone.
 *
 * A worker is this program, started again with the arguments of the plan; it takes many tasks, one
 * at a time. When it dies or is silent for too long, its task fails and a fresh worker continues
 * with the next one. After a task has hung, other than in an oracle, no other of its group is
 * tried. Workers are not forks: GPU drivers do not survive one. A task is a line of text and an
 * answer is bytes; only the caller knows their meaning, so every verb can use this. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "os.h"
#include "progress.h"

/* How a task ended: with an answer, or with a failure such as "crashed: SIGSEGV" or "timed out
 * after 60 s". */
typedef struct {
    char failure[160]; /* "" if there is an answer */
    bool is_untried;   /* it was not run, because an earlier one of its group or file failed */
    void *answer;
    size_t bytes;
} worker_outcome;

/* Which other tasks need not be tried. */
typedef enum { WORKER_NO_OTHERS, WORKER_GROUP, WORKER_FILE } worker_scope;

/* Why an answer can have the wrong size. */
#define WORKER_OTHER_BUILD                                                                         \
    "the worker is a different build of assay: was it rebuilt during the run?"

typedef struct {
    const char *const *arguments; /* of the program, without its name; ends in NULL */
    const char *const *tasks;     /* without line ends */
    const char *const *files;     /* of each task, for `give_up`; NULL: none has one */
    size_t count;
    int jobs;         /* workers at the same time */
    double timeout_s; /* silence after which a worker is ended */
    /* The outcomes, in the order of the tasks. False with e set ends the run. */
    bool (*deliver)(void *context, size_t task, const worker_outcome *outcome, err *e);
    /* NULL, or: is there any use in trying the other tasks after this answer? `why` says why not. A
     * file is given up only by the first of its tasks, so that what is run does not depend on which
     * worker is faster; a later one gives up its group. */
    worker_scope (*give_up)(void *context, size_t task, const worker_outcome *outcome, char *why,
                            size_t size);
    void *context;
    progress *progress; /* NULL, or kept up to date, and hidden whenever something is delivered */
} worker_plan;

/* Runs all tasks. Of the tasks with the same text up to the first '/' (a group), one runs alone
 * first, so that the others find compiled what it compiled; so does one of each file, so that a
 * file that does not compile is compiled once. False with EXIT_INTERRUPTED when a signal asked to
 * stop. No worker is left running in any case. */
bool worker_run(const worker_plan *plan, err *e);
/* One worker per CPU that this process may use, but not more than `most`. */
int worker_count_jobs(int most);

/* In the started program: runs tasks until the other side hangs up. `run` returns an answer made
 * with malloc; it sets *retire when this process should not be trusted with another task. */
typedef void *(*worker_task)(void *context, const char *task, size_t *bytes, bool *retire);
bool worker_serve(worker_task run, void *context, err *e);
/* An answer of a struct and a text (NULL: none), which is freed; and the two of an answer: the text, or NULL with e set.
 * Both sides are the same program. */
void *worker_pack(const void *head, size_t head_bytes, memory_file *text, size_t *bytes);
const char *worker_unpack(const worker_outcome *o, void *head, size_t head_bytes, err *e);
/* Cuts a copy of a task at its tabs, the first count - 1 of them; false if there are fewer. */
bool worker_cut_task(char *text, char **fields, size_t count);

/* Tells the other side what the task is at, "" for nothing in particular, for its message if the
 * task ends here. The time-out counts from the last note, and a compiler has at least
 * WORKER_COMPILER_S: how long that takes is no fault of the kernel. Where no tasks are served it does
 * nothing. */
#define WORKER_ORACLE "the oracle"
#define WORKER_KERNEL "the kernel"
#define WORKER_COMPILER "the compiler"
#define WORKER_COMPILER_S 300
void worker_note(const char *what);
/* What follows WORKER_KERNEL and WORKER_ORACLE in notes from here on: how far the task has come; "": nothing. */
void worker_set_reached(const char *text);
/* The same for the place that it is at ("add.metal:12"), which is not a sign of life; the next note
 * takes it back. */
void worker_note_place(const char *place);
bool worker_is_served(void); /* does anyone hear it? */

/* The protocol: a task is a line on WORKER_IN; its answer is a frame, then its bytes, on
 * WORKER_OUT. Notes are frames of their own before it. */
enum {
    WORKER_IN = 3,
    WORKER_OUT = 4,
    WORKER_MAGIC = 0x41535359,
    WORKER_NOTE = 0x4153534E,
    WORKER_PLACE = 0x41535350,
    WORKER_FAULT = 2, /* of the machine: it retires, and its answer is the err */
    WORKER_NOTE_BYTES = 64
};

typedef struct {
    uint32_t magic;
    uint32_t retire;
    uint64_t bytes;
} worker_frame;
