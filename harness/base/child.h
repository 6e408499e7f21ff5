/* child: the way to run another program: started, limited, read, waited for and stopped.
 *
 * child_run and its short forms run a program to its end. Who talks to one meanwhile (worker.c) starts it
 * with pipes of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "err.h"
#include "progress.h"

/* Programs ----------------------------------------------------------------------------------------- */

typedef struct {
    double seconds; /* on the wall; 0: no limit */
    unsigned
        memory_mb; /* 0: no limit. Else the files that it writes, and the CPU time that is left of
                            the budget below, limit it too, where the system can */
    size_t output_bytes; /* 0: no limit */
    /* It leads a process group that is ended with it: at a limit, or when a signal asks this process to
     * stop, the group is asked to end (SIGTERM), so that it can remove its files, and is killed a few
     * seconds later. Else it is killed alone, and gets the terminal's signals itself. */
    bool leads_group;
    progress *progress; /* kept up to date meanwhile; NULL: none */
} child_limits;

typedef struct {
    int status;      /* the exit status, or 128 + signal */
    bool is_late;    /* it was ended at its limit of seconds */
    bool is_profuse; /* it was ended at its limit of output */
    double seconds;
} child_end;

/* *output gets stdout and stderr together, also of a program that was ended, NUL-terminated (the caller
 * frees it; output may be NULL). False if it could not be started, or with EXIT_INTERRUPTED when
 * os_stop_signal was set and it leads a group. */
bool child_run_within(const char *const *argv, const child_limits *limits, char **output,
                      child_end *end, err *e);
/* The same without limits; and with a compiler's: a program that is late is an error then. A file larger
 * than CHILD_FILE_MB ends it with SIGXFSZ. */
bool child_run(const char *const *argv, char **output, int *status, err *e);
bool child_run_for(const char *const *argv, unsigned seconds, char **output, int *status, err *e);
enum { CHILD_MB = 4096, CHILD_FILE_MB = 64 };

/* From here on all programs that are run with a limit of memory share this much CPU time. When it is used
 * up they are killed, or not started, with this error. */
#define CHILD_NO_BUDGET                                                                            \
    "compiling it takes more CPU time than a kernel may use (see ASSAY_COMPILE_SECONDS)"
void child_set_budget(double seconds);

/* Those between the two share CHILD_CPU_S of it, or ASSAY_COMPILE_SECONDS; one alone has as much. */
enum { CHILD_CPU_S = 20 };
double child_begin_compile(void);
void child_end_compile(double spare); /* what the other returned */

/* Processes ---------------------------------------------------------------------------------------- */

typedef struct {
    pid_t pid; /* 0: none */
    bool leads_group;
} child;

/* Both ends above the first `reserved` numbers, and closed in every other child. */
bool child_make_pipe(int ends[2], int reserved, err *e);
/* files: what it gets as descriptors 0, 1, 2 and so on; -1: /dev/null. */
bool child_start(child *c, const char *const *argv, const int *files, size_t count,
                 bool leads_group, err *e);
bool child_has_ended(const child *c); /* it is not reaped: its number stays its own */
int child_wait(child *c);             /* until it ends by itself: its wait status */
/* Stops the child and its group, after at most grace_ms to end by itself, and reaps it: its wait status. */
int child_stop(child *c, int grace_ms);
int child_get_status(int wait_status); /* the exit status, or 128 + signal */

/* The exit status of a process in which a sanitizer found a fault: one of ours, never a kernel's. */
#if defined(ASSAY_SANITIZED)
enum { CHILD_FAULT = 86 };
#else
enum { CHILD_FAULT = -1 };
#endif
