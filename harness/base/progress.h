/* progress: one status line on a terminal with how much is done and about how long the rest takes.
 * Silent where the stream is not a terminal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
    FILE *out;
    const char *what; /* "cases" */
    size_t done, total;
    size_t uncounted; /* tasks at the start that are not among the total */
    uint64_t start_ns, drawn_ns;
    bool on, visible;
    /* Where it is known what comes: names and expected seconds of all (total), or NULL. */
    const char *const *names;
    const double *expected_s;
    uint64_t changed_ns; /* when `done` last grew */
} progress;

progress progress_new(FILE *out, const char *what, size_t total);
/* Both do nothing with NULL. */
void progress_update(progress *p, size_t done);
void progress_hide(progress *p); /* before something else is printed; the next update redraws */

/* "about 40 s left", "about 3 min left"; "" while nothing is known. */
void progress_get_estimate(const progress *p, uint64_t now_ns, char *text, size_t size);
