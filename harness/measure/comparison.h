/* comparison: is a case slower than it was? Verdicts over samples in memory or in result files.
 *
 * Compares the samples of a case from two measurements. What must be true for each verdict, with a
 * smallest effect of m (3 percent: smaller changes do not matter):
 *
 *   slower     the ratio of medians is above 1 + m, its 99 percent interval is above 1, and a test
 *              agrees after Holm's correction over all cases
 *   faster     the same in the other direction
 *   same       the whole interval is between 1 / (1 + m) and 1 + m, and the machine was not busy
 *              while it timed two different kernels
 *   ambiguous  none of these: too few samples, or too much noise to tell
 *   missing    timed in the base but not now
 *   new        timed now but not in the base
 *
 * Interleaved samples are compared pair by pair (the median of their ratios, a sign test). With
 * several runs on a side, runs are the unit (Student's t over the medians of runs). One run per side
 * is compared by medians and a Mann-Whitney test. A small difference can be certain and still be
 * `same`. */
#pragma once

#include <stdint.h>

#include "results.h"
#include "significance.h"

typedef enum {
    VERDICT_SAME,
    VERDICT_FASTER,
    VERDICT_SLOWER,
    VERDICT_AMBIGUOUS,
    VERDICT_MISSING,
    VERDICT_NEW,
    VERDICT_COUNT
} verdict_kind;

enum { VERDICT_MIN_SAMPLES = 5, VERDICT_BOOTSTRAPS = 1000 };
#define VERDICT_LEVEL 0.01 /* of a false alarm among all cases */

/* One case: its samples in the order they were taken; count 0 where it has no time. */
typedef struct {
    series base, now;
    bool paired;  /* interleaved: sample i of both at the same moment */
    size_t looks; /* how often it may be looked at while samples are added; 0: once */
    /* paired: other programs took the CPU away, which adds to both and hides a difference */
    bool busy;
    const char *obstacle; /* why the two cannot be compared (another device), or NULL */
    /* filled by verdict_decide */
    double base_median, now_median;
    ratio_interval interval;
    rank_test ranks; /* of runs: p is that of Student's t, u is not known */
    double p;        /* corrected over all cases */
    verdict_kind verdict;
    const char *reason; /* in words */
} verdict_case;

/* min_effect: 0.03 is 3 percent. The seed draws the bootstrap. */
void verdict_decide(verdict_case *cases, size_t count, double min_effect, uint64_t seed);

const char *verdict_get_name(verdict_kind v);

/* One sentence with the numbers and the rule that decided. */
void verdict_explain(const verdict_case *c, double min_effect, char *text, size_t size);

/* Many cases ------------------------------------------------------------------------------------ */

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
    size_t count, room;
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
