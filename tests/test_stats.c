/* Tests of harness/base/stats on arrays whose answers are known. */
#include <greatest.h>
#include <math.h>

#include "harness/base/stats.h"

SUITE(stats_suite);

/* Quartiles interpolate linearly. */
TEST quantiles_are_as_worked_by_hand(void) {
    static const struct {
        size_t count;
        double samples[4], min, q1, median, q3, max, mean;
    } rows[] = {{3, {5, 1, 3}, 1, 2, 3, 4, 5, 3},
                {4, {4, 1, 3, 2}, 1, 1.75, 2.5, 3.25, 4, 2.5},
                {1, {7}, 7, 7, 7, 7, 7, 7}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stats s = stats_compute(rows[i].samples, rows[i].count);
        ASSERT_EQ(rows[i].count, s.count);
        ASSERT(s.min == rows[i].min && s.q1 == rows[i].q1 && s.median == rows[i].median);
        ASSERT(s.q3 == rows[i].q3 && s.max == rows[i].max && s.mean == rows[i].mean);
        ASSERT(s.count > 1 || s.p95 == 7);
    }
    PASS();
}

TEST p95_of_0_to_100_is_95(void) {
    double samples[101];
    for (int i = 0; i <= 100; i++)
        samples[i] = 100 - i;
    stats s = stats_compute(samples, 101);
    ASSERT(s.p95 == 95);
    ASSERT(s.q1 == 25 && s.median == 50 && s.q3 == 75 && s.mean == 50);
    PASS();
}

TEST nan_samples_are_counted_and_left_out(void) {
    const double samples[] = {NAN, 2, NAN, 1, 3};
    stats s = stats_compute(samples, 5);
    ASSERT_EQ_FMT((size_t)3, s.count, "%zu");
    ASSERT(s.median == 2 && s.mean == 2);
    PASS();
}

TEST no_samples_give_nan_and_not_zero(void) {
    stats s = stats_compute(NULL, 0);
    ASSERT(isnan(s.median) && isnan(s.min) && isnan(s.mean) && s.count == 0);
    const double nans[] = {NAN, NAN};
    s = stats_compute(nans, 2);
    ASSERT(isnan(s.median) && isnan(s.p95) && s.count == 0);
    PASS();
}

TEST infinite_samples_do_not_make_nan(void) {
    const double samples[] = {1, INFINITY, INFINITY, INFINITY};
    stats s = stats_compute(samples, 4);
    ASSERT(isinf(s.median) && s.min == 1);
    PASS();
}

TEST samples_keep_their_order(void) {
    const double samples[] = {3, 1, 2};
    stats_compute(samples, 3);
    ASSERT(samples[0] == 3 && samples[1] == 1 && samples[2] == 2);
    PASS();
}

SUITE(stats_suite) {
    RUN_TEST(quantiles_are_as_worked_by_hand);
    RUN_TEST(p95_of_0_to_100_is_95);
    RUN_TEST(nan_samples_are_counted_and_left_out);
    RUN_TEST(no_samples_give_nan_and_not_zero);
    RUN_TEST(infinite_samples_do_not_make_nan);
    RUN_TEST(samples_keep_their_order);
}
