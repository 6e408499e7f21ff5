/* stats: see stats.h. Owns the arithmetic on samples; knows nothing of where they come from. */
#include "stats.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "array.h"

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_sort(double *samples, size_t count) {
    qsort(samples, count, sizeof *samples, compare_doubles);
}

double stats_get_quantile(const double *ascending, size_t count, double q) {
    assert(q >= 0 && q <= 1);
    if (count == 0)
        return NAN;
    double at = q * (double)(count - 1);
    size_t low = (size_t)at;
    double low_value = ascending[low];
    double high_value = ascending[low + 1 < count ? low + 1 : low];
    if (low_value == high_value) /* also two infinities, whose difference is not a number */
        return low_value;
    return low_value + (high_value - low_value) * (at - (double)low);
}

double stats_get_median_iqr(const double *ascending, size_t count) {
    if (count < 5)
        return NAN;
    double half = 0.6745 * 0.5 / sqrt((double)count); /* of a binomial's normal approximation */
    return stats_get_quantile(ascending, count, 0.5 + half) -
           stats_get_quantile(ascending, count, 0.5 - half);
}

/* Overwrites the ascending samples by their distances from the median. */
static double find_mad(double *ascending, size_t count, double median) {
    for (size_t i = 0; i < count; i++)
        ascending[i] = ascending[i] == median ? 0 : fabs(ascending[i] - median);
    stats_sort(ascending, count);
    return stats_get_quantile(ascending, count, 0.5);
}

stats stats_compute(const double *samples, size_t count) {
    stats s = {0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    double *sorted = array_new(count + 1, sizeof *sorted);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (isnan(samples[i]))
            continue;
        sorted[s.count++] = samples[i];
        sum += samples[i];
    }
    if (s.count > 0) {
        stats_sort(sorted, s.count);
        s.min = sorted[0];
        s.max = sorted[s.count - 1];
        s.mean = sum / (double)s.count;
        s.q1 = stats_get_quantile(sorted, s.count, 0.25);
        s.median = stats_get_quantile(sorted, s.count, 0.5);
        s.q3 = stats_get_quantile(sorted, s.count, 0.75);
        s.p95 = stats_get_quantile(sorted, s.count, 0.95);
        s.mad = find_mad(sorted, s.count, s.median);
    }
    free(sorted);
    return s;
}
