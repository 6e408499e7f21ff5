/* significance: do two sets of samples differ, by how much, and how certain is that?
 *
 * Owns the bootstrap, the rank test and the correction for many tests; knows nothing of kernels.
 * Samples keep their order: times taken one after the other resemble each other (a clock that
 * drifts, another program that runs for a while), so the bootstrap draws runs of neighbours, and
 * where two sets were interleaved it draws the same moments of both. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Samples in the order they were taken, one run after the other. */
typedef struct {
    const double *samples;
    size_t count;
    const size_t *counts; /* (runs): how many each run has, none of them 0 */
    size_t runs;          /* 0: as if it were one */
} series;
static inline series series_new(const double *samples, size_t count) {
    return (series){.samples = samples, .count = count};
}

/* b relative to a: 1.05 is 5 percent more. */
typedef struct {
    double ratio;
    double low, high; /* interval of the ratio; NaN without samples */
} ratio_interval;

/* The median of b over the median of a, with a percentile bootstrap of `rounds` draws (1000 is
 * plenty) from a seed; the interval misses the truth in one of 1 / level cases. `paired`: sample i of a and sample i of b were taken next to each other, and
 * counts are equal; the ratio is then the median of the ratios of the pairs, in which anything that
 * slowed both down cancels. Not paired, and if samples resemble their neighbours, a run says no more
 * than one of its samples: what came and went during it may have been there all the time in the
 * other. Samples are above 0 and none is NaN. */
ratio_interval significance_find_ratio(const double *a, size_t a_count, const double *b,
                                       size_t b_count, bool paired, size_t rounds, double level,
                                       uint64_t seed);

/* How many samples in a row say as much as one: 1 where neighbours do not resemble each other, and
 * where fewer than 20 samples cannot show that they do. From the sides of the median on which
 * neighbours lie, so that wild samples do not count for more than others. Intervals and tests of
 * series and pairs are widened by it. */
double significance_find_memory(const double *samples, size_t count);

/* Mann-Whitney U of a against b, two-sided. */
typedef struct {
    double u;   /* pairs in which a is the larger, ties by half */
    double p;   /* of a U at least as far from the middle, if both have the same distribution */
    bool exact; /* by counting (no ties, up to 20 samples per side), not by the normal curve */
} rank_test;

rank_test significance_test_ranks(const double *a, size_t a_count, const double *b, size_t b_count);
/* The same for samples in the order they were taken, which may resemble their neighbours. */
rank_test significance_test_series(const double *a, size_t a_count, const double *b,
                                   size_t b_count);

/* The sign test, two-sided and exact, for pairs: u is the number of pairs in which a is the larger;
 * equal pairs are left out. It ignores the size of a difference, so an interrupted sample weighs no
 * more than any other. */
rank_test significance_test_pairs(const double *a, const double *b, size_t count);

/* The same question with several runs per side, and runs as the unit: what differs between runs of the same program (where memory
 * lies, what else the machine does) counts, and a longer run counts no more than a short one. The
 * geometric mean of the medians of b's runs over that of a's, by Student's t with one variance for
 * both sides, which is no smaller than the samples within runs say. At least 3 runs in all; *p is
 * two-sided. */
ratio_interval significance_compare_runs(const series *a, const series *b, double level, double *p);

/* The chance that Student's t is at least that far from 0. */
double significance_find_t_tail(double t, double freedom);

/* Holm's correction: replaces each p by the one to compare with the wanted level, so that among all
 * of them together a false alarm is no likelier than that level. NaN stays NaN and is not counted.
 */
void significance_correct(double *p, size_t count);
