/* The ops of RWKV-7: their oracles against values worked out by hand and against the definition of
 * the recurrence, the recurrence in chunks, and what the record functions refuse. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/check/fill.h"
#include "kernels/kernels.h"
#include "reference/reference.h"
#include "support.h"

SUITE(time_mix_suite);

static bool is_near(double a, double b) {
    return fabs(a - b) < 1e-6;
}

/* --- by hand --- */

TEST activations_match_a_pocket_calculator(void) {
    ASSERT(is_near(reference_sigmoid(0), 0.5) && is_near(reference_sigmoid(2), 0.88079708));
    ASSERT(reference_squared_relu(-3) == 0 && reference_squared_relu(3) == 9);
    ASSERT(is_near(reference_silu(2), 1.76159416));
    ASSERT(is_near(reference_decay(0), 0.73840286) && is_near(reference_decay(100), 0.54523873));
    ASSERT(is_near(reference_decay(-100), 1));
    PASS();
}

TEST norms_of_small_rows_are_as_worked_by_hand(void) {
    /* Two groups: 1, 3 has the mean 2 and the variance 1; 5, 5 has the variance 0. */
    const float x[] = {1, 3, 5, 5}, w[] = {2, 4, 7, 7}, b[] = {10, 20, 30, 40};
    const double want[] = {8, 24, 30, 40}, half[] = {10 - 2 / sqrt(2), 20 + 4 / sqrt(2)};
    double y[4], magnitude[4];
    reference_group_norm(x, w, b, 1, 2, 2, 0, y, magnitude);
    ASSERT(is_near(y[0], want[0]) && is_near(y[1], want[1]));
    reference_group_norm(x, w, b, 1, 2, 2, 1, y, magnitude); /* eps as large as the variance */
    ASSERT(is_near(y[0], half[0]) && is_near(y[1], half[1]));
    ASSERT(is_near(y[2], want[2]) && is_near(y[3], want[3]));
    const float lengths[] = {3, 4, 0, 0};
    reference_l2_norm(lengths, 2, 2, 1e-12, y, magnitude);
    ASSERT(is_near(y[0], 0.6) && is_near(y[1], 0.8) && y[2] == 0 && y[3] == 0);
    reference_l2_norm(lengths, 2, 2, 10, y, magnitude); /* shorter than eps */
    ASSERT(is_near(y[0], 0.3) && is_near(y[1], 0.4));
    PASS();
}

TEST a_shift_mixes_each_token_with_the_one_before_it(void) {
    const float x[] = {10, 20, 30, 40}, state[] = {2, 4}, mu[] = {0, 1, 0.5f, 0.25f};
    const double want[] = {10, 4, 30, 20, 6, 16, 20, 35}; /* two mixes of two tokens */
    double out[8], magnitude[8];
    reference_token_shift(x, state, mu, 2, 2, 2, out, magnitude);
    for (int i = 0; i < 8; i++)
        ASSERT(is_near(out[i], want[i]));
    PASS();
}

TEST softmax_of_logarithms_is_their_share(void) {
    const float x[] = {0, 1.0986122886681098f, -200, 5, 5, 5};
    double y[6], magnitude[6];
    reference_softmax(x, 2, 3, 1, y, magnitude);
    ASSERT(is_near(y[0], 0.25) && is_near(y[1], 0.75) && y[2] < 1e-80);
    ASSERT(is_near(y[3], 1.0 / 3) && is_near(y[5], 1.0 / 3));
    PASS();
}

/* Two heads of 4, two tokens. Head 0 forgets, writes, and takes back what it knew of kk; head 1 only
 * writes at the first token and halves at the second. */
TEST the_recurrence_of_two_heads_of_4_is_as_worked_by_hand(void) {
    const float r[] = {1, 1, 0, 0, .25f, .25f, .25f, .25f, /**/ 0, 1, 2, 0, 1, 0, 0, 0};
    const float w[] = {.5f, .5f, 1, 1, 1, 1, 1, 1, /**/ 1, .5f, 1, 1, .5f, .5f, .5f, .5f};
    const float packed[] = {
        1, 2,   0, 0, 1, 1, 1, 1, /**/ 0,    0,    1, 0, 0, 0, 0, 0, /* k */
        3, 0,   0, 1, 1, 2, 3, 4, /**/ 0,    1,    0, 0, 0, 0, 0, 0, /* v */
        1, .5f, 1, 1, 0, 0, 0, 0, /**/ 1,    1,    1, 1, 0, 0, 0, 0, /* a */
        0, 1,   0, 0, 0, 0, 0, 0, /**/ 0.6f, 0.8f, 0, 0, 0, 0, 0, 0, /* kk */
    };
    const double want_y[] = {9, 0, 0, 3, 1, 2, 3, 4, /**/ -2.28, 2, 0, -0.76, .5, 1, 1.5, 2};
    const double want_state[] = {-.96, -2.28, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, -.32, -.76, 0, 0};
    double state[32] = {[1] = 4}, state_error[32], y[16], y_error[16];
    const time_mix_v7_sizes n = {2, 2, 4};
    reference_time_mix_v7(r, w, packed, &n, state, state_error, y, y_error);
    for (int i = 0; i < 16; i++)
        ASSERT(is_near(y[i], want_y[i]) && is_near(state[i], want_state[i]));
    for (int i = 0; i < 16; i++)
        ASSERT(is_near(state[16 + i], 0.5 * (i / 4 + 1)));
    PASS();
}

TEST what_stands_before_and_after_the_recurrence_is_as_worked_by_hand(void) {
    const float ones[] = {1, 1, 1, 1}, k[] = {3, 0, 0, 4}, halves[] = {.5f, .5f, .5f, .5f};
    const float v[] = {1, 1, 1, 5}, first[] = {3, 3, 3, 1}, gate[] = {.25f, .25f, .25f, .25f};
    const double want[] = {1.5, 0, 0, 2, 1.5, 1.5, 1.5, 4, .5, .5, .5, .5, .6, 0, 0, .8};
    const time_mix_v7_sizes n = {1, 1, 4};
    time_mix_v7_inputs x = {
        .k = k, .v = v, .a = halves, .k_k = ones, .k_a = ones, .v_gate = gate, .v_first = first};
    double packed[16], magnitude[16], y[] = {1, 3, 1, 3}, error[4];
    reference_time_mix_v7_prepare(&x, &n, packed, magnitude);
    for (int i = 0; i < 16; i++)
        ASSERT(is_near(packed[i], want[i]));
    x.v_gate = NULL;
    reference_time_mix_v7_prepare(&x, &n, packed, magnitude);
    ASSERT(packed[4] == 1 && packed[7] == 5);

    /* Normalised -1, 1, -1, 1; times 2 and 1 more; the bonus is 1 * 2 * 3 = 6 times v. */
    const float r[] = {1, 0, 0, 0}, g[] = {1, 1, 2, .5f}, r_k[] = {3, 1, 1, 1};
    const float norm_w[] = {2, 2, 2, 2}, kv[16] = {2, 9, 9, 9, 1, 0, 0, 2};
    x = (time_mix_v7_inputs){.r = r, .g = g, .r_k = r_k, .norm_w = norm_w, .norm_b = ones};
    reference_time_mix_v7_finish(&x, &n, kv, y, error);
    const double finished[] = {5, 3, -2, 7.5};
    for (int i = 0; i < 4; i++)
        ASSERT(is_near(y[i], finished[i]));
    double bonus[] = {1, 1, 1, 1};
    reference_time_first_v7(r_k, r, kv, &n, bonus, magnitude);
    ASSERT(bonus[0] == 7 && bonus[1] == 1 && bonus[3] == 13);
    PASS();
}

/* --- against the definition --- */

enum { TOKENS = 256, HEADS = 2, SIZE = 64, DIM = HEADS * SIZE, VALUES = TOKENS * DIM };

/* r, w and packed as a model has them: decays and rates from 0 to 1, kk of unit length. */
typedef struct {
    float r[VALUES], w[VALUES], packed[4 * VALUES], state[DIM * SIZE];
} inputs;

static void draw_inputs(inputs *x) {
    rng random = rng_new(7, "time mix");
    fill_f32(&random, INPUT_UNIFORM, x->r, VALUES);
    fill_f32(&random, INPUT_UNIFORM, x->w, VALUES);
    fill_f32(&random, INPUT_UNIFORM, x->packed, 4 * VALUES);
    fill_f32(&random, INPUT_UNIFORM, x->state, DIM * SIZE);
    for (size_t i = 0; i < VALUES; i++) {
        x->w[i] = (float)reference_decay(4 * (double)x->w[i]);
        x->packed[2 * VALUES + i] = (float)reference_sigmoid(4 * (double)x->packed[2 * VALUES + i]);
    }
    double unit[VALUES], magnitude[VALUES];
    reference_l2_norm(x->packed + 3 * VALUES, TOKENS * HEADS, SIZE, 1e-12, unit, magnitude);
    for (size_t i = 0; i < VALUES; i++)
        x->packed[3 * VALUES + i] = (float)unit[i];
}

/* S = S (diag(w) - kk (kk * a)^T) + v k^T with the matrix in brackets written out, y = S r. */
static void define_token(const inputs *x, size_t t, size_t head, double S[SIZE][SIZE], double *y) {
    size_t at = t * DIM + head * SIZE;
    const float *k = x->packed + at, *v = k + VALUES, *a = k + 2 * VALUES, *kk = k + 3 * VALUES;
    double next[SIZE][SIZE];
    for (size_t i = 0; i < SIZE; i++)
        for (size_t j = 0; j < SIZE; j++) {
            next[i][j] = (double)v[i] * (double)k[j];
            for (size_t l = 0; l < SIZE; l++) {
                double change = -(double)kk[l] * ((double)kk[j] * (double)a[j]);
                next[i][j] += S[i][l] * ((l == j ? (double)x->w[at + j] : 0) + change);
            }
        }
    for (size_t i = 0; i < SIZE; i++) {
        y[i] = 0;
        for (size_t j = 0; j < SIZE; j++) {
            S[i][j] = next[i][j];
            y[i] += S[i][j] * (double)x->r[at + j];
        }
    }
}

static inputs x;
static double state[DIM * SIZE], errors[DIM * SIZE], y[VALUES], y_errors[VALUES];

static void run_reference(void) {
    const time_mix_v7_sizes n = {TOKENS, HEADS, SIZE};
    draw_inputs(&x);
    for (size_t i = 0; i < DIM * SIZE; i++)
        state[i] = (double)x.state[i];
    reference_time_mix_v7(x.r, x.w, x.packed, &n, state, errors, y, y_errors);
}

TEST the_recurrence_over_256_tokens_is_that_of_its_definition(void) {
    run_reference();
    for (size_t head = 0; head < HEADS; head++) {
        double S[SIZE][SIZE], want[SIZE];
        for (size_t i = 0; i < SIZE * SIZE; i++)
            S[i / SIZE][i % SIZE] = (double)x.state[head * SIZE * SIZE + i];
        for (size_t t = 0; t < TOKENS; t++) {
            define_token(&x, t, head, S, want);
            for (size_t i = 0; i < SIZE; i++)
                ASSERT(fabs(want[i] - y[t * DIM + head * SIZE + i]) < 1e-12);
        }
        for (size_t i = 0; i < SIZE * SIZE; i++)
            ASSERT(fabs(S[i / SIZE][i % SIZE] - state[head * SIZE * SIZE + i]) < 1e-12);
    }
    PASS();
}

/* What a rounding of the state is worth fades with the state: 256 tokens are not much worse than 1.
 */
TEST errors_of_the_recurrence_do_not_grow_without_limit(void) {
    run_reference();
    double first = 0, last = 0;
    for (size_t i = 0; i < DIM; i++) {
        first += y_errors[i];
        last += y_errors[VALUES - DIM + i];
    }
    ASSERT(first > 0 && last > first / 10 && last < 10 * first);
    PASS();
}

/* --- in chunks --- */

/* Rows first to first + count - 1 of each part of packed, as a launch of so many tokens reads them.
 */
static void put_packed_rows(size_t first, size_t count, slice at) {
    static float rows[4 * VALUES];
    for (size_t part = 0; part < 4; part++)
        memcpy(rows + part * count * DIM, x.packed + part * VALUES + first * DIM,
               count * DIM * sizeof *rows);
    support_write(at, rows, 4 * count * DIM * sizeof *rows);
}

static slice take_rows(slice s, size_t first, size_t count) {
    return slice_part(s.buffer, first * DIM * sizeof(float), count * DIM * sizeof(float));
}

/* The prompt through a kernel in chunks of so many tokens: all y, then the state. */
static bool run_in_chunks(library *lib, const kernel *k, size_t chunk, float *out, err *e) {
    slice kept = support_buffer(x.state, sizeof x.state), r = support_buffer(x.r, sizeof x.r),
          w = support_buffer(x.w, sizeof x.w), made = support_buffer(NULL, sizeof x.r),
          packed = support_buffer(x.packed, sizeof x.packed);
    bool ok = true;
    for (size_t first = 0; ok && first < TOKENS; first += chunk) {
        size_t count = chunk < TOKENS - first ? chunk : TOKENS - first;
        put_packed_rows(first, count, packed);
        tape *t = tape_new(lib);
        ok = time_mix_v7_record(t, k, take_rows(r, first, count), take_rows(w, first, count),
                                packed, kept, take_rows(made, first, count), (uint32_t)count, HEADS,
                                SIZE, e) &&
             tape_play(t, PLAY_WHOLE, NULL, NULL, e);
        tape_free(t);
    }
    if (ok)
        memcpy(out, support_read(made), VALUES * sizeof *out);
    if (ok)
        memcpy(out + VALUES, support_read(kept), sizeof x.state);
    return ok;
}

TEST chunks_of_any_size_give_the_bits_of_token_by_token(void) {
    static float one[VALUES + DIM * SIZE], many[VALUES + DIM * SIZE];
    static const size_t chunks[] = {2, 7, 33, 64, 100, TOKENS};
    draw_inputs(&x);
    err e = {0};
    library *lib = library_new(support_get_device(), NULL, &e);
    ASSERTm(e.text, lib);
    for (size_t k = 0; k < time_mix_v7_op.kernel_count; k++) {
        const kernel *which = &time_mix_v7_op.kernels[k];
        bool ok = run_in_chunks(lib, which, 1, one, &e);
        support_end();
        ASSERTm(e.text, ok);
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
            ok = run_in_chunks(lib, which, chunks[c], many, &e);
            support_end();
            ASSERTm(e.text, ok);
            ASSERT_MEM_EQ(one, many, sizeof one);
        }
    }
    library_free(lib);
    PASS();
}

/* --- what is refused --- */

static buffer memory = {.label = "memory", .bytes = 1 << 20};
static tape *nowhere; /* nothing gets as far as being recorded */

#define ASSERT_REFUSED(call, words)                                                                \
    do {                                                                                           \
        err e = {0};                                                                               \
        ASSERT_FALSE(call);                                                                        \
        ASSERTm(e.text, strstr(e.text, words));                                                    \
    } while (0)

TEST heads_that_are_not_whole_float4s_are_refused(void) {
    slice s = slice_part(&memory, 0, 1 << 20);
    const kernel *k = &time_mix_v7_op.kernels[0];
    ASSERT_REFUSED(time_mix_v7_record(nowhere, k, s, s, s, s, s, 1, 2, 6, &e),
                   "multiple of 4, not 6");
    ASSERT_REFUSED(time_mix_v7_record(nowhere, k, s, s, s, s, s, 1, 2, 260, &e), "at most 256");
    ASSERT_REFUSED(time_mix_v7_record(nowhere, k, s, s, s, s, s, 1, 2, 0, &e), "at least 1");
    ASSERT_REFUSED(time_mix_v7_record(nowhere, k, s, s, s, s, s, 1 << 20, 1 << 10, 64, &e),
                   "32-bit");
    slice odd = slice_part(&memory, 4, 1 << 10);
    ASSERT_REFUSED(time_mix_v7_record(nowhere, k, s, s, s, odd, s, 1, 1, 4, &e), "multiple of 16");
    const time_mix_v7_slices all = {s, s, s, s, s, s, s, s, s, s, s, s, s};
    k = &time_mix_v7_token_op.kernels[0];
    ASSERT_REFUSED(time_mix_v7_token_record(nowhere, k, &all, odd, s, 1, 4, 1e-3f, &e),
                   "multiple of 16");
    PASS();
}

TEST unknown_activations_and_products_that_do_not_fit_are_refused(void) {
    slice s = slice_part(&memory, 0, 1 << 20), w = slice_part(&memory, 0, 4 * 8 * 8);
    ASSERT_REFUSED(add_activate_record(nowhere, &add_activate_op.kernels[0], s, s, 1, 4, false,
                                       ACTIVATION_COUNT, &e),
                   "activation");
    product p = {{{.w = w, .x = s, .y = s, .format = &format_f32, .rows = 8, .columns = 8}},
                 .tokens = 1};
    const kernel *k = &matvec_mixed_op.kernels[0];
    ASSERT_REFUSED(product_record(nowhere, k, &p, &e), "1 to 7 products");
    p.count = 1;
    p.items[0].columns = 6;
    ASSERT_REFUSED(product_record(nowhere, k, &p, &e), "multiple of 4 weights");
    p.items[0].columns = 4;
    ASSERT_REFUSED(product_record(nowhere, k, &p, &e), "another format");
    p.items[0].columns = 8;
    p.items[0].accumulates = true;
    p.items[0].activation = ACTIVATION_TANH;
    ASSERT_REFUSED(product_record(nowhere, k, &p, &e), "no activation");
    PASS();
}

TEST copies_with_rows_that_overlap_are_refused(void) {
    slice s = slice_part(&memory, 0, 1 << 10);
    const kernel *k = &blit_op.kernels[0];
    ASSERT_REFUSED(blit_record(nowhere, k, s, s, &(blit_shape){2, 8, 7, 8}, &e), "overlap");
    ASSERT_REFUSED(blit_record(nowhere, k, s, s, &(blit_shape){2, 8, 8, 7}, &e), "overlap");
    ASSERT_REFUSED(blit_record(nowhere, k, s, s, &(blit_shape){0, 8, 8, 8}, &e), "0 rows");
    ASSERT_REFUSED(blit_record(nowhere, k, s, s, &(blit_shape){33, 8, 8, 8}, &e), "1024 bytes");
    PASS();
}

SUITE(time_mix_suite) {
    RUN_TEST(activations_match_a_pocket_calculator);
    RUN_TEST(norms_of_small_rows_are_as_worked_by_hand);
    RUN_TEST(a_shift_mixes_each_token_with_the_one_before_it);
    RUN_TEST(softmax_of_logarithms_is_their_share);
    RUN_TEST(the_recurrence_of_two_heads_of_4_is_as_worked_by_hand);
    RUN_TEST(what_stands_before_and_after_the_recurrence_is_as_worked_by_hand);
    RUN_TEST(the_recurrence_over_256_tokens_is_that_of_its_definition);
    RUN_TEST(errors_of_the_recurrence_do_not_grow_without_limit);
    RUN_TEST(chunks_of_any_size_give_the_bits_of_token_by_token);
    RUN_TEST(heads_that_are_not_whole_float4s_are_refused);
    RUN_TEST(unknown_activations_and_products_that_do_not_fit_are_refused);
    RUN_TEST(copies_with_rows_that_overlap_are_refused);
}
