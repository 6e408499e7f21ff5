/* Products of a few tokens as halves (kernels/cuda/mma_halves.h): tokens of every size at once, and what
 * is not finite. With ASSAY_DEVICE=cuda: other devices do not offer the kernel. */
#include <float.h>
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/check/fill.h"
#include "kernels/kernels.h"
#include "runner/model/family.h"
#include "support.h"

SUITE_EXTERN(cuda_halves_suite);

/* Simdgroups take 64 columns at a time: four of the 16 take twice as many as the others. */
enum { ROWS = 16, COLUMNS = 1280, TOKENS = 8, BLOCK = 32, EACH = 64 };

/* Normal values of about `size`. If `every` is not 0, one in so many is `other`, from the first on. */
typedef struct {
    double size, other;
    size_t every;
} token;

static block_q4_0 blocks[ROWS * COLUMNS / BLOCK];
static double w[ROWS][COLUMNS]; /* the same */
static float x[TOKENS][COLUMNS], y[TOKENS][ROWS];
static err e;

static bool has_kernel(void) {
    device *d = support_get_device();
    return d && device_offers(device_get_facts(d), FEATURE_BULK_COPIES, NULL);
}

static void fill(const token *tokens) {
    rng r = rng_new(1, "halves");
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        float values[BLOCK];
        double magnitudes[BLOCK];
        for (size_t k = 0; k < BLOCK; k++)
            values[k] = (float)(0.05 * rng_normal(&r));
        format_q4_0.encode(values, &blocks[i]);
        format_q4_0.decode(&blocks[i], &w[0][0] + i * BLOCK, magnitudes);
    }
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < COLUMNS; i++) {
            bool is_other = tokens[t].every && i % tokens[t].every == 0;
            x[t][i] = (float)(is_other ? tokens[t].other : tokens[t].size * rng_normal(&r));
        }
}

static bool multiply(void) {
    device *d = support_get_device();
    library *kernels = d ? library_new(d, NULL, &e) : NULL;
    if (!kernels)
        return false;
    const kernel *k = op_find_kernel(&matvec_op, "multi_token_matvec_q4_0_tiled_bulk");
    tape *t = tape_new(kernels);
    slice to = support_buffer(NULL, sizeof y);
    bool ok = matvec_record(t, k, support_buffer(blocks, sizeof blocks),
                            support_buffer(x, sizeof x), to, ROWS, COLUMNS, TOKENS, &e) &&
              tape_play(t, PLAY_WHOLE, NULL, NULL, &e);
    if (ok)
        memcpy(y, support_read(to), sizeof y);
    tape_free(t);
    library_free(kernels);
    support_end();
    return ok;
}

/* A token with a value that is not finite has no finite result. The results of others differ from a
 * sum in doubles by at most 8 roundings of the sum of magnitudes: a value in two halves loses up to 2,
 * and most sums are of parts, whose roundings are smaller. Below FLT_MIN floats get no closer. */
static enum greatest_test_res is_right(const token *tokens) {
    static char text[160];
    fill(tokens);
    if (!has_kernel())
        SKIPm("only where the device has bulk copies and clusters");
    ASSERTm(e.text, multiply());
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t row = 0; row < ROWS; row++) {
            double sum = 0, magnitudes = 0, got = (double)y[t][row];
            for (size_t i = 0; i < COLUMNS; i++) {
                double v = (double)x[t][i];
                sum += w[row][i] * v;
                magnitudes += fabs(w[row][i]) * (v == 0 ? 0 : fmax(fabs(v), (double)FLT_MIN));
            }
            snprintf(text, sizeof text, "token %zu, row %zu: %.9g and not %.9g, magnitudes %.3g", t,
                     row, got, sum, magnitudes);
            if (isfinite(sum))
                ASSERTm(text, fabs(got - sum) <= 4 * (double)FLT_EPSILON * magnitudes);
            else
                ASSERT_FALSEm(text, isfinite(got));
        }
    PASS();
}

TEST tokens_of_every_size_are_multiplied_at_once(void) {
    return is_right((const token[TOKENS]){{.size = 1},
                                          {.size = 1e-30},
                                          {.size = 1e30},
                                          {.size = 1e-4, .other = 1e4, .every = EACH},
                                          {.size = 0},
                                          {.size = 1e-40},
                                          {.size = 4000},
                                          {.size = 1e-3}});
}

/* Among seven tokens that need no other power of two. */
TEST one_token_of_another_size_is_enough(token another) {
    token tokens[TOKENS];
    for (size_t t = 0; t < TOKENS; t++)
        tokens[t] = t == 3 ? another : (token){.size = 1};
    return is_right(tokens);
}

TEST what_is_not_finite_stays_in_its_token(void) {
    return is_right((const token[TOKENS]){{.size = 1, .other = (double)NAN, .every = COLUMNS},
                                          {.size = 1},
                                          {.size = 1e-30},
                                          {.size = 1, .other = (double)INFINITY, .every = COLUMNS},
                                          {.size = 1e30, .other = -(double)INFINITY, .every = EACH},
                                          {.size = 1e30},
                                          {.size = (double)NAN},
                                          {.size = 0}});
}

/* Every 64 columns of all tokens have a value that is just large enough for the usual power of two. */
TEST smaller_values_beside_a_larger_one_keep_their_bits(double larger) {
    token tokens[TOKENS];
    for (size_t t = 0; t < TOKENS; t++)
        tokens[t] = (token){larger / 100, larger, EACH};
    return is_right(tokens);
}

/* The power of two that is right for the second is the usual one. All lanes must agree on whether
 * they repeat. */
TEST a_token_of_the_usual_size_goes_with_one_of_another(void) {
    return is_right((const token[TOKENS]){{.size = 1e-30}, {1, 700, EACH}});
}

TEST half_a_cluster_is_refused(void) {
    if (!has_kernel())
        SKIPm("only where the device has bulk copies and clusters");
    library *kernels = library_new(support_get_device(), NULL, &e);
    ASSERTm(e.text, kernels);
    tape *t = tape_new(kernels);
    const kernel *k = op_find_kernel(&matvec_op, "multi_token_matvec_q4_0_tiled_bulk");
    ASSERTm(e.text,
            matvec_record(t, k, support_buffer(blocks, sizeof blocks), support_buffer(x, sizeof x),
                          support_buffer(NULL, sizeof y), ROWS, COLUMNS, TOKENS, &e));
    ASSERT_EQ_FMT(0u, t->launches[0].grid.x % 2, "%u");
    launch_set_groups(&t->launches[0], (size3){3, 1, 1}, (size3){512, 1, 1});
    ASSERT_FALSE(tape_play(t, PLAY_WHOLE, NULL, NULL, &e));
    ASSERTm(e.text,
            strstr(e.text, "3 threadgroups along x; on this device that must be a multiple of 2"));
    tape_free(t);
    library_free(kernels);
    support_end();
    e = (err){0};
    PASS();
}

/* Its bias keeps the first from being multiplied in halves; the second has the same format. */
TEST a_matrix_that_is_not_split_is_recorded_beside_one_that_is(void) {
    enum { TALL = 512, LONG = 2048, MANY = 64 };
    device *d = support_get_device();
    if (!d || !device_offers(device_get_facts(d), FEATURE_WARPGROUPS, NULL))
        SKIPm("only where the device has warpgroups");
    library *kernels = library_new(d, NULL, &e);
    ASSERTm(e.text, kernels);
    tape *t = tape_new(kernels);
    model m = {.device = d, .variants = {.facts = device_get_facts(d)}};
    m.halves = support_buffer(NULL, 4 * split_halves_count(MANY, LONG));
    m.powers = support_buffer(NULL, 4 * MANY);
    const weight matrix = {support_buffer(NULL, format_get_bytes(&format_q4_0, TALL, LONG)),
                           &format_q4_0, TALL, LONG};
    slice from = support_buffer(NULL, 4 * MANY * LONG);
    product_matrix both[2];
    for (size_t i = 0; i < 2; i++)
        both[i] = weight_multiply(&matrix, from, support_buffer(NULL, 4 * MANY * TALL));
    both[0].bias = support_buffer(NULL, 4 * TALL);
    ASSERTm(e.text, model_record_matrices(&m, t, both, 2, MANY, &e));
    ASSERT_EQ_FMT((size_t)3, t->count, "%zu");
    ASSERT(op_find_kernel(&matvec_activate_op, t->launches[0].kernel->name));
    ASSERT(op_find_kernel(&split_halves_op, t->launches[1].kernel->name));
    ASSERT(op_find_kernel(&matvec_split_op, t->launches[2].kernel->name));
    tape_free(t);
    library_free(kernels);
    support_end();
    PASS();
}

SUITE(cuda_halves_suite) {
    RUN_TEST(a_matrix_that_is_not_split_is_recorded_beside_one_that_is);
    RUN_TEST(half_a_cluster_is_refused);
    RUN_TEST(tokens_of_every_size_are_multiplied_at_once);
    RUN_TESTp(one_token_of_another_size_is_enough, (token){.size = 1e-30});
    RUN_TESTp(one_token_of_another_size_is_enough, ((token){1, 1e6, EACH}));
    RUN_TEST(what_is_not_finite_stays_in_its_token);
    RUN_TESTp(smaller_values_beside_a_larger_one_keep_their_bits, 0.0042);
    RUN_TESTp(smaller_values_beside_a_larger_one_keep_their_bits, 0.03);
    RUN_TESTp(smaller_values_beside_a_larger_one_keep_their_bits, 0.5);
    RUN_TEST(a_token_of_the_usual_size_goes_with_one_of_another);
}
