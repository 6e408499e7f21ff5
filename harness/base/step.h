/* step: a program that runs to its end or to a limit, with all that it prints in a file.
 *
 * It leads a process group of its own. At its limit, or when a signal asks this process to stop, the
 * group is asked to end (SIGTERM), so that it can end its workers and remove its files, and is
 * killed a few seconds later. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "progress.h"

typedef struct {
    const char *const *argv; /* the program, along PATH, and its arguments; ends in NULL */
    const char *log;         /* the file that gets stdout and stderr */
    double limit_s;
    uint64_t limit_bytes; /* of the file; more ends the program, too */
    progress *progress;   /* kept up to date meanwhile; NULL: none */
} step;

typedef struct {
    int status;      /* the exit status, or 128 + signal */
    bool is_late;    /* it was ended at its limit of seconds */
    bool is_profuse; /* it was ended at its limit of bytes */
    double seconds;
} step_outcome;

/* False if it could not be started, or with EXIT_INTERRUPTED when os_stop_signal was set; nothing
 * is left running in any case. */
bool step_run(const step *s, step_outcome *out, err *e);
