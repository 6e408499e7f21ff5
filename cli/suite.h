/* suite: many cases in workers, one row each, in order: what `check` and `validate` do.
 *
 * The one surprise: a worker is the same verb with the hidden option --worker: it reads names of
 * cases and answers with results (harness/base/worker.h). */
#ifndef ASSAY_SUITE_H
#define ASSAY_SUITE_H

#include "cases.h"
#include "harness/base/csv.h"
#include "options.h"
#include "report.h"

typedef struct {
    const char *verb; /* what workers are started as */
    uint64_t seed, jobs;
    const char *csv, *device, *shapes, *input, *capture;
    axes_query axes;
    double timeout_s;
    bool quick, skipped, worker;
    math_mode math;
} suite;

/* Options that both verbs have, for their tables. */
/* clang-format off */
#define SUITE_OPTIONS(settings) \
    MATH_OPTION(&(settings).math, "safe"), \
    {"seed", OPTION_NUMBER, &(settings).seed, "N", "seed of the inputs (default 1)", 0, UINT64_MAX}, \
    {"shape", OPTION_TEXT, &(settings).shapes, "S,...", "only cases of these shapes, such as 3x576", 0, 0}, \
    AXES_OPTIONS((settings).axes), \
    {"input", OPTION_TEXT, &(settings).input, "D", \
     "only this input: uniform, normal, zeros, denormals, large", 0, 0}, \
    {"quick", OPTION_FLAG, &(settings).quick, NULL, \
     "of each kernel only the edge shapes, and one with every input", 0, 0}, \
    {"skipped", OPTION_FLAG, &(settings).skipped, NULL, \
     "also list the cases that are skipped, and why", 0, 0}, \
    {"device", OPTION_TEXT, &(settings).device, "D", \
     "soft, metal, cuda or auto (default ASSAY_DEVICE, else auto)", 0, 0}, \
    {"jobs", OPTION_NUMBER, &(settings).jobs, "N", \
     "workers at the same time (default: up to 8 on the software device, 1 on a GPU)", 1, 256}, \
    {"timeout", OPTION_SECONDS, &(settings).timeout_s, "S", \
     "seconds after which a case is given up (default 60)", 0, 0}, \
    {"worker", OPTION_FLAG, &(settings).worker, NULL, NULL, 0, 0}
/* clang-format on */

/* The worker's side: serves until the other side hangs up. */
exit_code suite_serve(const suite *s, err *e);

/* What the device is, without keeping it open: workers have devices of their own. */
bool suite_find_device(const suite *s, device_facts *out, err *e);

/* Runs the cases and adds each to the report. `findings` (may be NULL) gathers what validation
 * found over all of them; each row's kernel names the case. */
bool suite_run(const suite *s, const device_facts *f, const case_list *cases, report *r,
               finding_list *findings, err *e);

/* Plays the canaries that the device's validation should catch, in workers, and says how many were:
 * false if any was not, or could not be played. */
bool suite_play_canaries(const suite *s, const device_facts *f, err *e);

/* A CSV file with the metadata of a run. */
csv *suite_start_csv(const suite *s, const device_facts *f);

/* The same, for people. */
void suite_print_header(const suite *s, const device_facts *f);

#endif
