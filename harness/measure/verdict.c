#include "verdict.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/base/stats.h"

const char *verdict_get_name(verdict_kind v) {
    static const char *const names[VERDICT_COUNT] = {"same",      "faster",  "slower",
                                                     "ambiguous", "missing", "new"};
    return names[v];
}

static bool has_enough(const verdict_case *c) {
    return c->base_count >= VERDICT_MIN_SAMPLES && c->now_count >= VERDICT_MIN_SAMPLES;
}

/* A ratio needs times above 0: a clock that is too coarse gives others. */
static bool has_zero(const double *times, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!(times[i] > 0))
            return true;
    return false;
}

static bool has_runs(const verdict_case *c) {
    return c->base_run_count > 1 || c->now_run_count > 1;
}

/* Samples are looked at again as they are added: each look has its share of the level. */
static double find_level(const verdict_case *c) {
    return VERDICT_LEVEL / (double)(c->looks > 1 ? c->looks : 1);
}

static void measure_runs(verdict_case *c) {
    run_set base = {c->base, c->base_runs, c->base_run_count},
            now = {c->now, c->now_runs, c->now_run_count};
    if (base.runs < 2)
        base = (run_set){c->base, &c->base_count, 1};
    if (now.runs < 2)
        now = (run_set){c->now, &c->now_count, 1};
    c->interval = significance_compare_runs(&base, &now, find_level(c), &c->ranks.p);
}

static void measure(verdict_case *c, uint64_t seed) {
    if (!c->obstacle && (has_zero(c->base, c->base_count) || has_zero(c->now, c->now_count)))
        c->obstacle = "a sample is 0: the clock is too coarse for it";
    c->base_median = stats_compute(c->base, c->base_count).median;
    c->now_median = stats_compute(c->now, c->now_count).median;
    c->ranks = (rank_test){.u = NAN, .p = NAN};
    c->interval = (ratio_interval){NAN, NAN, NAN};
    if (has_zero(c->base, c->base_count) || has_zero(c->now, c->now_count))
        return;
    if (has_runs(c) && has_enough(c)) {
        measure_runs(c);
        return;
    }
    c->interval = significance_find_ratio(c->base, c->base_count, c->now, c->now_count, c->paired,
                                          VERDICT_BOOTSTRAPS, find_level(c), seed);
    if (has_enough(c) && !c->obstacle)
        c->ranks = c->paired
                       ? significance_test_pairs(c->now, c->base, c->base_count)
                       : significance_test_series(c->now, c->now_count, c->base, c->base_count);
}

static verdict_kind choose(const verdict_case *c, double min_effect) {
    const ratio_interval *i = &c->interval;
    double most = 1 + min_effect, least = 1 / most;
    if (c->now_count == 0)
        return VERDICT_MISSING;
    if (c->base_count == 0 && !c->obstacle)
        return VERDICT_NEW;
    if (!has_enough(c) || c->obstacle)
        return VERDICT_AMBIGUOUS;
    if (i->low >= least && i->high <= most)
        return c->busy ? VERDICT_AMBIGUOUS : VERDICT_SAME;
    if (i->ratio > most && i->low > 1 && c->p < find_level(c))
        return VERDICT_SLOWER;
    if (i->ratio < least && i->high < 1 && c->p < find_level(c))
        return VERDICT_FASTER;
    return VERDICT_AMBIGUOUS;
}

void verdict_decide(verdict_case *cases, size_t count, double min_effect, uint64_t seed) {
    assert(min_effect > 0);
    double *p = array_new(count + 1, sizeof *p);
    for (size_t i = 0; i < count; i++) {
        measure(&cases[i], seed);
        p[i] = cases[i].ranks.p;
    }
    significance_correct(p, count);
    for (size_t i = 0; i < count; i++) {
        cases[i].p = p[i];
        cases[i].verdict = choose(&cases[i], min_effect);
    }
    free(p);
}

static const char *find_reason(const verdict_case *c, double min_effect) {
    const ratio_interval *i = &c->interval;
    switch (c->verdict) {
    case VERDICT_SAME:
        return "the whole interval is within the smallest effect";
    case VERDICT_SLOWER:
    case VERDICT_FASTER:
        return "beyond the smallest effect, the interval is clear of 1, and the test agrees";
    default:
        break;
    }
    if (c->obstacle)
        return c->obstacle;
    if (!has_enough(c))
        return "there are fewer than 5 samples on one side";
    if (i->low >= 1 / (1 + min_effect) && i->high <= 1 + min_effect)
        return "within the smallest effect, but the machine was busy, which hides differences";
    if (i->ratio <= 1 + min_effect && i->ratio >= 1 / (1 + min_effect))
        return "the interval reaches beyond the smallest effect: more samples or runs are needed";
    return i->low <= 1 && i->high >= 1
               ? "the interval contains 1: more samples or runs are needed"
               : "the test does not agree, corrected for the number of cases";
}

void verdict_explain(const verdict_case *c, double min_effect, char *text, size_t size) {
    if (c->verdict == VERDICT_MISSING || c->verdict == VERDICT_NEW) {
        snprintf(text, size,
                 c->verdict == VERDICT_NEW ? "new: not timed in the base"
                                           : "missing: timed in the base but not here");
        return;
    }
    if (isnan(c->interval.ratio)) {
        snprintf(text, size, "%s: %s", verdict_get_name(c->verdict), find_reason(c, min_effect));
        return;
    }
    char test[80], base[32], now[32];
    if (has_runs(c))
        snprintf(test, sizeof test, "Student's t over %zu and %zu runs: p %.2g",
                 c->base_run_count > 1 ? c->base_run_count : 1,
                 c->now_run_count > 1 ? c->now_run_count : 1, c->ranks.p);
    else
        snprintf(test, sizeof test, "%s p %.2g (%s)",
                 c->paired ? "interleaved: sign test" : "Mann-Whitney", c->ranks.p,
                 c->ranks.exact ? "exact" : "normal");
    snprintf(text, size,
             "%s: median %s (n %zu) to %s (n %zu), ratio %.4f, %g%% interval %.4f to "
             "%.4f; %s, %.2g after Holm; smallest effect %g%%: %s",
             verdict_get_name(c->verdict), format_time(c->base_median, base, sizeof base),
             c->base_count, format_time(c->now_median, now, sizeof now), c->now_count,
             c->interval.ratio, 100 - 100 * find_level(c), c->interval.low, c->interval.high, test,
             c->p, min_effect * 100, find_reason(c, min_effect));
}
