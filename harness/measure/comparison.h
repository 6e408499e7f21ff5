/* comparison: verdicts over many cases, of samples in memory or in result files. */
#pragma once

#include "results.h"
#include "verdict.h"

/* Samples of one clock, run after run. */
typedef struct {
    double *samples;
    size_t *runs; /* samples of each */
    size_t count, run_count;
    bool busy;      /* its time is that of a CPU which other programs took away */
    size_t suspect; /* runs whose labels say that something disturbed them */
} comparison_side;

typedef struct {
    char key[320];
    char note[240];      /* "source changed"; "" for nothing to say */
    bool is_same_source; /* interleaved: a busy machine has no difference to hide */
    verdict_case test;
    comparison_side base, now;
} comparison_row;

typedef struct {
    comparison_row *rows;
    size_t count;
} comparison_list;

/* A case without samples. */
comparison_row *comparison_add(comparison_list *l, const char *key);
void comparison_add_note(comparison_row *r, const char *text, const char *more);
/* The samples of a run; none if count is 0. `labels` are those of its row. */
void comparison_add_run(comparison_row *r, comparison_side *side, const timing_sample *samples,
                        size_t count, timing_clock clock, const char *labels);
/* How two rows, of files with these heads, differ: what changed and, as an obstacle to a verdict, that
 * they are of different devices, compilers or CPUs. */
void comparison_note_pair(comparison_row *c, const results_meta *base, const result_row *b,
                          const results_meta *now, const result_row *n);
void comparison_free(comparison_list *l);

/* Fills in the verdicts. */
void comparison_decide(comparison_list *l, double min_effect, uint64_t seed);

/* Cases of result files: NAME.csv with NAME.samples.csv beside it, or folders of such. If no folder is
 * given, all files of a side are runs of the same; else those of the same name are. Every case of
 * the base, then those that only the other side has; cases without a time are left out. */
bool comparison_read(const char *const *base, size_t base_count, const char *const *now,
                     size_t now_count, timing_clock clock, comparison_list *out, err *e);
