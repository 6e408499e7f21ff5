/* The oracles of attention, of what prefill and sampling need around it, and of the bandwidth
 * kernels, against values worked out by hand. The others are in test_reference.c. */
#include <greatest.h>
#include <math.h>

#include "reference/quant.h"
#include "reference/reference.h"

SUITE(oracles_suite);

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
