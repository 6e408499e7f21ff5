/* sandbox: takes from the calling process what a kernel does not need, for good.
 *
 * Files: it may read what is below one folder and nothing else (Landlock). System calls: memory, signals
 * to itself, waiting, and reading and writing what is open already (seccomp). No other process, no
 * network, no new thread. A call that is not on the list ends the process with SIGSYS.
 *
 * On systems without one of them the rest still holds; on macOS there is none. */
#pragma once

#include <stdbool.h>

typedef struct {
    bool has_files, has_calls; /* what the system could do */
} sandbox_state;

/* In this order: files while the process has one thread, calls when it has all it needs. */
bool sandbox_close_files(const char *readable);
/* Descriptors come from `in` alone, and only `out` and stderr can be written to. */
bool sandbox_close_calls(int in, int out);

/* The number of the call that ended the process, kept where the parent can read it. */
void sandbox_note_calls(volatile int *number);
