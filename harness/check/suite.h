/* suite: runs many cases in workers and delivers them in order: the engine of `check` and
 * `validate`.
 *
 * A worker is the same verb with the hidden option --worker: it reads names of cases and answers
 * with results (harness/base/worker.h). */
#pragma once

#include <stdio.h>

#include "check.h"
#include "harness/base/csv.h"
#include "harness/device/finding.h"

typedef struct {
    const char *const *arguments; /* that workers are started with, and of one its own */
    case_finder *find;            /* finds the case of a name, in workers */
    bool agx;                     /* --agx: check.c compiles what is not in its cache */
    bool validates;               /* under the device's validation */
    uint64_t seed, jobs;
    const char *device, *capture;
    double timeout_s;
} suite;

/* The outcome of one case. */
typedef struct {
    bool made; /* the check was made: result is valid; else error or failure says why */
    check_result result;
    err error;             /* what kept the check from being made: a compile error */
    const char *failure;   /* how its worker ended, or NULL */
    bool is_untried;       /* failure says why: another case has shown that it would fail */
    finding_list findings; /* of the device's validation, where it is on */
} case_report;

/* Each case when it is finished, in order. False with e set ends the run. */
typedef struct {
    bool (*deliver)(void *context, const kernel_case *c, const case_report *r, err *e);
    void *context;
} suite_listener;

/* The worker's side: serves until the other side hangs up. */
exit_code suite_serve(const suite *s, err *e);

/* The facts of the device, without keeping it open: workers have devices of their own. */
bool suite_find_device(const suite *s, device_facts *out, err *e);

/* Runs the cases. `findings` (may be NULL) gathers what validation found over all of them; each
 * one's kernel names the case. */
bool suite_run(const suite *s, const case_list *cases, const suite_listener *listener,
               finding_list *findings, err *e);

/* Runs the canaries that the device's validation should catch, in workers, and prints to `out` how
 * many it caught: false if any was not, or could not be run. */
bool suite_play_canaries(const suite *s, const device_facts *f, FILE *out, err *e);

/* What a device's validation found, a row each: the first `most` of them, with the whole text below it, and how many
 * more there are. Prints nothing for an empty list. */
void findings_print(FILE *out, const finding_list *list, size_t most);
/* All of them, with a line of titles. */
void findings_add_csv(csv *file, const finding_list *list);

/* Canaries: kernels with one planted bug each, which a validation engine must catch before its word
 * on other kernels is worth anything. */

/* Where values are traced to their birth, kernels are not optimised: what is found by the optimiser's
 * knowledge of sizes, or made by it, is not there. */
typedef enum { CANARY_ANY, CANARY_OPTIMISED, CANARY_TRACED } canary_build;

typedef struct {
    const char *kernel;
    finding_class what; /* what must be found, at the line marked "bug" */
    const char *tool;   /* of compute-sanitizer that finds it; NULL: none does */
    bool on_metal;      /* also by Metal's validation, which does not always give a line */
    oracle_fn oracle; /* NULL, or nothing is to be found but a wrong output: this is what it should
                           be, and what safe math makes it, and fast math must not */
    canary_build build;
    int since; /* the version of MSL that has what it takes; 0: every one */
} canary;

extern const canary canaries[];
extern const size_t canary_count;

/* Does the device's validation claim to catch it, and has its version of MSL what it takes? */
bool canary_is_for(const canary *c, const device_facts *f);

/* The file that all of them are in, on a device whose validation is on. */
library *canary_new_library(device *d, err *e);

/* Plays one. *caught: the right class at the right line, or a wrong output under fast math alone.
 * message says what was found instead. */
bool canary_play(library *lib, const canary *c, bool *caught, char *message, size_t size, err *e);
