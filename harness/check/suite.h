/* suite: runs many cases in workers and delivers them in order: the engine of `check` and
 * `validate`.
 *
 * A worker is the same verb with the hidden option --worker: it reads names of cases and answers
 * with results (harness/base/worker.h). */
#pragma once

#include <stdio.h>

#include "check.h"

typedef struct {
    const char *const *arguments; /* that workers are started with, and of one its own */
    case_finder *find;            /* finds the case of a name, in workers */
    bool agx;                     /* --agx: warn.h compiles what is not in its cache */
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
