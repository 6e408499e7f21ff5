/* bench: cases timed one after the other in a worker (meter.h does the timing).
 *
 * A worker is `assay bench --worker`, as in suite.h: it answers each case with a row and its
 * samples. One worker at a time: nothing else of ours runs while something is timed. */
#pragma once

#include "harness/check/rival.h"
#include "meter.h"

enum { BENCH_OTHERS = 8 }; /* that are timed interleaved with a kernel of ours */

typedef struct {
    kernel_case timed;
    timing_regime regime;
    timing_cache cache;
    uint32_t rivals; /* a bit for each of the settings' that computes the same */
    char name[288];  /* "kernel/shape/input/regime/cache" */
} bench_case;

typedef struct {
    bench_case *items;
    size_t count, room, skipped;
    char first_skip[392]; /* the first one skipped, and why */
} bench_list;

typedef struct {
    uint64_t seed;
    const char *device;
    const char *const *arguments; /* that workers are started with */
    const char *base_folder;      /* an earlier version to time interleaved with ours; NULL: none */
    const rival *rivals;          /* or kernels of others: at most BENCH_OTHERS */
    size_t rival_count;
    double budget_s;
    double timeout_s;
    double min_effect; /* percent: the smallest change worth a verdict */
    double again_s;    /* with a base: how long a case that is ambiguous is timed again */
    bool fresh;        /* each play has inputs of its own (subject.h): the judge's way */
    uint64_t compared; /* for the worker: how many cases are compared */
} bench_settings;

/* What a case may be timed with: the base, or the rivals. */
static inline size_t bench_count_others(const bench_settings *s) {
    return s->base_folder ? 1 : s->rival_count;
}
static inline uint32_t bench_get_others(const bench_settings *s, const bench_case *c) {
    return s->base_folder ? 1 : c->rivals;
}

/* What the rows of rivals have in column `variant`. */
#define BENCH_RIVAL "third party"

/* Rounds, at most, after each of which interleaved samples are looked at: verdict_case.looks. */
enum { BENCH_LOOKS = 4 };

/* What was timed interleaved with a case, or could not be: the base, or one of the rivals. */
typedef struct {
    result_row row;
    bool skipped; /* not for such a case, or not in the base; row.message says why */
    const timing_sample *samples; /* row.gpu.count of them: as many as of the case, or none */
} bench_other;

/* The outcome of a case. */
typedef struct {
    result_row row;
    bool skipped;                 /* the device cannot run it; row.message says why */
    const timing_sample *samples; /* row.gpu.count of them */
    bench_other others[BENCH_OTHERS];
    size_t other_count;
} bench_outcome;

typedef struct {
    /* Before anything else: what the device was found to be; may be NULL. */
    bool (*start)(void *context, const roof_facts *f, err *e);
    /* Each case when it is finished, in order; those with others that are wrong come last. The callee owns nothing of
     * it. */
    bool (*deliver)(void *context, const bench_case *c, const bench_outcome *o, err *e);
    void *context;
} bench_listener;

bool bench_run(const bench_settings *s, const device_facts *f, const bench_list *cases,
               const bench_listener *listener, err *e);

/* An earlier version of the kernels. */
typedef struct {
    const op *const *ops; /* its own descriptions; NULL: it has none and is launched with ours */
    size_t op_count;
    const library_project *sources; /* of its own descriptions */
    err error;                      /* why it cannot be used; code EXIT_OK: it can */
} bench_base;

/* The worker's side: what the names of cases mean, and what the roof is measured with. */
typedef bool bench_finder(const char *name, bench_case *out, err *e);
exit_code bench_serve(const bench_settings *s, bench_finder *find, const bench_base *base,
                      const roof_kernels *k, err *e);
