/* Tests of harness/base/stats on arrays whose answers are known. */
#include <greatest.h>
#include <math.h>

#include "harness/base/stats.h"

SUITE(stats_suite);

TEST median_of_an_odd_count_is_the_middle_sample(void) {
    const double samples[] = {5, 1, 3};
    stats s = stats_compute(samples, 3);
    ASSERT(s.median == 3);
    ASSERT(s.min == 1 && s.max == 5 && s.mean == 3 && s.count == 3);
    PASS();
}

TEST median_of_an_even_count_is_between_the_two_in_the_middle(void) {
    const double samples[] = {4, 1, 3, 2};
    ASSERT(stats_compute(samples, 4).median == 2.5);
    PASS();
}

TEST quartiles_interpolate_linearly(void) {
    const double samples[] = {1, 2, 3, 4};
    stats s = stats_compute(samples, 4);
    ASSERT(s.q1 == 1.75);
    ASSERT(s.q3 == 3.25);
    ASSERT(s.iqr == 1.5);
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

TEST one_sample_is_every_quantile(void) {
    const double sample = 7;
    stats s = stats_compute(&sample, 1);
    ASSERT(s.min == 7 && s.q1 == 7 && s.median == 7 && s.q3 == 7 && s.p95 == 7 && s.max == 7);
    ASSERT(s.iqr == 0);
    PASS();
}

TEST nan_samples_are_counted_and_left_out(void) {
    const double samples[] = {NAN, 2, NAN, 1, 3};
    stats s = stats_compute(samples, 5);
    ASSERT_EQ_FMT((size_t)2, s.dropped, "%zu");
    ASSERT_EQ_FMT((size_t)3, s.count, "%zu");
    ASSERT(s.median == 2 && s.mean == 2);
    PASS();
}

TEST no_samples_give_nan_and_not_zero(void) {
    stats s = stats_compute(NULL, 0);
    ASSERT(isnan(s.median) && isnan(s.min) && isnan(s.mean) && isnan(s.iqr) && s.count == 0);
    const double nans[] = {NAN, NAN};
    s = stats_compute(nans, 2);
    ASSERT(isnan(s.median) && isnan(s.p95) && s.dropped == 2);
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
    RUN_TEST(median_of_an_odd_count_is_the_middle_sample);
    RUN_TEST(median_of_an_even_count_is_between_the_two_in_the_middle);
    RUN_TEST(quartiles_interpolate_linearly);
    RUN_TEST(p95_of_0_to_100_is_95);
    RUN_TEST(one_sample_is_every_quantile);
    RUN_TEST(nan_samples_are_counted_and_left_out);
    RUN_TEST(no_samples_give_nan_and_not_zero);
    RUN_TEST(infinite_samples_do_not_make_nan);
    RUN_TEST(samples_keep_their_order);
}
