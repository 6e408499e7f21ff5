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
} stats;

/* NaN in every field but the counts when there is no sample. The samples keep their order. */
stats stats_compute(const double *samples, size_t count);

/* Quantile q (0 to 1) of ascending samples without NaN; NaN if there are none. */
double stats_get_quantile(const double *ascending, size_t count, double q);

#endif
