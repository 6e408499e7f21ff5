/* stats: what a set of samples says. Quantiles interpolate linearly between the two nearest
 * samples, so that the median of two is their mean. */
#ifndef ASSAY_STATS_H
#define ASSAY_STATS_H

#include <stddef.h>

typedef struct {
    size_t count;   /* samples that are numbers */
    size_t dropped; /* samples that are NaN: counted, and in nothing else */
    double min, max, mean;
    double q1, median, q3, p95;
    double iqr; /* q3 - q1 */
    double mad; /* median distance from the median: a spread that a few wild samples cannot move */
} stats;

/* NaN in every field but the counts when there is no sample. The samples keep their order. */
stats stats_compute(const double *samples, size_t count);

/* Quantile q (0 to 1) of ascending samples without NaN; NaN if there are none. */
double stats_get_quantile(const double *ascending, size_t count, double q);

/* The interquartile range of the median itself: where another set of as many samples would have its
 * median, half of the time. From the ranks n/2 -+ 0.34 sqrt(n) of the ascending samples, whatever
 * their distribution is; it halves when there are four times as many. Taken for granted: samples do
 * not depend on each other. NaN for less than 5 samples. */
double stats_get_median_iqr(const double *ascending, size_t count);

/* Sorts samples in place. */
void stats_sort(double *samples, size_t count);

#endif
