/* sensitivity: what verdicts of `bench --baseline` and `compare` are worth here. Every size of
 * slowdown is planted (planted.h) and compared many times. */
#include <math.h>
#include <stdio.h>

#include "experiment.h"
#include "planted.h"

EXPERIMENT(
    sensitivity, .order = 150,
    .question = "How small a slowdown does an interleaved comparison find?",
    .claim = "none was published",
    .how = "compute_fma against itself with more rounds, whose cost is measured first; verdicts as "
           "those of bench --baseline FOLDER: 3 % smallest effect, ambiguous ones timed again");

enum { SIZES = 6, TRIALS = 12, QUICK_TRIALS = 4 };
static const double sizes[SIZES] = {0, 0.01, 0.02, 0.03, 0.05, 0.1};

static void put(lab *l, sheet *s, measurement cases[2], double planted_pct, double true_pct,
                int trial, const verdict_case *c) {
    for (int i = 0; i < 2; i++) {
        char variant[32];
        snprintf(variant, sizeof variant, i ? "slower" : "base");
        snprintf(cases[i].key, sizeof cases[i].key, "%g%%/%d/%s", planted_pct, trial + 1, variant);
        sheet_add_variant(s, variant);
        lab_put(l, s, &cases[i]);
        if (i == 0)
            continue;
        sheet_put(s, "wanted_pct", planted_pct);
        sheet_put(s, "planted_pct", true_pct);
        sheet_put(s, "trial", trial + 1);
        sheet_put_text(s, "verdict", verdict_get_name(c->verdict));
        sheet_put(s, "ratio", c->interval.ratio);
        sheet_put(s, "ratio_low", c->interval.low);
        sheet_put(s, "ratio_high", c->interval.high);
    }
}

static bool run(lab *l, sheet *s, err *e) {
    static const double again_s[LEVEL_COUNT] = {6, 0.6, 0.001};
    const planted_options o = {.again_s = again_s[lab_get_level(l)], .min_effect = 0.03};
    planted p;
    int trials = (int)lab_choose(l, TRIALS, QUICK_TRIALS);
    bool ok = planted_calibrate(l, &p, e);
    for (int t = 0; ok && t < trials; t++)
        for (int i = 0; ok && i < SIZES; i++) {
            measurement cases[2] = {{.regime = TIMING_CHAINED}};
            verdict_case c;
            double size;
            if ((ok = planted_compare(l, &p, sizes[i], &o, cases, &c, &size, e)))
                put(l, s, cases, 100 * sizes[i], 100 * size, t, &c);
            lab_close_cases(cases, 2);
        }
    return ok;
}

/* Conclusions --------------------------------------------------------------------------------- */

/* 95 percent, by Wilson: also of 0 of 12 and of 12 of 12. */
static void find_interval(double hits, double n, double *low, double *high) {
    const double z = 1.96;
    double middle = (hits + z * z / 2) / (n + z * z);
    double reach = z * sqrt(hits * (n - hits) / n + z * z / 4) / (n + z * z);
    *low = 100 * fmax(0, middle - reach);
    *high = 100 * fmin(1, middle + reach);
}

typedef struct {
    double trials, slower, same, other; /* other: faster */
    double planted_pct;                 /* mean */
    size_t first;                       /* row */
} tally;

static tally count(const sheet *s, double wanted) {
    tally t = {.first = SIZE_MAX};
    for (size_t r = 0; r < sheet_count_rows(s); r++) {
        if (!(fabs(sheet_get(s, r, "wanted_pct") - wanted) < 1e-9))
            continue;
        t.first = t.first == SIZE_MAX ? r : t.first;
        t.trials++;
        t.slower += sheet_is(s, r, "verdict", "slower", NULL);
        t.same += sheet_is(s, r, "verdict", "same", NULL);
        t.other += sheet_is(s, r, "verdict", "faster", NULL);
        t.planted_pct += sheet_get(s, r, "planted_pct");
    }
    t.planted_pct /= t.trials;
    return t;
}

static void conclude(sheet *s) {
    char text[200] = "";
    size_t used = 0;
    double false_ones = 0, none = 0, reliable = NAN;
    for (int i = SIZES - 1; i >= 0; i--) {
        double wanted = 100 * sizes[i], low, high;
        tally t = count(s, wanted);
        char name[32];
        if (t.trials == 0)
            continue;
        find_interval(t.slower, t.trials, &low, &high);
        sheet_put_at(s, t.first, "trials", t.trials);
        sheet_put_at(s, t.first, "slower_pct", 100 * t.slower / t.trials);
        sheet_put_at(s, t.first, "slower_low", low);
        sheet_put_at(s, t.first, "slower_high", high);
        sheet_put_at(s, t.first, "same_pct", 100 * t.same / t.trials);
        if (i == 0) {
            false_ones = t.slower + t.other;
            none = t.trials;
            sheet_add_metric(s, "false_pct", 100 * false_ones / none, "%");
            continue;
        }
        snprintf(name, sizeof name, "found_at_%g_pct", wanted);
        sheet_add_metric(s, name, 100 * t.slower / t.trials, "%");
        if (t.slower >= 0.9 * t.trials)
            reliable = t.planted_pct;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.1f %% in %.0f of %.0f",
                                 used ? ", " : "", t.planted_pct, t.slower, t.trials);
    }
    sheet_add_metric(s, "smallest_found_pct", reliable, "%");
    sheet_conclude(s, "Planted slowdowns are called slower: %s.", text);
    sheet_conclude(
        s,
        "With nothing planted, %.0f of %.0f comparisons are called slower or faster; the "
        "smallest effect that counts is 3 %%.",
        false_ones, none);
}
