/* The oracles and the random numbers, against values worked out by hand. What
 * every kernel is measured with must not be measured by itself. */
#include <float.h>
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "harness/check/fill.h"
#include "harness/check/op.h"
#include "harness/device/elem.h"
#include "kernels/kernels.h"
#include "reference/quant.h"
#include "reference/reference.h"

SUITE(reference_suite);
SUITE(oracles_suite);

/* --- half and bfloat --- */

TEST every_half_survives_a_round_trip_through_float(void) {
    for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
        float value = half_to_float((uint16_t)bits);
        uint16_t back = half_from_float(value);
        if ((bits & 0x7FFF) > 0x7C00)
            ASSERT(isnan(value) && (back & 0x7FFF) > 0x7C00 && (back & 0x8000) == (bits & 0x8000));
        else
            ASSERT_EQ_FMT((unsigned)bits, (unsigned)back, "%x");
    }
    PASS();
}

/* The value of a half from its definition. */
static double define_half(uint32_t bits) {
    int exponent = (int)(bits >> 10 & 31), mantissa = (int)(bits & 0x3FF);
    return exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
}

TEST every_finite_half_has_the_value_of_its_definition(void) {
    for (uint32_t bits = 0; bits < 0x7C00; bits++) {
        ASSERT((double)half_to_float((uint16_t)bits) == define_half(bits));
        ASSERT((double)half_to_float((uint16_t)(bits | 0x8000)) == -define_half(bits));
    }
    ASSERT(isinf(half_to_float(0x7C00)) && half_to_float(0xFC00) < 0);
    PASS();
}

/* Between each pair of neighbours: just below the middle, the middle, just above it. */
TEST floats_between_two_halves_round_to_nearest_even(void) {
    for (uint32_t bits = 0; bits < 0x7BFF; bits++) {
        float middle = (float)((define_half(bits) + define_half(bits + 1)) / 2);
        uint32_t even = bits + (bits & 1);
        ASSERT_EQ_FMT((unsigned)even, (unsigned)half_from_float(middle), "%x");
        ASSERT_EQ_FMT((unsigned)bits, (unsigned)half_from_float(nextafterf(middle, 0)), "%x");
        ASSERT_EQ_FMT((unsigned)bits + 1, (unsigned)half_from_float(nextafterf(middle, 1e9f)),
                      "%x");
    }
    ASSERT_EQ(0x7BFF, half_from_float(nextafterf(65520, 0)));
    ASSERT_EQ(0x7C00, half_from_float(65520));
    ASSERT_EQ(0xFC00, half_from_float(-INFINITY));
    PASS();
}

TEST bfloats_round_to_nearest_even_and_keep_nan(void) {
    ASSERT_EQ(0x3F80, bfloat_from_float(1));
    ASSERT_EQ(0x3F80, bfloat_from_float(1 + 0x1p-8f));           /* the middle: to even */
    ASSERT_EQ(0x3F82, bfloat_from_float(1 + 0x1p-7f + 0x1p-8f)); /* the next middle: up */
    ASSERT_EQ(0x3F81, bfloat_from_float(1 + 0x1p-8f + FLT_EPSILON));
    ASSERT_EQ(0x7F80, bfloat_from_float(FLT_MAX));
    ASSERT(isnan(bfloat_to_float(bfloat_from_float(NAN))));
    ASSERT(bfloat_to_float(0xC040) == -3.0f);
    PASS();
}

TEST a_double_is_rounded_to_half_once_and_not_twice(void) {
    uint16_t half;
    /* Just above the middle of 1 and its neighbour: as a float it would be the middle itself. */
    elem_write(ELEM_F16, &half, 0, 1 + 0x1p-11 + 0x1p-40);
    ASSERT_EQ(0x3C01, half);
    elem_write(ELEM_F16, &half, 0, 1 + 0x1p-11);
    ASSERT_EQ(0x3C00, half);
    elem_write(ELEM_BF16, &half, 0, -(1 + 0x1p-8 + 0x1p-40));
    ASSERT_EQ(0xBF81, half);
    elem_write(ELEM_F16, &half, 0, 1e300);
    ASSERT_EQ(0x7C00, half);
    PASS();
}

TEST elements_of_each_type_are_written_and_read_back(void) {
    const double values[] = {0, 1, 100, -100, 3.75};
    for (elem type = 0; type < ELEM_COUNT; type++)
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            uint64_t room[2] = {0, 0};
            double want = elem_is_float(type) ? values[i] : trunc(values[i]);
            if (elem_get_name(type)[0] == 'u' && want < 0)
                want = 0;
            elem_write(type, room, 1, values[i]);
            ASSERT(elem_read(type, room, 1) == want);
            elem found;
            ASSERT(elem_find(elem_get_name(type), &found) && found == type);
        }
    int8_t small;
    elem_write(ELEM_I8, &small, 0, 1000);
    ASSERT_EQ(127, small);
    uint64_t large;
    elem_write(ELEM_U64, &large, 0, 1e30);
    ASSERT(large == UINT64_MAX);
    PASS();
}

/* --- random numbers and distributions --- */

TEST the_same_seed_and_name_give_the_same_numbers_everywhere(void) {
    rng a = rng_new(1, "rmsnorm/3x576/normal"), b = rng_new(1, "rmsnorm/3x576/zeros");
    ASSERT_EQ_FMT((unsigned long long)0x99fbe958cdb731b5u, (unsigned long long)rng_next(&a),
                  "%llx");
    ASSERT_EQ_FMT((unsigned long long)0xf3988b71489cb0c9u, (unsigned long long)rng_next(&a),
                  "%llx");
    ASSERT(rng_next(&b) != (uint64_t)0x99fbe958cdb731b5u);
    float values[3];
    rng r = rng_new(7, "");
    fill_f32(&r, INPUT_NORMAL, values, 3);
    ASSERT(values[0] == 0x1.1b1eeap-4f && values[1] == 0x1.76b59cp-2f &&
           values[2] == -0x1.103c84p-2f);
    PASS();
}

TEST distributions_stay_in_their_ranges(void) {
    enum { N = 20000 };
    static float v[N];
    for (distribution d = 0; d < INPUT_COUNT; d++) {
        rng r = rng_new(3, distribution_get_name(d));
        fill_f32(&r, d, v, N);
        double sum = 0, squares = 0, largest = 0;
        for (int i = 0; i < N; i++) {
            double x = (double)v[i];
            sum += x;
            squares += x * x;
            largest = fmax(largest, fabs(x));
        }
        double mean = sum / (double)N, variance = squares / (double)N;
        if (d == INPUT_UNIFORM)
            ASSERT(largest <= 1 && fabs(mean) < 0.02 && fabs(variance - 1.0 / 3) < 0.02);
        if (d == INPUT_NORMAL) /* 0.99 * 1 + 0.01 * 900 */
            ASSERT(largest > 30 && largest < 180.1 && variance > 7 && variance < 13);
        if (d == INPUT_ZEROS)
            ASSERT(largest == 0);
        if (d == INPUT_DENORMALS)
            ASSERT(largest > 0 && largest < (double)FLT_MIN);
        if (d == INPUT_LARGE)
            ASSERT(largest > 1.9e12 && largest < 2.1e12 && fabs(mean) < 1e11);
        if (d == INPUT_SMALL)
            ASSERT(largest > 2e-3 && largest < 0.06);
        if (d == INPUT_TIES || d == INPUT_EQUAL)
            ASSERT(largest >= 0.25 && largest <= 2);
        if (d == INPUT_OUTLIER)
            ASSERT(largest >= 1000 && largest < 2001);
        if (d == INPUT_NAN)
            ASSERT(isnan(sum));
        if (d == INPUT_MIXED)
            ASSERT(largest > 1e12 && largest < 1e13);
        if (d == INPUT_NEGATIVE)
            ASSERT(largest > 1.9e12 && largest < 2.1e12 && fabs(mean + 1.25e12) < 1e10);
        distribution found;
        ASSERT(distribution_find(distribution_get_name(d), &found) && found == d);
    }
    PASS();
}

TEST cases_are_named_by_kernel_shape_and_inputs(void) {
    kernel row = {.name = "rope_apply"};
    kernel_case c = case_new(NULL, &row, &(shape){{0, 9, 64}}, INPUT_NORMAL);
    char text[64];
    ASSERT_STR_EQ("rope_apply/0x9x64/normal", c.name);
    shape_get_text(&(shape){{0}}, text, sizeof text);
    ASSERT_STR_EQ("0", text);
    PASS();
}

/* --- oracles --- */

TEST copies_write_one_row_and_leave_the_rest(void) {
    float k[] = {1, 2}, v[] = {3, 4};
    double copy[2], kc[] = {9, 9, 9, 9, 9, 9}, vc[] = {8, 8, 8, 8, 8, 8};
    reference_buffer_copy(k, 2, copy);
    ASSERT(copy[0] == 1 && copy[1] == 2);
    reference_kv_cache_copy(k, v, 2, 1, kc, vc);
    ASSERT(kc[0] == 9 && kc[1] == 9 && kc[2] == 1 && kc[3] == 2 && kc[4] == 9);
    ASSERT(vc[1] == 8 && vc[2] == 3 && vc[3] == 4 && vc[4] == 8);
    PASS();
}

TEST silu_matches_a_pocket_calculator(void) {
    float gate[] = {0, 1}, up[] = {5, -2};
    double out[2], magnitude[2];
    reference_ffn_silu(gate, up, 2, out, magnitude);
    ASSERT(out[0] == 0);
    ASSERT(fabs(out[1] + 2 * 0.7310585786300049) < 1e-15); /* -2 / (1 + 1/e) */
    PASS();
}

TEST rmsnorm_of_3_4_0_is_as_worked_by_hand(void) {
    float x[] = {3, 4, 0, 0, 0, 0}, w[] = {1, 1, 2};
    double y[6], magnitude[6];
    reference_rmsnorm(x, w, 2, 3, 0, y, magnitude); /* mean square 25/3 */
    ASSERT(fabs(y[0] - 1.0392304845413264) < 1e-15 && fabs(y[1] - 1.3856406460551018) < 1e-15);
    ASSERT(y[2] == 0);
    reference_rmsnorm(x + 3, w, 1, 3, 1e-5, y, magnitude);
    ASSERT(y[0] == 0 && y[1] == 0 && y[2] == 0);
    PASS();
}

TEST rope_at_position_0_changes_nothing_and_turns_pairs_elsewhere(void) {
    float x[] = {1, 0, 0, 1, 3, -2, 0.5f, 7};
    double y[8], magnitude[8];
    reference_rope(x, 2, 4, 0, 10000, y, magnitude);
    for (int i = 0; i < 8; i++)
        ASSERT(y[i] == (double)x[i]);
    reference_rope(x, 2, 4, 2, 10000, y, magnitude); /* angles 2 and 0.02, in both heads */
    ASSERT(fabs(y[0] - cos(2)) < 1e-15 && fabs(y[1] - sin(2)) < 1e-15);
    ASSERT(fabs(y[2] + sin(0.02)) < 1e-15 && fabs(y[3] - cos(0.02)) < 1e-15);
    ASSERT(fabs(y[4] - (3 * cos(2) + 2 * sin(2))) < 1e-14);
    ASSERT(fabs(y[7] - (0.5 * sin(0.02) + 7 * cos(0.02))) < 1e-14);
    PASS();
}

TEST rope_with_a_table_turns_each_pair_by_its_own_frequency(void) {
    const float x[] = {1, 0, 0, 1, 3, -2, 0.5f, 7}, freqs[] = {0.5f, 2};
    double y[8], magnitude[8];
    reference_rope_table(x, 2, 4, 3, freqs, y, magnitude); /* angles 1.5 and 6, in both heads */
    ASSERT(fabs(y[0] - cos(1.5)) < 1e-15 && fabs(y[1] - sin(1.5)) < 1e-15);
    ASSERT(fabs(y[2] + sin(6)) < 1e-15 && fabs(y[3] - cos(6)) < 1e-15);
    ASSERT(fabs(y[5] - (3 * sin(1.5) - 2 * cos(1.5))) < 1e-14);
    ASSERT(fabs(y[7] - (0.5 * sin(6) + 7 * cos(6))) < 1e-14 && magnitude[7] == 7.5 * 7);
    PASS();
}

TEST a_decode_step_hands_over_to_the_next(void) {
    const uint32_t before[] = {11, 22, 33, 8};
    double after[4], history[] = {1, 2, 3};
    reference_decode_advance(77, before, 3, after, history);
    ASSERT(after[0] == 77 && after[1] == 23 && after[2] == 34 && after[3] == 9);
    ASSERT(history[0] == 1 && history[1] == 2 && history[2] == 77); /* 8 is 2 in a ring of 3 */
    PASS();
}

TEST a_2x32_product_is_as_worked_by_hand(void) {
    block_q4_0 w[2] = {{.d = 0x3C00}, {.d = 0}}; /* scales 1 and 0 */
    for (size_t j = 0; j < 16; j++)
        w[0].nibbles[j] = w[1].nibbles[j] = 0x69; /* 9 - 8 = 1 first, 6 - 8 = -2 second */
    float x[64];
    for (size_t i = 0; i < 64; i++)
        x[i] = i < 32 ? (float)(i + 1) : -1;
    double y[4] = {10, 20, 30, 40}, magnitude[4] = {0, 0, 0, 0};
    reference_matvec(&format_q4_0, w, x, 2, 32, 2, y, magnitude);
    ASSERT(y[0] == 10 + 136 - 2 * 392.0); /* sums of 1..16 and of 17..32 */
    ASSERT(y[1] == 20);
    ASSERT(y[2] == 30 - 16 + 2 * 16 && y[3] == 40); /* the second x: all -1 */
    /* A weight is the difference of two terms: 9 + 8 = 17 and 6 + 8 = 14; squares of 1..16 and of
     * 17..32 are 1496 and 9944. */
    ASSERT(magnitude[0] == sqrt(17 * 17 * 1496 + 14 * 14 * 9944.0) + 638 && magnitude[1] == 20);
    ASSERT(magnitude[2] == sqrt(16 * (17 * 17 + 14 * 14)) + 46);
    PASS();
}

/* Large products are shared among threads. */
TEST rows_together_and_one_by_one_are_the_same(void) {
    enum { ROWS = 1500, COLUMNS = 4096, TOKENS = 2 };
    static float w[ROWS * COLUMNS], x[TOKENS * COLUMNS];
    static double y[2][TOKENS * ROWS], magnitude[2][TOKENS * ROWS];
    rng r = rng_new(1, "rows");
    fill_f32(&r, INPUT_NORMAL, w, ROWS * COLUMNS);
    fill_f32(&r, INPUT_NORMAL, x, TOKENS * COLUMNS);
    reference_matvec(&format_f32, w, x, ROWS, COLUMNS, TOKENS, y[0], magnitude[0]);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t t = 0; t < TOKENS; t++)
            reference_matvec(&format_f32, w + row * COLUMNS, x + t * COLUMNS, 1, COLUMNS, 1,
                             &y[1][t * ROWS + row], &magnitude[1][t * ROWS + row]);
    ASSERT(memcmp(y[0], y[1], sizeof y[0]) == 0);
    ASSERT(memcmp(magnitude[0], magnitude[1], sizeof magnitude[0]) == 0);
    PASS();
}

TEST the_maximum_skips_nan_and_takes_the_lowest_of_equals(void) {
    const float values[] = {1, NAN, 3, 3, -INFINITY};
    const uint32_t indices[] = {4, 3, 2, 1, 0};
    maximum best = reference_maximum(values, indices, 5);
    ASSERT(best.value == 3 && best.index == 1);
    best = reference_maximum(values + 1, indices + 1, 1);
    ASSERT(best.index == UINT32_MAX);
    best = reference_maximum(values + 4, indices + 4, 1);
    ASSERT(isinf(best.value) && best.index == 0);
    PASS();
}

TEST sums_belong_to_the_threadgroup_that_reads(void) {
    float data[5 * 4];
    for (int i = 0; i < 20; i++)
        data[i] = i % 4 == 0 ? (float)(1 << i / 4) : 0; /* the i-th float4 sums to 2^i */
    double sums[2], magnitude[2];
    reference_read_sums(data, 5, 2, 1, sums, magnitude); /* two threads: 0, 2, 4 and 1, 3 */
    ASSERT(sums[0] == 1 + 4 + 16 && sums[1] == 2 + 8);
    PASS();
}

/* --- the list --- */

/* Format, accumulation, tokens and variant together say which kernel it is. */
TEST kernels_of_an_op_differ_in_their_axes(void) {
    for (size_t i = 0; i < registry_count; i++)
        for (size_t k = 0; k < registry[i]->kernel_count; k++)
            for (size_t j = 0; j < k; j++) {
                const kernel *a = &registry[i]->kernels[j], *b = &registry[i]->kernels[k];
                bool is_same = a->format == b->format && a->accumulates == b->accumulates &&
                               !a->tokens == !b->tokens;
                if (is_same)
                    ASSERTm(b->name,
                            a->variant && b->variant && strcmp(a->variant, b->variant) != 0);
            }
    PASS();
}

TEST every_kernel_is_found_by_its_name_and_names_differ(void) {
    for (size_t i = 0; i < registry_count; i++) {
        ASSERT(registry_find_op(registry[i]->name) == registry[i]);
        ASSERT(registry[i]->kernel_count > 0);
        for (size_t k = 0; k < registry[i]->kernel_count; k++) {
            const op *owner = NULL;
            const kernel *row = &registry[i]->kernels[k];
            ASSERT(registry_find_kernel(row->name, &owner) == row && owner == registry[i]);
            ASSERTm(row->name, row->file && row->about && row->group > 0);
            ASSERTm(row->name, op_get_shapes(owner, row)->count > 0);
        }
    }
    ASSERT(!registry_find_op("no such op") && !registry_find_kernel("no such kernel", NULL));
    PASS();
}

SUITE(reference_suite) {
    RUN_TEST(every_half_survives_a_round_trip_through_float);
    RUN_TEST(every_finite_half_has_the_value_of_its_definition);
    RUN_TEST(floats_between_two_halves_round_to_nearest_even);
    RUN_TEST(bfloats_round_to_nearest_even_and_keep_nan);
    RUN_TEST(a_double_is_rounded_to_half_once_and_not_twice);
    RUN_TEST(elements_of_each_type_are_written_and_read_back);
    RUN_TEST(the_same_seed_and_name_give_the_same_numbers_everywhere);
    RUN_TEST(distributions_stay_in_their_ranges);
    RUN_TEST(cases_are_named_by_kernel_shape_and_inputs);
    RUN_TEST(copies_write_one_row_and_leave_the_rest);
    RUN_TEST(silu_matches_a_pocket_calculator);
    RUN_TEST(rmsnorm_of_3_4_0_is_as_worked_by_hand);
    RUN_TEST(rope_at_position_0_changes_nothing_and_turns_pairs_elsewhere);
    RUN_TEST(rope_with_a_table_turns_each_pair_by_its_own_frequency);
    RUN_TEST(a_decode_step_hands_over_to_the_next);
    RUN_TEST(a_2x32_product_is_as_worked_by_hand);
    RUN_TEST(rows_together_and_one_by_one_are_the_same);
    RUN_TEST(the_maximum_skips_nan_and_takes_the_lowest_of_equals);
    RUN_TEST(sums_belong_to_the_threadgroup_that_reads);
    RUN_TEST(kernels_of_an_op_differ_in_their_axes);
    RUN_TEST(every_kernel_is_found_by_its_name_and_names_differ);
}

/* --- attention, penalties, sums and series --- */

/* Two keys, scores 0 and ln 3: weights 1/4 and 3/4. */
static const float log3 = 1.0986122886681098f;
static const attention_roundings one = {1, 1}, none = {0, 1};

TEST attention_weighs_values_as_worked_by_hand(void) {
    const float q[] = {2}, k[] = {0, log3}, v[] = {10, 2};
    attention_sizes n = {1, 1, 1};
    double out[2], magnitude[2], l3 = (double)log3;
    reference_attention(q, k, v, &n, 1, 0, 0.5, &one, out, magnitude); /* sees only the first row */
    ASSERT(out[0] == 10 && magnitude[0] == 10);
    reference_attention(q, k, v, &n, 1, 1, 0.5, &one, out, magnitude);
    ASSERT(fabs(out[0] - 4) < 1e-6); /* 10 / 4 + 2 * 3 / 4 */
    /* |10 - 4| / 4 for the distance of score 0 from ln 3, |2 - 4| * 3 / 4 for the sum in ln 3
     */
    ASSERT(fabs(magnitude[0] - (4 + 1.5 * l3 + 1.5 * l3)) < 1e-6);
    reference_attention(q, k, v, &n, 1, 1, 0.5, &none, out, magnitude);
    ASSERT(fabs(magnitude[0] - 4) < 1e-6);
    PASS();
}

TEST attention_is_causal_and_shares_heads_in_runs(void) {
    /* Four query heads of 2 on two cache heads; no scale, so all keys seen weigh the same. */
    const float q[2 * 4 * 2] = {1}, k[3 * 2 * 2] = {5};
    const float v[] = {1, 2, 30, 40, 3, 6, 50, 80, 8, 1, 10, 0};
    const double want[] = {2, 4, 2, 4, 40, 60, 40, 60, 4, 3, 4, 3, 30, 40, 30, 40};
    attention_sizes n = {4, 2, 2};
    double out[16], magnitude[16];
    reference_attention(q, k, v, &n, 2, 1, 0, &one, out, magnitude); /* rows 0-1, then rows 0-2 */
    for (int i = 0; i < 16; i++)
        ASSERT(fabs(out[i] - want[i]) < 1e-13 && magnitude[i] > want[i] - 1e-13);
    PASS();
}

TEST attention_to_one_key_of_huge_score_is_its_value(void) {
    const float q[] = {1e12f}, k[] = {1e12f, 2e12f, -3e12f}, v[] = {7, -5, 100};
    attention_sizes n = {1, 1, 1};
    double out[1], magnitude[1];
    reference_attention(q, k, v, &n, 1, 2, 1, &one, out, magnitude);
    ASSERT(out[0] == -5 && magnitude[0] == 5);
    PASS();
}

TEST a_penalty_hits_each_token_once_and_unknown_ones_never(void) {
    const uint32_t ids[] = {2, 0, 2, 4, 2, UINT32_MAX};
    double logits[] = {-3, 5, 4, 1}, magnitude[4];
    reference_repetition_penalty(ids, 6, 4, 2, logits, magnitude);
    ASSERT(logits[0] == -6 && logits[1] == 5 && logits[2] == 2 && logits[3] == 1);
    ASSERT(magnitude[0] == 6 && magnitude[1] == 0 && magnitude[2] == 2 && magnitude[3] == 0);
    PASS();
}

TEST sums_of_halves_and_blocks_belong_to_the_threadgroup_that_reads(void) {
    uint16_t halves[3 * 4] = {0};
    for (int i = 0; i < 3; i++)
        halves[4 * i + i] = (uint16_t)(0x3C00 + 0x400 * i); /* 1, 2, 4 */
    double sums[2], magnitude[2];
    reference_read_sums_f16(halves, 3, 2, 1, sums, magnitude);
    ASSERT(sums[0] == 1 + 4 && sums[1] == 2);
    block_q4_0 blocks[3] = {{.d = 0x3C00}, {.d = 0xC000}, {.d = 0x4400}}; /* 1, -2, 4 */
    for (int j = 0; j < 16; j++)
        blocks[0].nibbles[j] = blocks[1].nibbles[j] = blocks[2].nibbles[j] = 0x97; /* -1, 1 */
    blocks[1].nibbles[15] = 0xF7;                                                  /* 7 for 1 */
    reference_read_sums_q4_0(blocks, 3, 2, 1, sums, magnitude);
    ASSERT(sums[0] == 0 && magnitude[0] == 32 + 4 * 32);
    ASSERT(sums[1] == -2 * 6 && magnitude[1] == 2 * (32 + 6));
    PASS();
}

TEST a_triad_and_a_row_of_a_table_are_as_worked_by_hand(void) {
    const float b[] = {1, -2}, c[] = {3, 5}, table[] = {1, 2, 3, 4, 5, 6};
    double out[32], magnitude[2];
    reference_triad(b, c, -2, 2, out, magnitude);
    ASSERT(out[0] == -5 && out[1] == -12 && magnitude[0] == 7 && magnitude[1] == 12);
    reference_decode_row(&format_f32, table, 1, 3, out);
    ASSERT(out[0] == 4 && out[1] == 5 && out[2] == 6);
    block_q8_0 blocks[2] = {{.d = 0}, {.d = 0x3800}}; /* 0, 0.5 */
    for (int j = 0; j < 32; j++)
        blocks[1].q[j] = (int8_t)(j - 20);
    reference_decode_row(&format_q8_0, blocks, 1, 32, out);
    for (int j = 0; j < 32; j++)
        ASSERT(out[j] == (j - 20) * 0.5);
    PASS();
}

TEST series_of_multiply_adds_are_as_worked_by_hand(void) {
    const float x[] = {1, -8};
    double out[2], magnitude[2];
    /* From 0, 1, -1 and 2: 1, 1.5, 0.5 and 2 after one round; 1.5, 1.75, 1.25 and 2 after two. */
    reference_compute_fma(x, 2, 1, 0.5, out, magnitude);
    ASSERT(out[0] == 5 && out[1] == -40 && magnitude[0] == 1 + 1.5 + 1.5 + 2 && magnitude[1] == 48);
    reference_compute_fma(x, 2, 2, 0.5, out, magnitude);
    ASSERT(out[0] == 6.5 && out[1] == -52);
    reference_compute_fma(x, 1, 1000, 0.5, out, magnitude);
    ASSERT(out[0] == 8 && magnitude[0] == 8);
    PASS();
}

SUITE(oracles_suite) {
    RUN_TEST(series_of_multiply_adds_are_as_worked_by_hand);
    RUN_TEST(attention_weighs_values_as_worked_by_hand);
    RUN_TEST(attention_is_causal_and_shares_heads_in_runs);
    RUN_TEST(attention_to_one_key_of_huge_score_is_its_value);
    RUN_TEST(a_penalty_hits_each_token_once_and_unknown_ones_never);
    RUN_TEST(sums_of_halves_and_blocks_belong_to_the_threadgroup_that_reads);
    RUN_TEST(a_triad_and_a_row_of_a_table_are_as_worked_by_hand);
}
