/* Tests of the checks, first half: outputs compared with expected values, with no device. Every
 * broken output must be refused. test_check.c is the second half, with kernels. */
#include <float.h>
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "harness/check/compare.h"
#include "harness/device/device.h"

SUITE(compare_suite);

enum { COUNT = 8 };

static double value[COUNT], scale[COUNT];
static float got[COUNT];

/* 1, 2, ... 8, expected and got. */
static expected make_right(void) {
    expected want = {.value = value, .scale = scale, .count = COUNT, .terms = 1, .roundings = 4};
    for (int i = 0; i < COUNT; i++) {
        value[i] = got[i] = (float)(i + 1);
        scale[i] = NAN;
    }
    return want;
}

static comparison compare(const expected *want) {
    comparison c;
    compare_output(ELEM_F32, want, got, true, false, &c);
    return c;
}

static float get_poison(void) {
    const uint16_t words[2] = {POISON_PATTERN, POISON_PATTERN};
    float f;
    memcpy(&f, words, sizeof f);
    return f;
}

TEST equal_values_pass_with_no_error(void) {
    expected want = make_right();
    comparison c = compare(&want);
    ASSERT(c.bad == 0 && c.count == COUNT && c.max_abs == 0 && c.nmse == 0 && c.margin == 0);
    PASS();
}

TEST a_nan_is_refused_and_counted(void) {
    expected want = make_right();
    got[3] = NAN;
    comparison c = compare(&want);
    ASSERT(c.bad == 1 && c.nonfinite == 1 && c.worst == 3 && c.first[0].index == 3);
    ASSERT(isinf(c.margin) && !c.first[0].unwritten);
    PASS();
}

TEST an_infinity_is_refused_and_counted(void) {
    expected want = make_right();
    got[3] = INFINITY;
    comparison c = compare(&want);
    ASSERT(c.bad == 1 && c.nonfinite == 1 && c.worst == 3);
    PASS();
}

TEST a_nan_says_nothing_where_magnitudes_do_not_fit_a_float(void) {
    expected want = make_right();
    got[3] = NAN;
    got[4] = INFINITY;
    got[5] = get_poison();
    scale[3] = scale[4] = scale[5] = 1e39;
    comparison c = compare(&want);
    ASSERT(c.bad == 1 && c.unwritten == 1 && c.first[0].index == 5);
    scale[3] = 1e38;
    c = compare(&want);
    ASSERT(c.bad == 2 && c.first[0].index == 3);
    PASS();
}

TEST poison_is_refused_as_never_written(void) {
    expected want = make_right();
    got[6] = got[7] = get_poison();
    comparison c = compare(&want);
    ASSERT(c.bad == 2 && c.unwritten == 2 && c.first[0].index == 6 && c.first[0].unwritten);
    PASS();
}

TEST poison_is_refused_where_nan_is_expected(void) {
    expected want = make_right();
    value[2] = NAN;
    got[2] = get_poison();
    comparison c = compare(&want);
    ASSERT(c.bad == 1 && c.unwritten == 1);
    compare_output(ELEM_F32, &want, got, false, false, &c); /* unless it was there before */
    ASSERT(c.bad == 0);
    PASS();
}

TEST an_expected_nan_must_be_a_nan(void) {
    expected want = make_right();
    value[2] = NAN;
    ASSERT(compare(&want).bad == 1);
    got[2] = NAN;
    ASSERT(compare(&want).bad == 0);
    PASS();
}

TEST infinities_must_match_in_sign(void) {
    expected want = make_right();
    value[2] = INFINITY;
    ASSERT(compare(&want).bad == 1);
    got[2] = -INFINITY;
    ASSERT(compare(&want).bad == 1);
    got[2] = FLT_MAX;
    ASSERT(compare(&want).bad == 1);
    got[2] = INFINITY;
    ASSERT(compare(&want).bad == 0);
    PASS();
}

TEST a_value_too_large_for_the_type_is_its_infinity(void) {
    expected want = make_right();
    value[2] = 1e39;
    got[2] = INFINITY;
    ASSERT(compare(&want).bad == 0);
    got[2] = -INFINITY;
    ASSERT(compare(&want).bad == 1);
    PASS();
}

TEST an_error_just_above_the_tolerance_is_refused(void) {
    expected want = make_right();
    double tolerance = compare_get_tolerance(ELEM_F32, &want, 0, false);
    ASSERT(tolerance > 0 && tolerance < 1e-6);
    value[0] = 1 + 0.99 * tolerance;
    ASSERT(compare(&want).bad == 0);
    value[0] = 1 + 1.01 * tolerance;
    comparison c = compare(&want);
    ASSERT(c.bad == 1 && c.margin > 1 && c.worst == 0);
    PASS();
}

TEST the_tolerance_grows_with_terms_and_scale(void) {
    expected want = make_right();
    double plain = compare_get_tolerance(ELEM_F32, &want, 0, false);
    double u = ldexp(1, -24);
    ASSERT(fabs(plain - (u * (4 + 2) + u)) < 1e-12);
    want.terms = 100;
    ASSERT(fabs(compare_get_tolerance(ELEM_F32, &want, 0, false) - (u * (4 + 20) + u)) < 1e-12);
    scale[0] = 1000;
    double cancelled = compare_get_tolerance(ELEM_F32, &want, 0, false);
    ASSERT(fabs(cancelled - (u * (4 + 20) * 1000 + u)) < 1e-9);
    PASS();
}

TEST the_tolerance_of_half_is_that_of_its_store(void) {
    expected want = make_right();
    double tolerance = compare_get_tolerance(ELEM_F16, &want, 0, false);
    ASSERT(tolerance > ldexp(1, -11) && tolerance < ldexp(1.01, -11));
    PASS();
}

TEST flushing_devices_may_lose_denormals_and_others_may_not(void) {
    expected want = make_right();
    value[0] = 1e-39;
    got[0] = 0;
    ASSERT(compare(&want).bad == 1);
    comparison c;
    compare_output(ELEM_F32, &want, got, true, true, &c);
    ASSERT(c.bad == 0);
    PASS();
}

TEST exact_tells_minus_zero_from_zero(void) {
    expected want = make_right();
    value[0] = -0.0;
    got[0] = 0.0f;
    ASSERT(compare(&want).bad == 0);
    want.exact = true;
    comparison c = compare(&want);
    ASSERT(c.bad == 1 && c.first[0].index == 0 && isinf(c.margin));
    got[0] = -0.0f;
    ASSERT(compare(&want).bad == 0);
    PASS();
}

TEST exact_ignores_the_payload_of_nan(void) {
    expected want = make_right();
    want.exact = true;
    value[0] = NAN;
    const uint32_t bits = 0x7FC12345;
    memcpy(&got[0], &bits, sizeof bits);
    ASSERT(compare(&want).bad == 0);
    PASS();
}

TEST exact_refuses_one_ulp(void) {
    expected want = make_right();
    want.exact = true;
    got[5] = nextafterf(got[5], 100);
    comparison c = compare(&want);
    ASSERT(c.bad == 1 && c.max_ulp == 1);
    PASS();
}

TEST integers_compare_exactly(void) {
    const uint32_t indices[3] = {7, 0, 4000000000u};
    double wanted[3] = {7, 0, 4000000000.0};
    expected want = {.value = wanted, .count = 3, .terms = 1, .roundings = 4, .exact = true};
    comparison c;
    compare_output(ELEM_U32, &want, indices, true, false, &c);
    ASSERT(c.bad == 0);
    wanted[2] = 3999999999.0;
    compare_output(ELEM_U32, &want, indices, true, false, &c);
    ASSERT(c.bad == 1 && c.max_abs == 1 && c.worst == 2);
    PASS();
}

TEST unwritten_bytes_are_seen_at_odd_places(void) {
    const uint8_t bytes[3] = {1, POISON_PATTERN >> 8, POISON_PATTERN & 255};
    double wanted[3] = {1, 2, 3};
    expected want = {.value = wanted, .count = 3, .terms = 1, .roundings = 4, .exact = true};
    comparison c;
    compare_output(ELEM_U8, &want, bytes, true, false, &c);
    ASSERT(c.bad == 2 && c.unwritten == 2);
    PASS();
}

TEST the_numbers_of_a_comparison_are_right(void) {
    expected want = make_right();
    got[3] = 5; /* expected 4 */
    comparison c = compare(&want);
    ASSERT(c.max_abs == 1 && c.max_rel == 0.25);
    ASSERT(c.max_ulp == ldexp(1, 21)); /* neighbours of 4 are 2^-21 apart */
    ASSERT(c.nmse == 1.0 / 204);       /* 1 + 4 + ... + 64 */
    ASSERT(c.shown == 1 && c.first[0].want == 4 && c.first[0].got == 5);
    PASS();
}

TEST only_the_first_bad_elements_are_kept(void) {
    expected want = make_right();
    for (int i = 1; i < COUNT; i++)
        got[i] = -1;
    comparison c = compare(&want);
    ASSERT(c.bad == 7 && c.shown == COMPARE_SHOWN && c.first[3].index == 4);
    PASS();
}

SUITE(compare_suite) {
    RUN_TEST(equal_values_pass_with_no_error);
    RUN_TEST(a_nan_is_refused_and_counted);
    RUN_TEST(an_infinity_is_refused_and_counted);
    RUN_TEST(a_nan_says_nothing_where_magnitudes_do_not_fit_a_float);
    RUN_TEST(poison_is_refused_as_never_written);
    RUN_TEST(poison_is_refused_where_nan_is_expected);
    RUN_TEST(an_expected_nan_must_be_a_nan);
    RUN_TEST(infinities_must_match_in_sign);
    RUN_TEST(a_value_too_large_for_the_type_is_its_infinity);
    RUN_TEST(an_error_just_above_the_tolerance_is_refused);
    RUN_TEST(the_tolerance_grows_with_terms_and_scale);
    RUN_TEST(the_tolerance_of_half_is_that_of_its_store);
    RUN_TEST(flushing_devices_may_lose_denormals_and_others_may_not);
    RUN_TEST(exact_tells_minus_zero_from_zero);
    RUN_TEST(exact_ignores_the_payload_of_nan);
    RUN_TEST(exact_refuses_one_ulp);
    RUN_TEST(integers_compare_exactly);
    RUN_TEST(unwritten_bytes_are_seen_at_odd_places);
    RUN_TEST(the_numbers_of_a_comparison_are_right);
    RUN_TEST(only_the_first_bad_elements_are_kept);
}
