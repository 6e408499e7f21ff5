/* Tests of harness/measure/significance, verdict and fit: on arrays worked by hand, and on times out of
 * models of noise, from seeds. No clock is read here. */
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "harness/base/stats.h"
#include "harness/check/fill.h"
#include "harness/measure/comparison.h"
#include "harness/measure/fit.h"

SUITE(significance_suite);

static bool is_near(double a, double b, double tolerance) {
    return fabs(a - b) <= tolerance;
}

/* Statistics -------------------------------------------------------------------------------- */

TEST mad_is_the_median_distance_from_the_median(void) {
    const double samples[] = {1, 1, 2, 2, 4, 6, 9}; /* median 2; distances 1 1 0 0 2 4 7 */
    ASSERT(stats_compute(samples, 7).mad == 1);
    PASS();
}

TEST iqr_of_the_median_shrinks_with_the_root_of_the_count(void) {
    double few[100], many[10000];
    for (int i = 0; i < 100; i++)
        few[i] = i / 100.0;
    for (int i = 0; i < 10000; i++)
        many[i] = i / 10000.0;
    /* Of a uniform distribution: 2 * 0.337 / sqrt(n). */
    ASSERT(is_near(stats_get_median_iqr(few, 100), 0.0674, 0.002));
    ASSERT(is_near(stats_get_median_iqr(many, 10000), 0.00674, 0.0002));
    ASSERT(isnan(stats_get_median_iqr(few, 4)));
    PASS();
}

/* Mann-Whitney ------------------------------------------------------------------------------ */

TEST mann_whitney_counts_small_sets_exactly(void) {
    const double low[] = {1, 2, 3}, high[] = {4, 5, 6};
    /* U is 0, the most extreme of the 20 arrangements on either side: p = 2/20. */
    rank_test t = significance_test_ranks(low, 3, high, 3);
    ASSERT(t.exact && t.u == 0);
    ASSERT(is_near(t.p, 0.1, 1e-12));
    /* {1, 2, 4} against {3, 5, 6}: U = 1; arrangements with U <= 1 are 2 of 20: p = 4/20. */
    const double a[] = {1, 2, 4}, b[] = {3, 5, 6};
    t = significance_test_ranks(a, 3, b, 3);
    ASSERT(t.u == 1);
    ASSERT(is_near(t.p, 0.2, 1e-12));
    PASS();
}

TEST mann_whitney_does_not_care_which_side_is_which(void) {
    const double a[] = {1, 7, 3, 9, 12}, b[] = {2, 4, 6, 8, 10, 11, 13};
    rank_test x = significance_test_ranks(a, 5, b, 7), y = significance_test_ranks(b, 7, a, 5);
    ASSERT(x.exact && x.u + y.u == 35);
    ASSERT(is_near(x.p, y.p, 1e-12));
    PASS();
}

TEST mann_whitney_shares_the_ranks_of_equals(void) {
    /* Ranks: 1 -> 1, 2 2 2 -> 3, 3 -> 5.5, 3 -> 5.5. a has 1, 3, 5.5: 9.5, so U = 3.5. */
    const double a[] = {1, 2, 3}, b[] = {2, 2, 3};
    rank_test t = significance_test_ranks(a, 3, b, 3);
    ASSERT(!t.exact && t.u == 3.5);
    /* Variance 9/12 * (7 - 30/30) = 4.5; z = (1 - 0.5) / sqrt(4.5). */
    ASSERT(is_near(t.p, erfc(0.5 / sqrt(4.5) / sqrt(2)), 1e-12));
    PASS();
}

TEST equal_sets_are_no_evidence(void) {
    const double a[] = {5, 5, 5, 5, 5}, none[] = {0};
    ASSERT(significance_test_ranks(a, 5, a, 5).p == 1);
    ASSERT(isnan(significance_test_ranks(a, 5, none, 0).p));
    PASS();
}

TEST counting_and_the_normal_curve_agree_at_20_samples(void) {
    double a[21], b[21];
    for (int i = 0; i < 21; i++) {
        a[i] = i < 20 ? i * 7 % 20 : i; /* in no order */
        b[i] = a[i] + 4.5;              /* shifted, no ties */
    }
    rank_test exact = significance_test_ranks(a, 20, b, 20);
    rank_test curve = significance_test_ranks(a, 21, b, 21);
    ASSERT(exact.exact && !curve.exact);
    ASSERT(exact.u == 120);
    ASSERT(is_near(exact.p, 0.030411256038764864, 1e-12)); /* by the recursion over U */
    ASSERT(is_near(exact.p, curve.p, 0.01));
    PASS();
}

TEST the_sign_test_counts_pairs(void) {
    const double a[] = {100, 100, 100, 100, 100}, b[] = {101, 102, 103, 104, 95};
    rank_test t = significance_test_pairs(a, b, 5);
    ASSERT(t.exact && t.u == 1);
    ASSERT(is_near(t.p, 2 * (1 + 5) / 32.0, 1e-12)); /* none or one of five */
    const double c[] = {101, 102, 103, 104, 900};
    ASSERT(is_near(significance_test_pairs(a, c, 5).p, 2 / 32.0, 1e-12));
    ASSERT(is_near(significance_test_pairs(c, a, 5).p, 2 / 32.0, 1e-12));
    ASSERT(significance_test_pairs(a, a, 5).p == 1);
    ASSERT(isnan(significance_test_pairs(a, b, 0).p));
    double many_a[1000], many_b[1000];
    for (int i = 0; i < 1000; i++) {
        many_a[i] = 100 + i;
        many_b[i] = many_a[i] * (i * 7 % 10 < 6 ? 1.01 : 0.1); /* 600 to 400 */
    }
    t = significance_test_pairs(many_a, many_b, 1000);
    ASSERT(t.u == 400);
    ASSERT(is_near(t.p * 1e10, 2.7285, 0.001)); /* twice the binomial tail */
    PASS();
}

/* Holm -------------------------------------------------------------------------------------- */

TEST holm_multiplies_the_smallest_most(void) {
    double p[] = {0.04, 0.01, NAN, 0.03}; /* sorted 0.01 * 3, 0.03 * 2, 0.04 * 1 but not less */
    significance_correct(p, 4);
    ASSERT(is_near(p[1], 0.03, 1e-12));
    ASSERT(is_near(p[3], 0.06, 1e-12));
    ASSERT(is_near(p[0], 0.06, 1e-12));
    ASSERT(isnan(p[2]));
    double large[] = {0.9, 0.8};
    significance_correct(large, 2);
    ASSERT(large[0] == 1 && large[1] == 1);
    PASS();
}

/* Models of noise --------------------------------------------------------------------------- */

enum { SAMPLES = 60 };

/* Times as machines give them: a floor, a skewed spread above it, and now and then an interruption
 * that takes much longer. */
static double draw_time(rng *r, double floor_ns) {
    double ns = floor_ns * (1 + 0.01 * exp(rng_normal(r)));
    return rng_uniform(r) < 0.03 ? ns * (1.3 + rng_uniform(r)) : ns;
}

/* The same with a slow wave in it that both sides share, as clocks that drift have. */
static void draw_pair(rng *r, double slowdown, double *a, double *b) {
    double wave = 0;
    for (int i = 0; i < SAMPLES; i++) {
        wave = 0.9 * wave + 0.01 * rng_normal(r);
        a[i] = draw_time(r, 100000) * (1 + wave);
        b[i] = draw_time(r, 100000 * slowdown) * (1 + wave);
    }
}

static size_t count_verdicts(double slowdown, bool paired, verdict_kind wanted) {
    static double a[SAMPLES], b[SAMPLES];
    size_t count = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        rng r = rng_new(seed, "times");
        if (paired)
            draw_pair(&r, slowdown, a, b);
        else
            for (int i = 0; i < SAMPLES; i++) {
                a[i] = draw_time(&r, 100000);
                b[i] = draw_time(&r, 100000 * slowdown);
            }
        verdict_case c = {
            .base = series_new(a, SAMPLES), .now = series_new(b, SAMPLES), .paired = paired};
        verdict_decide(&c, 1, 0.03, seed);
        count += c.verdict == wanted;
    }
    return count;
}

TEST a_against_a_is_the_same_in_at_least_95_of_100(void) {
    ASSERT(count_verdicts(1, false, VERDICT_SAME) >= 95);
    ASSERT(count_verdicts(1, true, VERDICT_SAME) >= 95);
    PASS();
}

TEST five_percent_more_is_called_slower(void) {
    ASSERT(count_verdicts(1.05, false, VERDICT_SLOWER) >= 95);
    ASSERT(count_verdicts(1.05, true, VERDICT_SLOWER) >= 95);
    ASSERT(count_verdicts(1 / 1.05, true, VERDICT_FASTER) >= 95);
    PASS();
}

/* Noise as beside a neighbour that comes and goes: each sample keeps nine tenths of what disturbed the
 * one before, and every run has an offset of its own. */
typedef struct {
    double keep, wave, offset;
} disturbed;

enum { RUN = 200, MOST_RUNS = 5 };

static void draw_run(rng *r, const disturbed *n, double ns, double *samples) {
    double scale = sqrt(1 - n->keep * n->keep), wave = n->wave * rng_normal(r);
    double offset = n->offset * rng_normal(r);
    for (int i = 0; i < RUN; i++) {
        wave = n->keep * wave + scale * n->wave * rng_normal(r);
        samples[i] = ns * exp(wave + offset) * (1 + 0.002 * exp(rng_normal(r)));
    }
}

/* How many of these comparisons say slower or faster? */
static size_t count_differences(const disturbed *n, size_t runs, double slowdown, size_t trials) {
    static double a[MOST_RUNS * RUN], b[MOST_RUNS * RUN];
    static const size_t counts[MOST_RUNS] = {RUN, RUN, RUN, RUN, RUN};
    size_t found = 0;
    for (uint64_t seed = 1; seed <= trials; seed++) {
        rng r = rng_new(seed, "runs");
        for (size_t i = 0; i < runs; i++) {
            draw_run(&r, n, 100000, a + i * RUN);
            draw_run(&r, n, 100000 * slowdown, b + i * RUN);
        }
        verdict_case c = {.base = {a, runs * RUN, counts, runs},
                          .now = {b, runs * RUN, counts, runs}};
        verdict_decide(&c, 1, 0.03, seed);
        found += c.verdict == VERDICT_SLOWER || c.verdict == VERDICT_FASTER;
    }
    return found;
}

TEST samples_that_resemble_their_neighbours_raise_no_false_alarm(void) {
    static double a[RUN];
    const disturbed waves = {.keep = 0.9, .wave = 0.07};
    rng r = rng_new(1, "memory");
    draw_run(&r, &waves, 100000, a);
    ASSERT(significance_find_memory(a, RUN) > 3);
    /* One run per side; by their samples alone one in four would be called different. */
    ASSERT(count_differences(&waves, 1, 1, 100) <= 1);
    ASSERT(count_differences(&waves, 1, 2, 20) >= 18);
    PASS();
}

TEST runs_that_differ_by_themselves_raise_no_false_alarm(void) {
    const disturbed both = {.keep = 0.9, .wave = 0.03, .offset = 0.03};
    for (size_t runs = 2; runs <= MOST_RUNS; runs++)
        ASSERT(count_differences(&both, runs, 1, 1000) <= 10);
    ASSERT(count_differences(&both, 5, 1.3, 200) >= 190);
    const disturbed quiet = {.keep = 0, .wave = 0.002, .offset = 0.003};
    ASSERT(count_differences(&quiet, 3, 1, 1000) <= 1);
    ASSERT(count_differences(&quiet, 3, 1.05, 200) >= 190);
    PASS();
}

TEST a_longer_run_counts_no_more_than_a_short_one(void) {
    static double a[340], b[6];
    const size_t a_counts[] = {300, 20, 20}, b_counts[] = {2, 2, 2};
    double p;
    for (int i = 0; i < 340; i++)
        a[i] = i < 300 ? 100 : i < 320 ? 110 : 121;
    for (int i = 0; i < 6; i++)
        b[i] = 110;
    series x = {a, 340, a_counts, 3}, y = {b, 6, b_counts, 3};
    ratio_interval r = significance_compare_runs(&x, &y, 0.05, &p);
    /* Logarithms: -l 0 l against 0 0 0, l = ln 1.1; variance l^2/2, error l sqrt(1/3); t(4) 2.776. */
    ASSERT(is_near(r.ratio, 1, 1e-12) && is_near(p, 1, 1e-12));
    ASSERT(is_near(log(r.high), log(1.1) * sqrt(1.0 / 3) * 2.776445, 1e-6));
    ASSERT(is_near(r.low * r.high, 1, 1e-12));
    PASS();
}

TEST students_t_has_the_tails_of_the_tables(void) {
    ASSERT(is_near(significance_find_t_tail(12.7062, 1), 0.05, 1e-6));
    ASSERT(is_near(significance_find_t_tail(9.92484, 2), 0.01, 1e-7));
    ASSERT(is_near(significance_find_t_tail(-2.776445, 4), 0.05, 1e-7));
    ASSERT(is_near(significance_find_t_tail(2.750, 30), 0.01, 1e-5));
    ASSERT(is_near(significance_find_t_tail(1.959964, 1e6), 0.05, 1e-5));
    ASSERT(is_near(significance_find_t_tail(0, 3), 1, 1e-12));
    PASS();
}

TEST thirty_percent_more_is_always_called_slower(void) {
    ASSERT_EQ_FMT((size_t)100, count_verdicts(1.3, false, VERDICT_SLOWER), "%zu");
    ASSERT_EQ_FMT((size_t)100, count_verdicts(1.3, true, VERDICT_SLOWER), "%zu");
    PASS();
}

TEST one_percent_more_is_below_the_smallest_effect(void) {
    ASSERT_EQ_FMT((size_t)0, count_verdicts(1.01, true, VERDICT_SLOWER), "%zu");
    PASS();
}

TEST many_equal_cases_raise_no_alarm(void) {
    enum { CASES = 200 };
    static double a[CASES][SAMPLES], b[CASES][SAMPLES];
    static verdict_case cases[CASES];
    rng r = rng_new(1, "many");
    for (int c = 0; c < CASES; c++) {
        for (int i = 0; i < SAMPLES; i++) {
            a[c][i] = 100000 * (1 + 0.2 * rng_uniform(&r)); /* noisy: plain tests would alarm */
            b[c][i] = 100000 * (1 + 0.2 * rng_uniform(&r));
        }
        cases[c] =
            (verdict_case){.base = series_new(a[c], SAMPLES), .now = series_new(b[c], SAMPLES)};
    }
    verdict_decide(cases, CASES, 0.001, 1);
    for (int c = 0; c < CASES; c++)
        ASSERT(cases[c].verdict != VERDICT_SLOWER && cases[c].verdict != VERDICT_FASTER);
    PASS();
}

TEST what_cannot_be_said_is_not_said(void) {
    const double few[] = {100, 101, 99}, many[] = {100, 101, 99, 100, 102, 98, 100};
    verdict_case c[] = {
        {.base = series_new(few, 3), .now = series_new(many, 7)},
        {.base = series_new(many, 7)},
        {.now = series_new(many, 7)},
        {.base = series_new(many, 7), .now = series_new(many, 7), .obstacle = "another device"},
        {.base = series_new(many, 7), .now = series_new(many, 7)},
        {.base = series_new(many, 7), .now = series_new(many, 7), .paired = true, .busy = true},
        {.now = series_new(many, 7), .obstacle = "the base cannot be timed"},
    };
    static const verdict_kind want[] = {VERDICT_AMBIGUOUS, VERDICT_MISSING, VERDICT_NEW,
                                        VERDICT_AMBIGUOUS, VERDICT_SAME,    VERDICT_AMBIGUOUS,
                                        VERDICT_AMBIGUOUS};
    static const char *const says[] = {"fewer than 5 samples",
                                       "missing",
                                       "new",
                                       "another device",
                                       "within the smallest effect",
                                       "the machine was busy",
                                       "the base cannot be timed"};
    verdict_decide(c, 7, 0.03, 1);
    for (int i = 0; i < 7; i++) {
        char text[640];
        verdict_explain(&c[i], 0.03, text, sizeof text);
        ASSERT_EQ_FMTm(text, (int)want[i], (int)c[i].verdict, "%d");
        ASSERTm(text, strstr(text, says[i]));
    }
    PASS();
}

TEST turns_cancel_what_both_sides_share(void) {
    static double a[SAMPLES], b[SAMPLES];
    rng r = rng_new(7, "wave");
    for (int i = 0; i < SAMPLES; i++) {
        double wave = 1 + 0.3 * sin(i * 0.2); /* 30 percent up and down, the same for both */
        a[i] = 100000 * wave * (1 + 0.001 * rng_uniform(&r));
        b[i] = 110000 * wave * (1 + 0.001 * rng_uniform(&r));
    }
    ratio_interval in_turns = significance_find_ratio(a, SAMPLES, b, SAMPLES, true, 1000, 0.05, 1);
    ratio_interval apart = significance_find_ratio(a, SAMPLES, b, SAMPLES, false, 1000, 0.05, 1);
    ASSERT(in_turns.low > 1.08 && in_turns.high < 1.12);
    ASSERT(apart.high - apart.low > 5 * (in_turns.high - in_turns.low));
    PASS();
}

/* Fits -------------------------------------------------------------------------------------- */

/* T(B) = submit + launch + stream + B * compute, as batch_scaling measures it: rows that are
 * submitted or chained, cold or warm. */
static size_t make_rows(const double *parts, double noise, uint64_t seed, double (*rows)[4],
                        double *times) {
    static const double batches[] = {1, 2, 4, 8, 16, 32};
    rng r = rng_new(seed, "fit");
    size_t count = 0;
    for (int b = 0; b < 6; b++)
        for (int submitted = 0; submitted < 2; submitted++)
            for (int cold = 0; cold < 2; cold++) {
                const double row[4] = {submitted, 1, cold, batches[b]};
                times[count] = 0;
                for (int i = 0; i < 4; i++) {
                    rows[count][i] = row[i];
                    times[count] += row[i] * parts[i];
                }
                times[count++] *= 1 + noise * rng_normal(&r);
            }
    return count;
}

TEST a_fit_recovers_the_parts_of_times_without_noise(void) {
    const double parts[4] = {100000, 1500, 8000, 2500};
    double rows[24][4], times[24];
    fit f;
    err e;
    ASSERT(fit_parts(&rows[0][0], times, make_rows(parts, 0, 1, rows, times), 4, &f, &e));
    for (int i = 0; i < 4; i++)
        ASSERT(is_near(f.value[i], parts[i], 1e-6 * parts[i]));
    ASSERT(f.relative_rms < 1e-9);
    PASS();
}

TEST a_fit_recovers_the_parts_of_noisy_times(void) {
    const double parts[4] = {100000, 1500, 8000, 2500};
    int near_submit = 0, near_compute = 0, near_stream = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        double rows[24][4], times[24];
        fit f;
        err e;
        ASSERT(fit_parts(&rows[0][0], times, make_rows(parts, 0.02, seed, rows, times), 4, &f, &e));
        near_submit += is_near(f.value[0], parts[0], 0.05 * parts[0]);
        near_compute += is_near(f.value[3], parts[3], 0.05 * parts[3]);
        near_stream += is_near(f.value[2], parts[2], 0.1 * parts[2]);
        ASSERT(f.relative_rms > 0.005 && f.relative_rms < 0.04);
    }
    ASSERT(near_submit >= 48 && near_compute >= 48 && near_stream >= 48);
    PASS();
}

TEST no_part_is_negative(void) {
    /* Falling times: a plain least squares would make the slope negative. */
    const double rows[4][2] = {{1, 1}, {1, 2}, {1, 3}, {1, 4}}, times[4] = {40, 35, 30, 28};
    fit f;
    err e;
    ASSERT(fit_parts(&rows[0][0], times, 4, 2, &f, &e));
    ASSERT(f.value[1] == 0 && f.value[0] > 27 && f.value[0] < 41);
    PASS();
}

TEST of_parts_that_rows_do_not_tell_apart_one_has_all(void) {
    /* The first two columns are equal: their sum is known. */
    const double rows[4][3] = {{1, 1, 1}, {1, 1, 2}, {1, 1, 4}, {1, 1, 8}};
    const double times[4] = {110, 120, 140, 180};
    fit f;
    err e;
    ASSERT(fit_parts(&rows[0][0], times, 4, 3, &f, &e));
    ASSERT((f.value[0] == 0) != (f.value[1] == 0));
    ASSERT(is_near(f.value[0] + f.value[1], 100, 1e-6) && is_near(f.value[2], 10, 1e-6));
    PASS();
}

TEST a_fit_of_too_little_or_of_nonsense_is_inconclusive(void) {
    const double rows[2][2] = {{1, 1}, {1, 2}}, times[2] = {1, NAN};
    fit f;
    err e;
    ASSERT(!fit_parts(&rows[0][0], times, 1, 2, &f, &e) && e.code == EXIT_INCONCLUSIVE);
    ASSERT(!fit_parts(&rows[0][0], times, 2, 2, &f, &e) && e.code == EXIT_INCONCLUSIVE);
    PASS();
}

SUITE(significance_suite) {
    RUN_TEST(mad_is_the_median_distance_from_the_median);
    RUN_TEST(iqr_of_the_median_shrinks_with_the_root_of_the_count);
    RUN_TEST(mann_whitney_counts_small_sets_exactly);
    RUN_TEST(mann_whitney_does_not_care_which_side_is_which);
    RUN_TEST(mann_whitney_shares_the_ranks_of_equals);
    RUN_TEST(equal_sets_are_no_evidence);
    RUN_TEST(counting_and_the_normal_curve_agree_at_20_samples);
    RUN_TEST(the_sign_test_counts_pairs);
    RUN_TEST(holm_multiplies_the_smallest_most);
    RUN_TEST(a_against_a_is_the_same_in_at_least_95_of_100);
    RUN_TEST(five_percent_more_is_called_slower);
    RUN_TEST(samples_that_resemble_their_neighbours_raise_no_false_alarm);
    RUN_TEST(runs_that_differ_by_themselves_raise_no_false_alarm);
    RUN_TEST(a_longer_run_counts_no_more_than_a_short_one);
    RUN_TEST(students_t_has_the_tails_of_the_tables);
    RUN_TEST(thirty_percent_more_is_always_called_slower);
    RUN_TEST(one_percent_more_is_below_the_smallest_effect);
    RUN_TEST(many_equal_cases_raise_no_alarm);
    RUN_TEST(what_cannot_be_said_is_not_said);
    RUN_TEST(turns_cancel_what_both_sides_share);
    RUN_TEST(a_fit_recovers_the_parts_of_times_without_noise);
    RUN_TEST(a_fit_recovers_the_parts_of_noisy_times);
    RUN_TEST(no_part_is_negative);
    RUN_TEST(of_parts_that_rows_do_not_tell_apart_one_has_all);
    RUN_TEST(a_fit_of_too_little_or_of_nonsense_is_inconclusive);
}
