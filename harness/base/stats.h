/* stats: what a set of samples says. Quantiles interpolate linearly between the two nearest
 * samples, so that the median of two is their mean. */
#pragma once

#include <stddef.h>

typedef struct {
    size_t count; /* samples that are numbers: NaN is ignored */
    double min, max, mean;
    double q1, median, q3, p95;
    double mad; /* median distance from the median: a spread that ignores a few wild samples */
} stats;

/* NaN in every field but the count when there is no sample. The samples keep their order. */
stats stats_compute(const double *samples, size_t count);

/* Quantile q (0 to 1) of ascending samples without NaN; NaN if there are none. */
double stats_get_quantile(const double *ascending, size_t count, double q);

/* The interquartile range of the median itself: another set of the same size would have its median
 * in this range half of the time. From the ranks n/2 -+ 0.34 sqrt(n) of the ascending samples,
 * whatever their distribution is; it halves with four times as many samples. Assumes independent
 * samples. NaN for fewer than 5 samples. */
double stats_get_median_iqr(const double *ascending, size_t count);

/* Sorts samples in place. */
void stats_sort(double *samples, size_t count);
