/* gate: numbers that must not grow, compared with those of an earlier run. */
#pragma once

#include <stddef.h>

#include "harness/base/err.h"

typedef struct {
    const char *baseline; /* what it is compared with, as the user named it */
    double threshold;     /* by how much a number may grow, in percent */
    size_t compared, grown;
} gate;

/* Prints a number that grew. One that is not known on one side (NaN) is not compared. */
void gate_compare(gate *g, const char *name, const char *what, double was, double now);
/* How many were compared and grew, and what that means. things: "cases", where there were none. */
exit_code gate_end(const gate *g, const char *things, err *e);
