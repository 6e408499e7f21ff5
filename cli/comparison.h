/* comparison: verdicts over many cases, printed at the end of `compare` and `bench --baseline`. */
#ifndef ASSAY_COMPARISON_H
#define ASSAY_COMPARISON_H

#include "harness/measure/results.h"
#include "harness/measure/verdict.h"

/* Samples of one clock, run after run. */
typedef struct {
    double *samples;
    size_t *runs; /* samples of each */
    size_t count, run_count;
    size_t suspect; /* runs whose labels say that something disturbed them */
} comparison_side;

typedef struct {
    char key[320];
    char note[160]; /* "source changed"; "" for nothing to say */
    verdict_case test;
    comparison_side base, now;
} comparison_row;

typedef struct {
    comparison_row *rows;
    size_t count;
} comparison_list;

/* A case without samples. */
comparison_row *comparison_add(comparison_list *l, const char *key);
/* The samples of a run; none if count is 0. `labels` are those of its row, NULL if they do not matter
 * because the sides were interleaved. */
void comparison_add_run(comparison_row *r, comparison_side *side, const timing_sample *samples,
                        size_t count, timing_clock clock, const char *labels);
void comparison_free(comparison_list *l);

typedef struct {
    double min_effect; /* 0.03 */
    bool explain, markdown;
    uint64_t seed;
} comparison_options;

/* Decides, prints one row per case and a summary; EXIT_REGRESSION if one is slower, else
 * EXIT_INCONCLUSIVE if one is ambiguous or missing, else EXIT_OK. */
exit_code comparison_print(comparison_list *l, const comparison_options *o, FILE *out);

#endif
