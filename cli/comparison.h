/* comparison: verdicts over many cases, printed at the end of `compare` and `bench --baseline`. */
#ifndef ASSAY_COMPARISON_H
#define ASSAY_COMPARISON_H

#include "harness/measure/results.h"
#include "harness/measure/verdict.h"

typedef struct {
    char key[320];
    char note[160]; /* "source changed"; "" for nothing to say */
    verdict_case test;
    double *base, *now; /* owned: what test points to */
} comparison_row;

typedef struct {
    comparison_row *rows;
    size_t count;
} comparison_list;

/* Samples of one clock of both sides; either may be NULL with count 0. */
comparison_row *comparison_add(comparison_list *l, const char *key, const timing_sample *base,
                               size_t base_count, const timing_sample *now, size_t now_count,
                               timing_clock clock);
/* One run per side that was not interleaved: if the labels of either say that it was disturbed, the
 * two cannot be told apart from that. */
void comparison_doubt(comparison_row *r, const char *base_labels, const char *now_labels);
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
