/* suite: many cases in workers, in order: what `check` and `validate` do.
 *
 * A worker is the same verb with the hidden option --worker: it reads names of cases and answers
 * with results (harness/base/worker.h). */
#ifndef ASSAY_SUITE_H
#define ASSAY_SUITE_H

#include <stdio.h>

#include "check.h"
#include "test_case.h"

typedef struct {
    const char *verb;  /* what workers are started as */
    case_finder *find; /* what names mean, in workers */
    uint64_t seed, jobs;
    const char *device, *capture;
    double timeout_s;
    math_mode math;
} suite;

/* What became of one case. */
typedef struct {
    bool made; /* the check could be made: result holds; else error or failure says why */
    check_result result;
    err error;             /* what kept the check from being made: a compile error */
    const char *failure;   /* how its worker ended, or NULL */
    finding_list findings; /* of the device's validation, where it is on */
} case_report;

/* Each case when it is finished, in order. False with e set ends the run. */
typedef struct {
    bool (*deliver)(void *context, const test_case *c, const case_report *r, err *e);
    void *context;
} suite_listener;

/* The worker's side: serves until the other side hangs up. */
exit_code suite_serve(const suite *s, err *e);

/* What the device is, without keeping it open: workers have devices of their own. */
bool suite_find_device(const suite *s, device_facts *out, err *e);

/* Runs the cases. `findings` (may be NULL) gathers what validation found over all of them; each
 * one's kernel names the case. */
bool suite_run(const suite *s, const device_facts *f, const case_list *cases,
               const suite_listener *listener, finding_list *findings, err *e);

/* Plays the canaries that the device's validation should catch, in workers, and says on `out` how
 * many were: false if any was not, or could not be played. */
bool suite_play_canaries(const suite *s, const device_facts *f, FILE *out, err *e);

#endif
