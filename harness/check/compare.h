/* compare: does an output agree with the oracle?
 *
 * The verdict of an element is !(error <= tolerance), which NaN cannot pass. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/device/elem.h"
#include "harness/device/launch.h"

enum { COMPARE_SHOWN = 4 };

typedef struct {
    size_t index;
    double want, got, tolerance;
    bool unwritten; /* still holds the poison */
} bad_element;

typedef struct {
    size_t count, bad, nonfinite,
        unwritten; /* nonfinite: NaN or infinity where a finite value was expected */
    double max_abs, max_rel, max_ulp; /* over finite elements */
    double nmse;                      /* sum of squared errors over sum of squares */
    double margin;                    /* largest error / tolerance: above 1 is wrong */
    size_t worst;                     /* index of the largest error / tolerance */
    bad_element first[COMPARE_SHOWN];
    size_t shown;
} comparison;

/* The tolerance of one element; its definition explains how it is derived. */
double compare_get_tolerance(elem type, const expected *want, size_t i, bool flushes_denormals);

/* poisoned: the output held POISON_PATTERN before the launch, so an element that still does was
 * never written and is wrong even where NaN is expected. */
void compare_output(elem type, const expected *want, const void *got, bool poisoned,
                    bool flushes_denormals, comparison *out);
