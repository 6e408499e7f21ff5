/* Denormals and math modes on the software device: what a flushing device and fast math may do is
 * accepted, what is wrong is still refused, and both are real differences. */
#include <float.h>
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/check/accuracy.h"
#include "harness/check/check.h"
#include "kernels/kernels.h"
#include "support.h"
#include "transcript.h"

SUITE(numerics_suite);

enum { N = 64, FUNCTIONS = 10 };

static err last;

static const device_options plain = {.math = MATH_SAFE}, flushing = {.flush_denormals = true};

/* One kernel of numerics.metal on a device of its own; `*out` has `each` elements for one of x. */
static launch *prepare(const device_options *o, const char *name, const void *x, elem type,
                       elem out_type, uint32_t n, size_t each, slice *out) {
    launch *l = support_open(o, "") ? support_launch("numerics.metal", name) : NULL;
    if (!l)
        return NULL;
    *out = support_buffer(NULL, n * each * elem_get_bytes(out_type));
    launch_bind(l, 0, support_buffer(x, n * elem_get_bytes(type)), ACCESS_READ, type);
    launch_bind(l, 1, *out, ACCESS_WRITE, out_type);
    launch_set_u32(l, 2, n);
    launch_set_threads_rounded(l, n, 32);
    return l;
}

/* What the kernel makes of n floats. */
static bool compute(const device_options *o, const char *name, const float *x, uint32_t n,
                    size_t each, float *got) {
    slice out;
    if (!prepare(o, name, x, ELEM_F32, ELEM_F32, n, each, &out) || !support_play())
        return false;
    memcpy(got, support_read(out), n * each * sizeof *got);
    return true;
}

/* Its verdict. A kernel that gives an index gives one. */
static const char *check(const device_options *o, const char *name, const float *x, elem out_type,
                         oracle_fn oracle) {
    static check_result r;
    const check_options how = {.unordered = false};
    slice out;
    launch *l = prepare(o, name, x, ELEM_F32, out_type, N, 1, &out);
    if (!l)
        return support_get_error()->text;
    if (out_type == ELEM_U32)
        launch_bind(l, 1, slice_part(out.buffer, 0, 4), ACCESS_WRITE, ELEM_U32);
    l->oracle = oracle;
    if (!check_tape(support_get_tape(), &how, &r, &last))
        return last.text;
    return r.verdict == CHECK_PASS ? "pass" : r.message;
}

/* Denormals ----------------------------------------------------------------------------------- */

/* Denormals of both signs, with a normal value here and there. */
static void fill(float *x) {
    for (int i = 0; i < N; i++)
        x[i] = i % 8 == 5 ? 1e-30f * (float)i : (float)(i - 20) * 1e-40f;
}

TEST a_flushing_device_takes_denormals_for_zero_and_copies_them_whole(void) {
    float x[N], got[N], sum[N];
    fill(x);
    if (!compute(&flushing, "copy", x, N, 1, got) || !compute(&flushing, "twice", x, N, 1, sum))
        FAILm(support_get_error()->text);
    ASSERT(memcmp(x, got, sizeof x) == 0);
    for (int i = 0; i < N; i++)
        ASSERT(sum[i] == (i % 8 == 5 ? 2 * x[i] : 0));
    ASSERTm(support_get_error()->text, compute(&plain, "twice", x, N, 1, sum));
    for (int i = 0; i < N; i++)
        ASSERT(sum[i] == 2 * x[i]); /* and the test program itself keeps them */
    PASS();
}

TEST halves_are_not_flushed(void) {
    uint16_t x[N];
    for (int i = 0; i < N; i++)
        x[i] = (uint16_t)(i + 1); /* denormals */
    slice out;
    ASSERT(prepare(&flushing, "add_halves", x, ELEM_F16, ELEM_F16, N, 1, &out) && support_play());
    const uint16_t *got = support_read(out);
    for (int i = 0; i < N; i++)
        ASSERT_EQ_FMT(2 * (i + 1), (int)got[i], "%d");
    PASS();
}

TEST the_device_says_that_it_flushes(void) {
    static const struct {
        device_options options;
        const char *variables;
        bool flushes;
    } ways[] = {{{.math = MATH_SAFE}, "", false},
                {{.flush_denormals = true}, "", true},
                {{.flush_denormals = false}, "ASSAY_FLUSH=1", true}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        ASSERT(support_open(&ways[i].options, ways[i].variables));
        ASSERT_EQ(ways[i].flushes, device_get_facts(support_get_device())->flushes_denormals);
    }
    ASSERT(!support_open(&plain, "ASSAY_FLUSH=yes"));
    const err *why = support_get_error();
    ASSERT(why->code == EXIT_USAGE && strstr(why->text, "ASSAY_FLUSH"));
    PASS();
}

static void double_it(const launch *l, oracle_io *io) {
    (void)l;
    const float *x = io->in[0];
    for (size_t i = 0; i < N; i++)
        io->out[1].value[i] = 2 * (double)x[i];
    io->out[1].roundings = 1;
}

static void copy_it(const launch *l, oracle_io *io) {
    (void)l;
    const float *x = io->in[0];
    for (size_t i = 0; i < N; i++)
        io->out[1].value[i] = (double)x[i];
    io->out[1].exact = true;
}

TEST what_is_flushed_is_right_only_on_a_device_that_flushes(void) {
    float x[N];
    fill(x);
    ASSERT_STR_EQ("pass", check(&flushing, "twice", x, ELEM_F32, double_it));
    ASSERT_STR_EQ("pass", check(&flushing, "twice_flushed", x, ELEM_F32, double_it));
    ASSERT_STR_EQ("pass", check(&plain, "twice", x, ELEM_F32, double_it));
    ASSERT(strstr(check(&plain, "twice_flushed", x, ELEM_F32, double_it), "elements are wrong"));
    PASS();
}

TEST a_flushing_device_may_not_lose_a_normal_term(void) {
    float x[N];
    fill(x);
    ASSERT(strstr(check(&flushing, "twice_without_small", x, ELEM_F32, double_it),
                  "8 of 64 elements"));
    PASS();
}

TEST a_copy_keeps_denormals_on_a_flushing_device_too(void) {
    float x[N];
    fill(x);
    ASSERT_STR_EQ("pass", check(&flushing, "copy", x, ELEM_F32, copy_it));
    ASSERT(strstr(check(&flushing, "twice_flushed", x, ELEM_F32, copy_it), "are wrong"));
    PASS();
}

static void find_largest(const launch *l, oracle_io *io) {
    (void)l;
    const float *x = io->in[0];
    size_t best = 0;
    for (size_t i = 1; i < N; i++)
        best = x[i] > x[best] ? i : best;
    io->out[1].value[0] = (double)best;
}

/* A kernel that writes one index. */
static const char *check_index(const device_options *o, const char *name, const float *x) {
    return check(o, name, x, ELEM_U32, find_largest);
}

TEST of_denormals_a_flushing_device_takes_the_first(void) {
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 40) * 1e-40f;                         /* the largest is number 39 */
    ASSERT_STR_EQ("pass", check_index(&flushing, "largest", x)); /* 0 */
    ASSERT_STR_EQ("pass", check_index(&plain, "largest", x));    /* 39 */
    ASSERT(strstr(check_index(&flushing, "last_largest", x), "element 0 is 63"));
    PASS();
}

TEST a_smaller_element_is_not_the_largest_on_any_device(void) {
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = i == 30 ? 3e-38f : i == 12 ? 2e-38f : (float)i * 1e-40f; /* both are normal */
    ASSERT_STR_EQ("pass", check_index(&flushing, "largest", x));
    ASSERT(strstr(check_index(&flushing, "second_largest", x), "element 0 is 12, expected 30"));
    ASSERT(strstr(check_index(&plain, "second_largest", x), "element 0 is 12, expected 30"));
    PASS();
}

/* The registry -------------------------------------------------------------------------------- */

/* Those whose names contain `part`. */
static const char *check_registry(const device_options *o, distribution inputs, const char *part) {
    static char text[800];
    library *lib = support_open(o, "") ? library_new(support_get_device(), NULL, &last) : NULL;
    size_t checked = 0;
    text[0] = 0;
    for (size_t i = 0; lib && !text[0] && i < registry_count; i++)
        for (size_t k = 0; !text[0] && k < registry[i]->kernel_count; k++)
            for (uint64_t seed = 1; !text[0] && seed <= 3; seed++) {
                const op *p = registry[i];
                const kernel *v = &p->kernels[k];
                const shape *s = &op_get_shapes(p, v)->any_input;
                kernel_case c = case_new(p, v, s, inputs);
                check_result r;
                if (!strstr(v->name, part) || !op_takes(c.op, c.kernel, &c.shape, NULL) ||
                    !device_offers(device_get_facts(support_get_device()), v->needs, NULL))
                    continue;
                checked++;
                if (!check_case(lib, &c, NULL, seed, &r, &last))
                    snprintf(text, sizeof text, "%s: %s", v->name, last.text);
                else if (r.verdict != CHECK_PASS)
                    snprintf(text, sizeof text, "seed %d: %s", (int)seed, r.message);
            }
    library_free(lib);
    return !lib ? last.text : checked == 0 ? "nothing was checked" : text[0] ? text : NULL;
}

/* Kernels that add, weigh or compare denormals; CI checks every case of all kernels this way. */
TEST kernels_agree_with_their_oracles_where_denormals_are_flushed(const char *part) {
    const char *why = check_registry(&flushing, INPUT_DENORMALS, part);
    if (why)
        FAILm(why);
    PASS();
}

/* Math modes ---------------------------------------------------------------------------------- */

TEST fast_math_alone_takes_it_that_nothing_is_nan(void) {
    const float x[N] = {1, NAN, 2, NAN};
    float got[MATH_COUNT][N];
    for (math_mode m = 0; m < MATH_COUNT; m++)
        ASSERTm(support_get_error()->text,
                compute(&(device_options){.math = m}, "is_it_nan", x, N, 1, got[m]));
    ASSERT(got[MATH_SAFE][1] == 1 && got[MATH_RELAXED][1] == 1 && got[MATH_FAST][1] == 0);
    ASSERT(got[MATH_SAFE][0] == 0 && got[MATH_RELAXED][0] == 0 && got[MATH_FAST][0] == 0);
    PASS();
}

TEST libraries_of_one_device_compile_with_a_math_of_their_own(void) {
    ASSERT(support_open(&(device_options){0}, ""));
    library *safe = support_get_library();
    library *fast = library_new(support_get_device(), support_get_path("tests/kernels"), &last);
    library_set_math(fast, MATH_FAST);
    const pipeline *a = library_find(safe, "numerics.metal", "twice", NULL, 0, &last);
    const pipeline *b = library_find(fast, "numerics.metal", "twice", NULL, 0, &last);
    bool ok = a && b && a->math == MATH_SAFE && b->math == MATH_FAST && !a->flushes_denormals &&
              b->flushes_denormals;
    library_free(fast);
    ASSERT(ok);
    PASS();
}

/* |got - want| in roundings: parts 2^-24 of the result. */
static double count_roundings(double want, float got) {
    return fabs((double)got - want) / fabs(want) / 0x1p-24;
}

TEST fast_functions_are_fast_and_within_the_specification(void) {
    float x[N], safe[FUNCTIONS * N], fast[FUNCTIONS * N];
    for (int i = 0; i < N; i++)
        x[i] = ((float)i - 31.4f) * 0.099f; /* -3.1 to 3.1 */
    if (!compute(&plain, "functions", x, N, FUNCTIONS, safe) ||
        !compute(&(device_options){.math = MATH_FAST}, "functions", x, N, FUNCTIONS, fast))
        FAILm(support_get_error()->text);
    int changed = 0;
    for (int i = 0; i < N; i++) {
        const float *f = fast + FUNCTIONS * i, *s = safe + FUNCTIONS * i;
        double v = (double)x[i], size = fabs(v);
        ASSERT(count_roundings(exp(v), f[0]) <= fast_exp(v));
        ASSERT(fabs((double)f[1] - sin(v)) <= 0x1p-13 && fabs((double)f[2] - cos(v)) <= 0x1p-13);
        if (size >= 0.5 && size <= 2)
            ASSERT(fabs((double)f[3] - log(size)) <= 0x1p-21);
        else
            ASSERT(count_roundings(log(size), f[3]) <= FAST_LOG);
        ASSERT(count_roundings(1 / sqrt(size), f[4]) <= FAST_RSQRT);
        ASSERT(count_roundings(sqrt(size), f[5]) <= FAST_RSQRT + 1);
        ASSERT(count_roundings(pow(size, (double)1.7f), f[6]) <= fast_pow(1.7 * log2(size)) + 8);
        ASSERT(count_roundings(1 / v, f[7]) <= FAST_RECIPROCAL);
        ASSERT(f[8] == s[8] && f[9] == s[9]); /* the precise ones are the same in both */
        for (int k = 0; k < 8; k++)
            changed += f[k] != s[k];
    }
    ASSERT(changed > 2 * N);
    PASS();
}

/* Of numbers that are normal to the last; beyond them there is nothing, or infinity. */
TEST fast_powers_are_right_to_the_ends_of_the_range(void) {
    float x[N] = {-INFINITY, -1e30f, -200, -127.5f, 128, 200, 1e30f, INFINITY}, y[2 * N];
    enum { OUTSIDE = 8, SMALL = 4 };
    for (int i = OUTSIDE; i < N; i++) /* -126 to 127.99 */
        x[i] = -126.0f + (float)(i - OUTSIDE) * (253.99f / (N - 1 - OUTSIDE));
    ASSERTm(support_get_error()->text,
            compute(&(device_options){.math = MATH_FAST}, "powers_of_two", x, N, 2, y));
    for (int i = 0; i < 2 * N; i++)
        if (i / 2 >= OUTSIDE)
            ASSERT(count_roundings(exp2((double)x[i / 2]), y[i]) <= 4);
        else
            ASSERT(i / 2 < SMALL ? y[i] == 0 : isinf(y[i]) && y[i] > 0);
    PASS();
}

/* Those with functions, and with values to compare; `assay check --math fast` has them all. */
TEST kernels_agree_with_their_oracles_under_fast_math(const char *part) {
    const char *why = check_registry(&(device_options){.math = MATH_FAST}, INPUT_NORMAL, part);
    if (why)
        FAILm(why);
    PASS();
}

SUITE(numerics_suite) {
    SET_TEARDOWN(support_end_test, NULL);
    RUN_TEST(a_flushing_device_takes_denormals_for_zero_and_copies_them_whole);
    RUN_TEST(halves_are_not_flushed);
    RUN_TEST(the_device_says_that_it_flushes);
    RUN_TEST(what_is_flushed_is_right_only_on_a_device_that_flushes);
    RUN_TEST(a_flushing_device_may_not_lose_a_normal_term);
    RUN_TEST(a_copy_keeps_denormals_on_a_flushing_device_too);
    RUN_TEST(of_denormals_a_flushing_device_takes_the_first);
    RUN_TEST(a_smaller_element_is_not_the_largest_on_any_device);
    static const char *const flushed[] = {"residual", "bias", "triad", "argmax",
                                          "matvec_q6_k_vec16"};
    for (size_t i = 0; i < sizeof flushed / sizeof *flushed; i++)
        RUN_TESTp(kernels_agree_with_their_oracles_where_denormals_are_flushed, flushed[i]);
    RUN_TEST(fast_math_alone_takes_it_that_nothing_is_nan);
    RUN_TEST(libraries_of_one_device_compile_with_a_math_of_their_own);
    RUN_TEST(fast_functions_are_fast_and_within_the_specification);
    RUN_TEST(fast_powers_are_right_to_the_ends_of_the_range);
    static const char *const parts[] = {"rmsnorm_simd", "silu",   "rope",
                                        "attention",    "argmax", "q4_0_per_thread"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        RUN_TESTp(kernels_agree_with_their_oracles_under_fast_math, parts[i]);
    support_close();
    transcript_run("numerics");
}
