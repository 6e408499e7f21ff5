/* doctor_steps: what `assay doctor` runs, as a table; and from it the steps for some devices. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

typedef enum {
    STEP_DEVICE = 1,   /* once for each device */
    STEP_LANGUAGE = 2, /* on Metal, once for each version of the language */
    STEP_OPENS = 4,    /* any failure is wrong; the device's other steps are not tried after it */
    STEP_TELLS = 8,    /* however it ends, nothing is wrong */
    STEP_MAY_BE_CUT = 16, /* it ends what hangs by itself; at its limit it is only slow */
    STEP_RISKY = 32,
} step_flags;

typedef struct {
    const char *name, *command;
    const char *quick; /* with --quick instead; NULL: the same */
    double expected_s, limit_s;
    unsigned flags;
    const char *meaning; /* of a failure: one sentence */
} doctor_row;

typedef struct {
    const doctor_row *row;
    char name[64];      /* "check metal" */
    char file[64];      /* "07-check-metal": its files, without their ends */
    const char *device; /* "" for none */
    char language[24];  /* an option of lint, or "" */
} doctor_step;

typedef struct {
    const char *const *devices;
    size_t device_count;
    const char *const *names; /* only these rows; none: all */
    size_t name_count;
    bool quick, risky;
} doctor_wish;

/* Allocates *out, which the caller frees; returns how many there are, or 0 with e set. Sets what the
 * commands of all steps know in the environment. */
size_t doctor_plan(const doctor_wish *wish, doctor_step **out, err *e);
