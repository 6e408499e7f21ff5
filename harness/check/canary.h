/* canary: kernels with one planted bug each, which a validation engine must catch before its word
 * on other kernels is worth anything. */
#pragma once

#include "harness/device/tape.h"

/* Where values are traced to their birth, kernels are not optimised: what is found by the optimiser's
 * knowledge of sizes, or made by it, is not there. */
typedef enum { CANARY_ANY, CANARY_OPTIMISED, CANARY_TRACED } canary_build;

typedef struct {
    const char *kernel;
    finding_class what; /* what must be found, at the line marked "bug" */
    bool on_metal;      /* also by Metal's validation, which does not always give a line */
    const char *tool;   /* of compute-sanitizer that finds it; NULL: none does */
    oracle_fn oracle; /* NULL, or nothing is to be found but a wrong output: this is what it should
                           be, and what safe math makes it, and fast math must not */
    canary_build build;
    int since; /* the version of MSL that has what it takes; 0: every one */
} canary;

extern const canary canaries[];
extern const size_t canary_count;

/* Was it found where it stands? If not, the message says what was. has_lines: every finding has a
 * line; else one may be missing. */
bool canary_judge(const canary *c, const finding_list *found, bool has_lines, char *message,
                  size_t size);

/* Does the device's validation claim to catch it, and has its version of MSL what it takes? */
bool canary_is_for(const canary *c, const device_facts *f);

/* The file that all of them are in, on a device whose validation is on. */
library *canary_new_library(device *d, err *e);

/* Plays one. *caught: the right class at the right line, or a wrong output under fast math alone.
 * message says what was found instead. */
bool canary_play(library *lib, const canary *c, bool *caught, char *message, size_t size, err *e);
