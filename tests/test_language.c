/* What MSL adds to C++, run on the software device: vectors, conversions, half floats, function
 * constants, structs, host names. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

SUITE_EXTERN(language_suite);

/* In the order of the lines of `vectors` in tests/kernels/language.metal. */
/* clang-format off */
static const double vector_claims[] = {
    5, 6, 3, 0, /* m.xy = a; m.w = 0 */           20, 6, 10, 0, /* m.zx = (10, 20) */
    21, 32, 13, 4, /* m[1] = 30; m += v */        1, -1, 2, 3, /* float to int truncates */
    5, /* length */                               0, 0, 1, /* cross */
    2, 2, 3, 3, /* clamp */                       2.5, 2.5, 3, 4, /* max with a scalar */
    0.5, 1, 1.5, 2, /* mix */                     3.14159274101257324219, /* as_type<float> */
    127, /* exponent bits of 1.0 */               2, /* as_type<half2>(...).x */
    0.333251953125, /* a third in half */         0.333251953125, /* half literal */
    17.5, /* its other spellings */
    1456, /* bfloat literals: every sum is rounded; 0x1bf is an integer */
    1.0078125, /* rounded once */                 16.12, /* sizeof(float3), sizeof(packed_float3) */
    21.5, /* fma + rsqrt + exp2 + sqrt */
    -25585, /* char(200) is -56, short(40000) is -25536, uint(7.9) is 7 */
    23, 34, /* matrix * vector */                 17, 39, /* vector * matrix */
    3, 4, /* a column of matrix / scalar */       -7, -8, 16, 16, 2, 5, 1, /* swizzles in templates */
    7, 8, 9, /* through a packed pointer */
};
/* clang-format on */
enum { VECTOR_CLAIMS = sizeof vector_claims / sizeof *vector_claims };

TEST vector_constructors_swizzles_and_operators_are_msl(void) {
    slice out = support_buffer(NULL, 4 * (VECTOR_CLAIMS + 1));
    launch *l = support_launch("language.metal", "vectors");
    if (!l)
        FAILm(support_get_error()->detail[0] ? support_get_error()->detail
                                             : support_get_error()->text);
    launch_bind(l, 0, out, ACCESS_WRITE, ELEM_F32);
    launch_set_groups(l, (size3){1, 1, 1}, (size3){1, 1, 1});
    ASSERT(support_play());
    const float *got = support_read(out);
    for (int i = 0; i < VECTOR_CLAIMS; i++)
        if (got[i] != (float)vector_claims[i]) {
            static char text[80];
            snprintf(text, sizeof text, "number %d: want %.9g, got %.9g", i, vector_claims[i],
                     (double)got[i]);
            FAILm(text);
        }
    ASSERT_EQ_FMT((double)VECTOR_CLAIMS, (double)got[VECTOR_CLAIMS], "%g");
    PASS();
}

static bool run_map(const char *kernel, slice in, slice out, elem in_type, elem out_type,
                    uint32_t n) {
    return support_run("language.metal", kernel, ((size3){n, 1, 1}), ((size3){256, 1, 1}),
                       READS(in, in_type), WRITES(out, out_type));
}

static bool is_nan_half(uint16_t h) {
    return (h & 0x7C00) == 0x7C00 && (h & 0x3FF);
}

TEST every_half_widens_to_the_float_it_is(void) {
    static uint16_t all[65536];
    for (uint32_t i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    slice in = support_buffer(all, sizeof all), out = support_buffer(NULL, 65536 * 4);
    ASSERTm(support_get_error()->text, run_map("widen_half", in, out, ELEM_F16, ELEM_F32, 65536));
    const float *got = support_read(out);
    for (uint32_t i = 0; i < 65536; i++) {
        float want = half_to_float((uint16_t)i);
        if (is_nan_half((uint16_t)i))
            ASSERT(got[i] != got[i]);
        else
            ASSERT_MEM_EQ(&want, &got[i], 4);
    }
    PASS();
}

/* Each half, the midpoint to the next, and the floats on both sides of the midpoint: all the places
 * where rounding can go wrong. */
TEST floats_round_to_the_nearest_half_and_ties_to_even(void) {
    enum { N = 65536 * 4 };
    float *x = malloc(N * sizeof *x);
    ASSERT(x);
    for (uint32_t i = 0; i < 65536; i++) {
        float a = half_to_float((uint16_t)i), b = half_to_float((uint16_t)(i + 1));
        float middle = (i & 0x7FFF) == 0x7BFF ? (i >> 15 ? -65520.0f : 65520.0f) : (a + b) / 2;
        uint32_t bits;
        memcpy(&bits, &middle, 4);
        for (uint32_t k = 0; k < 3; k++) {
            uint32_t near = bits + k - 1;
            memcpy(&x[4 * i + k], &near, 4);
        }
        x[4 * i + 3] = a;
    }
    slice in = support_buffer(x, N * 4), out = support_buffer(NULL, N * 2);
    ASSERTm(support_get_error()->text, run_map("round_to_half", in, out, ELEM_F32, ELEM_F16, N));
    const uint16_t *got = support_read(out);
    for (uint32_t i = 0; i < N; i++) {
        if (x[i] != x[i])
            ASSERT(is_nan_half(got[i]));
        else
            ASSERT_EQ_FMT(half_from_float(x[i]), got[i], "%04x");
    }
    free(x);
    PASS();
}

/* A 16-bit float: how it is converted, and numbers of it, from random bits. */
typedef struct {
    const char *kernel;
    elem type;
    float (*widen)(uint16_t);
    uint16_t (*round)(float);
    uint16_t keeps, sets; /* of the bits */
} short_float;

static const short_float halves = {"half_arithmetic", ELEM_F16, half_to_float,
                                   half_from_float,   0xFFFF,   0};
/* Not those that are near the ends of the range, where denormals may be flushed. */
static const short_float bfloats = {"bfloat_arithmetic", ELEM_BF16, bfloat_to_float,
                                    bfloat_from_float,   0x87FF,    0x3C00};

static bool is_same_number(const short_float *f, uint16_t a, uint16_t b) {
    bool is_nan = f->widen(a) != f->widen(a);
    return is_nan ? f->widen(b) != f->widen(b) : a == b;
}

TEST short_floats_round_after_every_operation(const short_float *f) {
    enum { N = 60000 };
    static uint16_t a[N], b[N];
    uint32_t seed = 1;
    for (int i = 0; i < N; i++) {
        a[i] = (uint16_t)((seed = seed * 1664525 + 1013904223) >> 16) & f->keeps;
        b[i] = (uint16_t)((seed = seed * 1664525 + 1013904223) >> 16) & f->keeps;
        a[i] |= f->sets;
        b[i] |= f->sets;
    }
    slice in_a = support_buffer(a, sizeof a), in_b = support_buffer(b, sizeof b);
    slice out = support_buffer(NULL, sizeof a * 4);
    ASSERT_PLAYS("language.metal", f->kernel, ((size3){N, 1, 1}), ((size3){64, 1, 1}),
                 READS(in_a, f->type), READS(in_b, f->type), WRITES(out, f->type));
    const uint16_t *got = support_read(out);
    for (int i = 0; i < N; i++) {
        float x = f->widen(a[i]), y = f->widen(b[i]);
        uint16_t product = f->round(x * y);
        const uint16_t want[4] = {f->round(x + y), product, f->round(x / y),
                                  f->round(f->widen(product) + x)};
        for (int k = 0; k < 4; k++)
            if (!is_same_number(f, want[k], got[4 * i + k]))
                ASSERT_EQ_FMT(want[k], got[4 * i + k], "%04x");
    }
    PASS();
}

static const constant_value with_bias[] = {
    {0, ELEM_U32, 3}, {1, ELEM_U8, 1}, {2, ELEM_F32, 0x3F000000}};
static const constant_value without_bias[] = {
    {0, ELEM_U32, 4}, {1, ELEM_U8, 0}, {2, ELEM_F32, 0xC0000000}};

TEST function_constants_specialise_a_pipeline_and_gate_its_arguments(void) {
    const float x[2] = {1, 10}, bias[2] = {100, 200};
    slice in = support_buffer(x, 8), out = support_buffer(NULL, 8), add = support_buffer(bias, 8);
    launch *l = support_launch_specialised("language.metal", "specialised", with_bias, 3);
    ASSERTm(support_get_error()->text, l);
    launch_bind(l, 0, in, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, out, ACCESS_WRITE, ELEM_F32);
    launch_bind(l, 2, add, ACCESS_READ, ELEM_F32);
    launch_set_threads(l, (size3){2, 1, 1}, (size3){2, 1, 1});
    ASSERT(support_play());
    ASSERT_EQ(101.5f, ((const float *)support_read(out))[0]);
    ASSERT_EQ(215.0f, ((const float *)support_read(out))[1]);

    l = support_launch_specialised("language.metal", "specialised", without_bias, 3);
    ASSERT(l);
    launch_bind(l, 0, in, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, out, ACCESS_WRITE, ELEM_F32);
    launch_set_threads(l, (size3){2, 1, 1}, (size3){2, 1, 1});
    ASSERTm(support_get_error()->text, support_play());
    ASSERT_EQ(-8.0f, ((const float *)support_read(out))[0]);
    ASSERT_EQ(-80.0f, ((const float *)support_read(out))[1]);
    PASS();
}

TEST a_function_constant_that_is_not_given_is_an_error(void) {
    ASSERT_EQ(NULL, support_launch_specialised("language.metal", "specialised", with_bias, 2));
    ASSERT(strstr(support_get_error()->text, "scale"));
    PASS();
}

TEST structs_arrive_as_they_were_laid_out(void) {
    struct {
        uint32_t count, pad;
        float shift[2];
        float extra[3], tail;
    } o = {3, 0, {1, 20}, {1, 2, 300}, 0};
    slice out = support_buffer(NULL, 16);
    launch *l = support_launch("language.metal", "with_struct");
    ASSERTm(support_get_error()->text, l);
    launch_bind(l, 0, out, ACCESS_WRITE, ELEM_F32);
    launch_set_bytes(l, 1, &o, sizeof o);
    launch_set_threads(l, (size3){4, 1, 1}, (size3){4, 1, 1});
    ASSERTm(support_get_error()->text, support_play());
    const float *got = support_read(out);
    ASSERT_EQ(320.0f, got[0]);
    ASSERT_EQ(320.0f, got[2]);
    ASSERT(got[3] != got[3]);
    PASS();
}

TEST host_names_choose_the_instantiation_of_a_template(void) {
    const float x = 1.5f;
    const int32_t n = 21;
    slice in = support_buffer(&x, 4), out = support_buffer(NULL, 4);
    ASSERTm(support_get_error()->text, run_map("doubled_float", in, out, ELEM_F32, ELEM_F32, 1));
    ASSERT_EQ(3.0f, *(const float *)support_read(out));
    in = support_buffer(&n, 4);
    ASSERT(run_map("doubled_int", in, out, ELEM_I32, ELEM_I32, 1));
    ASSERT_EQ(42, *(const int32_t *)support_read(out));
    PASS();
}

TEST buffers_without_numbers_are_counted_in_order(void) {
    const float x = 1;
    slice in = support_buffer(&x, 4), out = support_buffer(NULL, 4);
    launch *l = support_launch("language.metal", "unnumbered");
    ASSERTm(support_get_error()->text, l);
    launch_bind(l, 0, in, ACCESS_READ, ELEM_F32);
    launch_set_f32(l, 1, 0.25f);
    launch_bind(l, 2, out, ACCESS_WRITE, ELEM_F32);
    launch_set_threads(l, (size3){1, 1, 1}, (size3){1, 1, 1});
    ASSERT(support_play());
    ASSERT_EQ(1.25f, *(const float *)support_read(out));
    PASS();
}

TEST a_compile_error_shows_the_line_of_the_metal_file(void) {
    ASSERT_EQ(NULL, support_launch("uncompilable.metal", "uncompilable"));
    ASSERT_EQ(EXIT_WRONG, support_get_error()->code);
    ASSERT(strstr(support_get_error()->text, "uncompilable"));
    ASSERT(strstr(support_get_error()->detail, "uncompilable.metal:5:"));
    ASSERT(strstr(support_get_error()->detail, "not_declared"));
    PASS();
}

TEST an_unknown_kernel_is_answered_with_the_ones_there_are(void) {
    ASSERT_EQ(NULL, support_launch("language.metal", "vector"));
    ASSERT(strstr(support_get_error()->text, "vectors"));
    PASS();
}

SUITE(language_suite) {
    SET_TEARDOWN(support_end_test, NULL);
    RUN_TEST(vector_constructors_swizzles_and_operators_are_msl);
    RUN_TEST(every_half_widens_to_the_float_it_is);
    RUN_TEST(floats_round_to_the_nearest_half_and_ties_to_even);
    RUN_TESTp(short_floats_round_after_every_operation, &halves);
    if (support_is_emulated()) /* a GPU may fuse the product and the sum of bfloats */
        RUN_TESTp(short_floats_round_after_every_operation, &bfloats);
    RUN_TEST(function_constants_specialise_a_pipeline_and_gate_its_arguments);
    RUN_TEST(a_function_constant_that_is_not_given_is_an_error);
    RUN_TEST(structs_arrive_as_they_were_laid_out);
    RUN_TEST(host_names_choose_the_instantiation_of_a_template);
    RUN_TEST(buffers_without_numbers_are_counted_in_order);
    RUN_TEST(a_compile_error_shows_the_line_of_the_metal_file);
    RUN_TEST(an_unknown_kernel_is_answered_with_the_ones_there_are);
}
