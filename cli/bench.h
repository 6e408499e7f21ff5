/* bench: cases timed one after the other in a worker, the roof beside each.
 *
 * A worker is `assay bench --worker`, as in suite.h: it checks a case, measures the roof of its
 * bytes, times it, checks it again, and answers with a row and its samples. One worker at a time:
 * nothing else of ours runs while something is timed. */
#ifndef ASSAY_BENCH_H
#define ASSAY_BENCH_H

#include "bench_cases.h"
#include "experiments/roof.h"
#include "harness/measure/results.h"

typedef struct {
    uint64_t seed;
    const char *device;
    const char *base_folder; /* kernels to time in turns with ours; NULL: none */
    double budget_s;
    double timeout_s;
    math_mode math;
} bench_settings;

/* What became of a case. */
typedef struct {
    result_row row;
    bool skipped;           /* the device cannot run it; row.message says why */
    timing_sample *samples; /* row.gpu.count of them */
    /* With a base: as many, taken in turns with them. */
    timing_sample *base_samples;
    size_t base_count;
    char base_hash[20];
} bench_outcome;

void bench_outcome_free(bench_outcome *o);

typedef struct {
    /* Before anything else: what the device was found to be. */
    bool (*start)(void *context, const roof_facts *f, err *e);
    /* Each case when it is finished, in order. Owns nothing of it. */
    bool (*deliver)(void *context, const bench_case *c, const bench_outcome *o, err *e);
    void *context;
} bench_listener;

bool bench_run(const bench_settings *s, const device_facts *f, const bench_list *cases,
               const bench_listener *listener, err *e);

/* The worker's side. */
exit_code bench_serve(const bench_settings *s, err *e);

#endif
