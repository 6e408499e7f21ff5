/* Tests of the checks, first half: outputs compared with expected values, with no device. Every
 * broken output must be refused. test_check.c is the second half, with kernels. */
#include <float.h>
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "harness/check/check.h"
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

enum {
    EXACT = 1,
    FLUSHES = 2,
    BEFORE = 4 /* the output was not poisoned */,
    POISON = 8,
    PAYLOAD = 16
};

/* Element 3: what is expected, the sum of the magnitudes that made it (0: unknown), and what is there. */
static const struct {
    const char *what;
    double want, scale;
    float got;
    int how;
    size_t bad, unwritten;
} elements[] = {
    {"equal values pass", 4, 0, 4, 0, 0, 0},
    {"a NaN is refused", 4, 0, NAN, 0, 1, 0},
    {"an infinity is refused", 4, 0, INFINITY, 0, 1, 0},
    {"a NaN says nothing where magnitudes do not fit a float", 4, 1e39, NAN, 0, 0, 0},
    {"nor does an infinity", 4, 1e39, INFINITY, 0, 0, 0},
    {"but poison does", 4, 1e39, 0, POISON, 1, 1},
    {"and a NaN where they fit", 4, 1e38, NAN, 0, 1, 0},
    {"poison is refused as never written", 4, 0, 0, POISON, 1, 1},
    {"poison is refused where NaN is expected", NAN, 0, 0, POISON, 1, 1},
    {"unless it was there before", NAN, 0, 0, POISON | BEFORE, 0, 0},
    {"an expected NaN must be a NaN", NAN, 0, 4, 0, 1, 0},
    {"and any is", NAN, 0, NAN, 0, 0, 0},
    {"infinity must be infinite", INFINITY, 0, 4, 0, 1, 0},
    {"infinities must match in sign", INFINITY, 0, -INFINITY, 0, 1, 0},
    {"the largest number is not infinite", INFINITY, 0, FLT_MAX, 0, 1, 0},
    {"infinity is infinity", INFINITY, 0, INFINITY, 0, 0, 0},
    {"a value too large for the type is its infinity", 1e39, 0, INFINITY, 0, 0, 0},
    {"and not the other one", 1e39, 0, -INFINITY, 0, 1, 0},
    {"a denormal may not be lost", 1e-39, 0, 0, 0, 1, 0},
    {"unless the device flushes", 1e-39, 0, 0, FLUSHES, 0, 0},
    {"-0 is 0", -0.0, 0, 0, 0, 0, 0},
    {"but not exactly", -0.0, 0, 0, EXACT, 1, 0},
    {"-0 is exactly -0", -0.0, 0, -0.0f, EXACT, 0, 0},
    {"exact ignores the payload of a NaN", NAN, 0, 0, EXACT | PAYLOAD, 0, 0},
    {"exact refuses one ulp", 1, 0, 1 + FLT_EPSILON, EXACT, 1, 0},
};

TEST an_element_is_right_or_refused(size_t row) {
    const uint16_t words[2] = {POISON_PATTERN, POISON_PATTERN};
    const uint32_t bits = 0x7FC12345;
    const int how = elements[row].how;
    expected want = make_right();
    comparison c;
    want.exact = how & EXACT;
    value[3] = elements[row].want;
    scale[3] = elements[row].scale > 0 ? elements[row].scale : (double)NAN;
    got[3] = elements[row].got;
    if (how & (POISON | PAYLOAD))
        memcpy(&got[3], how & POISON ? (const void *)words : &bits, sizeof got[3]);
    compare_output(ELEM_F32, &want, got, !(how & BEFORE), how & FLUSHES, &c);
    const char *what = elements[row].what;
    ASSERTm(what, c.bad == elements[row].bad && c.unwritten == elements[row].unwritten);
    ASSERT_EQm(what, c.nonfinite, (size_t)(isfinite(value[3]) && !isfinite(got[3])));
    ASSERTm(what, c.bad == 0 || (c.worst == 3 && c.first[0].index == 3 && c.margin > 1));
    ASSERTm(what, c.bad == 0 || c.first[0].unwritten == (c.unwritten > 0));
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

TEST elements_that_share_a_sum_err_by_one_factor(void) {
    expected want = make_right();
    want.terms = 1e6; /* each alone may be off by 2000 u */
    want.row = want.count;
    want.apart = 12;
    for (size_t i = 0; i < want.count; i++)
        got[i] = (float)(value[i] * (1 + 1000 * 0x1p-24));
    ASSERT(compare(&want).apart == 0);
    got[1] = (float)(value[1] * (1 + 300 * 0x1p-24));
    comparison c = compare(&want);
    ASSERT(c.bad == 0 && c.apart == 1 && c.apart_row == 0);
    PASS();
}

TEST the_tolerance_of_half_is_that_of_its_store(void) {
    expected want = make_right();
    double tolerance = compare_get_tolerance(ELEM_F16, &want, 0, false);
    ASSERT(tolerance > ldexp(1, -11) && tolerance < ldexp(1.01, -11));
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
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        RUN_TESTp(an_element_is_right_or_refused, i);
    RUN_TEST(an_error_just_above_the_tolerance_is_refused);
    RUN_TEST(the_tolerance_grows_with_terms_and_scale);
    RUN_TEST(elements_that_share_a_sum_err_by_one_factor);
    RUN_TEST(the_tolerance_of_half_is_that_of_its_store);
    RUN_TEST(integers_compare_exactly);
    RUN_TEST(unwritten_bytes_are_seen_at_odd_places);
    RUN_TEST(the_numbers_of_a_comparison_are_right);
    RUN_TEST(only_the_first_bad_elements_are_kept);
}
