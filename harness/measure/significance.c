#include "significance.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/stats.h"
#include "harness/check/fill.h"

enum { EXACT_MAX = 20, LEAST_FOR_MEMORY = 20 };
#define MUCH_MEMORY 3 /* samples in a row that say as much as one: something came and went */

static double *new_doubles(size_t count) {
    return array_new(count + 1, sizeof(double));
}

/* The bootstrap ----------------------------------------------------------------------------- */

static double find_side(double sample, double median) {
    return (sample > median) - (sample < median);
}

double significance_find_memory(const double *samples, size_t count) {
    if (count < LEAST_FOR_MEMORY)
        return 1;
    double median = stats_compute(samples, count).median, mean = 0, together = 0, alone = 0;
    for (size_t i = 0; i < count; i++)
        mean += find_side(samples[i], median) / (double)count;
    for (size_t i = 0; i < count; i++) {
        double here = find_side(samples[i], median) - mean;
        alone += here * here;
        together += i > 0 ? here * (find_side(samples[i - 1], median) - mean) : 0;
    }
    double agreement = alone > 0 ? together / alone : 0;
    if (agreement < 2 / sqrt((double)count)) /* as chance gives it */
        return 1;
    /* Of a series in which each sample keeps a part r of the one before. */
    double r = fmin(0.98, sin(1.5707963267948966 * agreement));
    return fmin((1 + r) / (1 - r), (double)count / 4);
}

/* Neighbours are drawn together in blocks of about the cube root of the count, which grows slowly
 * enough to leave many blocks, or as long as they resemble each other. */
static size_t choose_block(size_t count, double memory) {
    return (size_t)fmax(fmax(1, floor(cbrt((double)count) + 0.5)), memory > 1 ? 2 * memory : 1);
}

/* By how much an interval of so few independent values is wider than the bootstrap's: the quantile of
 * Student's t over that of the normal curve. */
static double find_widening(size_t count, double memory) {
    return memory > 1 ? exp(1.55 / fmax(1, (double)count / memory - 1)) : 1;
}

/* Positions of a resample of `count`: blocks that start anywhere and wrap around. */
static void draw_positions(rng *r, size_t count, double memory, size_t *at) {
    size_t block = choose_block(count, memory);
    for (size_t i = 0; i < count; i += block) {
        size_t start = rng_below(r, (uint32_t)count);
        for (size_t j = 0; j < block && i + j < count; j++)
            at[i + j] = (start + j) % count;
    }
}

static double find_median_at(const double *samples, const size_t *at, size_t count, double *room) {
    for (size_t i = 0; i < count; i++)
        room[i] = samples[at[i]];
    stats_sort(room, count);
    return stats_get_quantile(room, count, 0.5);
}

/* How far from the middle the normal curve leaves so much on both sides. */
static double find_normal_quantile(double level) {
    double low = 0, high = 40;
    for (int i = 0; i < 60; i++) {
        double z = (low + high) / 2;
        *(erfc(z / sqrt(2)) > level ? &low : &high) = z;
    }
    return high;
}

/* Of the logarithms; from the median distance, as wild samples should not decide. */
static double find_spread(const double *samples, size_t count) {
    stats s = stats_compute(samples, count);
    return 1.4826 * s.mad / s.median;
}

/* Of one sample per side, where a run says no more than that; else 0. */
static double find_least_reach(const double *a, size_t a_count, double a_memory, const double *b,
                               size_t b_count, double b_memory, double z) {
    if (fmax(a_memory, b_memory) < MUCH_MEMORY)
        return 0;
    return z * hypot(find_spread(a, a_count), find_spread(b, b_count));
}

typedef struct {
    const double *a, *b; /* b alone: the ratios of pairs */
    size_t a_count, b_count;
    double a_memory, b_memory;
    size_t *at;
    double *room;
} bootstrap;

static double draw_ratio(const bootstrap *d, rng *r) {
    draw_positions(r, d->b_count, d->b_memory, d->at);
    double median = find_median_at(d->b, d->at, d->b_count, d->room);
    if (!d->a)
        return median;
    draw_positions(r, d->a_count, d->a_memory, d->at);
    return median / find_median_at(d->a, d->at, d->a_count, d->room);
}

ratio_interval significance_find_ratio(const double *a, size_t a_count, const double *b,
                                       size_t b_count, bool paired, size_t rounds, double level,
                                       uint64_t seed) {
    assert(!paired || a_count == b_count);
    assert(a_count < UINT32_MAX && b_count < UINT32_MAX);
    ratio_interval out = {NAN, NAN, NAN};
    if (a_count == 0 || b_count == 0 || rounds == 0)
        return out;
    size_t most = a_count > b_count ? a_count : b_count;
    double *room = new_doubles(most), *drawn = new_doubles(rounds), *pairs = new_doubles(b_count);
    size_t *at = array_new(most, sizeof *at);
    for (size_t i = 0; paired && i < b_count; i++)
        pairs[i] = b[i] / a[i];
    bootstrap d = {paired ? NULL : a, paired ? pairs : b, a_count, b_count, 1, 1, at, room};
    d.b_memory = significance_find_memory(d.b, b_count);
    d.a_memory = paired ? d.b_memory : significance_find_memory(a, a_count);
    rng r = rng_new(seed, "bootstrap");
    for (size_t i = 0; i < rounds; i++)
        drawn[i] = draw_ratio(&d, &r);
    stats_sort(drawn, rounds);
    out.ratio = stats_compute(d.b, b_count).median;
    if (!paired)
        out.ratio /= stats_compute(a, a_count).median;
    /* Few draws lie where a strict level looks: the middle 95 percent are stretched to it. */
    double z = find_normal_quantile(level), least = 0, widening = z / find_normal_quantile(0.05);
    widening *= fmax(find_widening(a_count, d.a_memory), find_widening(b_count, d.b_memory));
    if (!paired)
        least = find_least_reach(a, a_count, d.a_memory, b, b_count, d.b_memory, z);
    double low = stats_get_quantile(drawn, rounds, 0.025),
           high = stats_get_quantile(drawn, rounds, 0.975);
    out.low = out.ratio * fmin(exp(-least), pow(fmin(1, low / out.ratio), widening));
    out.high = out.ratio * fmax(exp(least), pow(fmax(1, high / out.ratio), widening));
    free(at);
    free(pairs);
    free(drawn);
    free(room);
    return out;
}

/* Ranks ------------------------------------------------------------------------------------- */

typedef struct {
    double value;
    bool is_a;
} ranked;

static int compare_ranked(const void *x, const void *y) {
    double a = ((const ranked *)x)->value, b = ((const ranked *)y)->value;
    return (a > b) - (a < b);
}

/* The sum of the ranks of a, equal values sharing the mean of their ranks; and of t^3 - t over the
 * groups of equals, by which the variance shrinks. */
static double sum_ranks(const ranked *all, size_t count, double *ties) {
    double sum = 0;
    *ties = 0;
    for (size_t i = 0, end; i < count; i = end) {
        size_t of_a = 0;
        for (end = i; end < count && all[end].value == all[i].value; end++)
            of_a += all[end].is_a;
        double size = (double)(end - i);
        sum += (double)of_a * ((double)(i + 1 + end) / 2);
        *ties += size * size * size - size;
    }
    return sum;
}

/* The chance that U is at most u when n and m samples are shuffled: how many of the arrangements
 * have each U, by adding one sample at a time. Counts fit a double: 40 choose 20 is 1.4e11. */
static double find_exact_tail(size_t n, size_t m, double u) {
    size_t most = n * m;
    double *ways = array_new((n + 1) * (most + 1), sizeof *ways);
    /* ways[k][s]: choices of k ranks out of those seen whose sum is s above the smallest possible.
     */
    ways[0] = 1;
    for (size_t rank = 1; rank <= n + m; rank++)
        for (size_t k = rank < n ? rank : n; k >= 1; k--) {
            size_t shift = rank - k; /* what this rank adds as the k-th chosen */
            for (size_t s = shift; s <= most; s++)
                ways[k * (most + 1) + s] += ways[(k - 1) * (most + 1) + s - shift];
        }
    double below = 0, all = 0;
    for (size_t s = 0; s <= most; s++) {
        all += ways[n * (most + 1) + s];
        if ((double)s <= u)
            below += ways[n * (most + 1) + s];
    }
    free(ways);
    return below / all;
}

static double find_normal_p(double n, double m, double u, double ties, double memory) {
    double count = n + m, middle = n * m / 2;
    double variance = n * m / 12 * (count + 1 - ties / (count * (count - 1)));
    double distance = fabs(u - middle) - 0.5; /* continuity */
    if (!(variance > 0) || distance <= 0)
        return 1;
    return erfc(distance / sqrt(variance * memory) / sqrt(2));
}

static rank_test test_ranks(const double *a, size_t a_count, const double *b, size_t b_count,
                            double memory) {
    rank_test t = {.u = NAN, .p = NAN};
    if (a_count == 0 || b_count == 0)
        return t;
    size_t count = a_count + b_count;
    ranked *all = array_new(count, sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = (ranked){i < a_count ? a[i] : b[i - a_count], i < a_count};
    qsort(all, count, sizeof *all, compare_ranked);
    double ties, n = (double)a_count, m = (double)b_count;
    t.u = sum_ranks(all, count, &ties) - n * (n + 1) / 2;
    free(all);
    t.exact = memory == 1 && ties == 0 && a_count <= EXACT_MAX && b_count <= EXACT_MAX;
    t.p = t.exact ? fmin(1, 2 * find_exact_tail(a_count, b_count, fmin(t.u, n * m - t.u)))
                  : find_normal_p(n, m, t.u, ties, memory);
    return t;
}

rank_test significance_test_ranks(const double *a, size_t a_count, const double *b,
                                  size_t b_count) {
    return test_ranks(a, a_count, b, b_count, 1);
}

rank_test significance_test_series(const double *a, size_t a_count, const double *b,
                                   size_t b_count) {
    return test_ranks(
        a, a_count, b, b_count,
        fmax(significance_find_memory(a, a_count), significance_find_memory(b, b_count)));
}

/* Logarithms, because the chance of one of many sequences of signs is below what a double holds. */
static double find_coin_tail(size_t n, size_t heads) {
    double sum = 0;
    for (size_t k = 0; k <= heads; k++)
        sum += exp(lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) -
                   (double)n * log(2));
    return sum;
}

static double find_pair_memory(const double *a, const double *b, size_t count) {
    double *ratios = new_doubles(count);
    for (size_t i = 0; i < count; i++)
        ratios[i] = b[i] / a[i];
    double memory = significance_find_memory(ratios, count);
    free(ratios);
    return memory;
}

rank_test significance_test_pairs(const double *a, const double *b, size_t count) {
    size_t larger = 0, used = 0;
    for (size_t i = 0; i < count; i++) {
        larger += a[i] > b[i];
        used += a[i] != b[i];
    }
    size_t fewer = larger < used - larger ? larger : used - larger;
    double memory = find_pair_memory(a, b, count);
    double distance = fmax(0, (double)used / 2 - (double)fewer - 0.5);
    double p = memory > 1 ? erfc(distance / sqrt((double)used / 4 * memory) / sqrt(2))
                          : fmin(1, 2 * find_coin_tail(used, fewer));
    return (rank_test){.u = (double)larger, .p = count > 0 ? p : NAN, .exact = memory == 1};
}

/* Runs -------------------------------------------------------------------------------------- */

/* The incomplete beta function of x, a and 1/2, by Lentz's continued fraction. */
static double find_beta(double x, double a) {
    const double b = 0.5;
    if (x <= 0 || x >= 1)
        return x > 0;
    bool is_far = x > (a + 1) / (a + b + 2);
    double p = is_far ? b : a, q = is_far ? a : b, y = is_far ? 1 - x : x;
    double c = 1, d = 1 / (1 - (p + q) * y / (p + 1)), sum = d;
    for (int m = 1; m <= 300; m++) {
        double even = m * (q - m) * y / ((p + 2 * m - 1) * (p + 2 * m));
        double odd = -(p + m) * (p + q + m) * y / ((p + 2 * m) * (p + 2 * m + 1));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        sum *= c * d;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        sum *= c * d;
        if (fabs(c * d - 1) < 1e-14)
            break;
    }
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / p;
    return is_far ? 1 - front * sum : front * sum;
}

double significance_find_t_tail(double t, double freedom) {
    return find_beta(freedom / (freedom + t * t), freedom / 2);
}

static double find_t_quantile(double level, double freedom) {
    double low = 0, high = 1e6;
    for (int i = 0; i < 200; i++) {
        double t = (low + high) / 2;
        *(significance_find_t_tail(t, freedom) > level ? &low : &high) = t;
    }
    return high;
}

/* The mean of the logarithms of the runs' medians, their squared distances from it, and the mean of
 * the squared uncertainties that the samples within each run leave. */
static double sum_runs(const series *r, double *squares, double *within) {
    const double *samples = r->samples;
    double *room = new_doubles(r->runs), mean = 0;
    *squares = *within = 0;
    for (size_t i = 0; i < r->runs; samples += r->counts[i++]) {
        size_t count = r->counts[i];
        double deviation = 1.2533 * find_spread(samples, count) *
                           sqrt(significance_find_memory(samples, count) / (double)count);
        room[i] = log(stats_compute(samples, count).median);
        mean += room[i] / (double)r->runs;
        *within += deviation * deviation / (double)r->runs;
    }
    for (size_t i = 0; i < r->runs; i++)
        *squares += (room[i] - mean) * (room[i] - mean);
    free(room);
    return mean;
}

ratio_interval significance_compare_runs(const series *a, const series *b, double level,
                                         double *p) {
    assert(a->runs > 0 && b->runs > 0 && a->runs + b->runs > 2);
    double a_squares, b_squares, a_within, b_within, freedom = (double)(a->runs + b->runs) - 2;
    double difference = -sum_runs(a, &a_squares, &a_within) + sum_runs(b, &b_squares, &b_within);
    double variance = fmax((a_squares + b_squares) / freedom, (a_within + b_within) / 2);
    double error = sqrt(variance * (1 / (double)a->runs + 1 / (double)b->runs));
    double reach = error * find_t_quantile(level, freedom);
    *p = error > 0 ? significance_find_t_tail(difference / error, freedom) : difference == 0;
    return (ratio_interval){exp(difference), exp(difference - reach), exp(difference + reach)};
}

/* Many tests -------------------------------------------------------------------------------- */

void significance_correct(double *p, size_t count) {
    double *sorted = new_doubles(count);
    size_t tests = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(p[i]))
            sorted[tests++] = p[i];
    stats_sort(sorted, tests);
    for (size_t i = 0; i < count; i++) {
        if (isnan(p[i]))
            continue;
        double most = 0;
        for (size_t k = 0; k < tests && sorted[k] <= p[i]; k++)
            most = fmax(most, fmin(1, (double)(tests - k) * sorted[k]));
        p[i] = most;
    }
    free(sorted);
}
