/* verdict: is a case slower than it was?
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
#include <stdio.h>

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
    const double *base, *now;
    size_t base_count, now_count;
    /* Samples of each run, if a side has several; NULL: one run. */
    const size_t *base_runs, *now_runs;
    size_t base_run_count, now_run_count;
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
} verdict_case;

/* min_effect: 0.03 is 3 percent. The seed draws the bootstrap. */
void verdict_decide(verdict_case *cases, size_t count, double min_effect, uint64_t seed);

const char *verdict_get_name(verdict_kind v);

/* One sentence with the numbers and the rule that decided. */
void verdict_explain(const verdict_case *c, double min_effect, char *text, size_t size);
