/* What the record functions of the kernels refuse. They say no before a pipeline is looked for, so
 * no device is needed. */
#include <greatest.h>
#include <string.h>

#include "kernels/kernels.h"

SUITE(record_suite);

static buffer memory = {.label = "memory", .bytes = 1 << 20};
static tape *nowhere; /* nothing gets as far as being recorded */

static slice take(size_t offset, size_t bytes) {
    return slice_part(&memory, offset, bytes);
}

/* The call was refused, and the error names the kernel and says what is wrong. */
#define ASSERT_REFUSED(call, kernel, words)                                                        \
    do {                                                                                           \
        err e = {0};                                                                               \
        ASSERT_FALSE(call);                                                                        \
        ASSERTm(e.text, strstr(e.text, kernel) && strstr(e.text, words));                          \
    } while (0)

TEST rows_that_are_not_whole_blocks_are_refused_and_not_cut(void) {
    slice w = take(0, 18 * 64), x = take(0, 4096), y = take(0, 4096);
    const struct {
        const char *kernel;
        uint32_t in_dim;
        const char *words;
    } wrong[] = {{"matvec_q4_0", 65, "65"},
                 {"matvec_q4_0_accumulate", 63, "63"},
                 {"multi_token_matvec_q4_0", 65, "65"},
                 {"multi_token_matvec_q4_0_reuse", 65, "blocks of 32"},
                 {"matvec_q4_1", 33, "blocks of 32"},
                 {"matvec_q5_0", 48, "blocks of 32"},
                 {"matvec_q5_1", 16, "blocks of 32"},
                 {"matvec_q5_k", 288, "blocks of 256"},
                 {"matvec_q8_0_vec16", 48, "blocks of 32"},
                 {"matvec_q4_k_vec16", 576, "blocks of 256"},
                 {"multi_token_matvec_q6_k_accumulate_reuse", 128, "blocks of 256"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ASSERT_REFUSED(matvec_record(nowhere, op_find_kernel(&matvec_op, wrong[i].kernel), w, x, y,
                                     32, wrong[i].in_dim, 1, &e),
                       wrong[i].kernel, wrong[i].words);
    const kernel *reuse = op_find_kernel(&matvec_op, "multi_token_matvec_f32_reuse");
    ASSERT_REFUSED(matvec_record(nowhere, reuse, take(0, 4 * 7), x, y, 1, 7, 1, &e), reuse->name,
                   "multiple of 4");
    const product three = {{{.w = w, .x = x, .y = w, .rows = 1, .columns = 63},
                            {.w = w, .y = w, .rows = 1},
                            {.w = w, .y = w, .rows = 1}},
                           .count = 3,
                           .tokens = 1};
    ASSERT_REFUSED(product_record(nowhere, &matvec_batched_op.kernels[0], &three, &e),
                   "matvec_q4_0_batched", "63");
    PASS();
}

TEST weights_of_another_type_are_refused(void) {
    const kernel *k = op_find_kernel(&matvec_op, "matvec_q4_0");
    slice q8_0 = take(0, 34 * 64), x = take(0, 4096), y = take(0, 4096);
    ASSERT_REFUSED(matvec_record(nowhere, k, q8_0, x, y, 32, 64, 1, &e), k->name, "another format");
    PASS();
}

TEST many_tokens_need_a_kernel_for_them(void) {
    const kernel *k = op_find_kernel(&matvec_op, "matvec_q8_0_vec16");
    slice w = take(0, 34 * 64), x = take(0, 4096), y = take(0, 4096);
    ASSERT_REFUSED(matvec_record(nowhere, k, w, x, y, 32, 64, 2, &e), k->name,
                   "'batch' to be 1, not 2");
    k = op_find_kernel(&matvec_op, "multi_token_matvec_q8_0_reuse");
    ASSERT_REFUSED(matvec_record(nowhere, k, w, x, y, 32, 64, 0, &e), k->name, "empty");
    ASSERT_REFUSED(matvec_record(nowhere, k, w, x, y, 32, 64, 17, &e), k->name, "4096");
    PASS();
}

TEST rows_that_are_too_long_to_be_near_are_refused(void) {
    const kernel *k = op_find_kernel(&matvec_op, "matvec_q4_0_bulk");
    slice w = take(0, 4352 / 32 * 18), x = take(0, 4 * 4352), y = take(0, 4);
    ASSERT_REFUSED(matvec_record(nowhere, k, w, x, y, 1, 4352, 1, &e), k->name, "at most 4096");
    const shape wide = {{1, 4352}};
    err why = {0};
    ASSERT_FALSE(op_takes(&matvec_op, k, &wide, &why));
    ASSERTm(why.text, strstr(why.text, "at most 4096"));
    PASS();
}

TEST a_hidden_that_threadgroup_memory_cannot_hold_is_refused(void) {
    const kernel *k = &rmsnorm_matvec_op.kernels[1];
    slice x = take(0, 4 * 8192), w = take(0, 8192 / 32 * 18), y = take(0, 4);
    const product p = {
        {{.w = w, .x = x, .y = y, .rows = 1, .columns = 8192}}, .tokens = 1, .norm_w = x};
    ASSERT_REFUSED(product_record(nowhere, k, &p, &e), "megakernel_rmsnorm_matvec",
                   "at most 8184, not 8192");
    PASS();
}

TEST vectors_that_are_short_or_badly_aligned_are_refused(void) {
    const kernel *k = op_find_kernel(&matvec_op, "matvec_q4_0");
    slice w = take(0, 18 * 64), x = take(0, 256), y = take(0, 128);
    ASSERT_REFUSED(matvec_record(nowhere, k, w, take(0, 252), y, 32, 64, 1, &e), k->name, "252");
    ASSERT_REFUSED(matvec_record(nowhere, k, w, x, take(0, 124), 32, 64, 1, &e), k->name, "124");
    ASSERT_REFUSED(matvec_record(nowhere, k, w, take(4, 256), y, 32, 64, 1, &e), k->name,
                   "multiple of 16");
    ASSERT_REFUSED(matvec_record(nowhere, k, take(1, 18 * 64), x, y, 32, 64, 1, &e), k->name,
                   "multiple of 2");
    /* What loads 16 bytes at a time, and a row that is not whole ones. */
    k = op_find_kernel(&matvec_op, "matvec_q4_k_stream");
    ASSERT_REFUSED(matvec_record(nowhere, k, take(8, 144), take(0, 1024), y, 1, 256, 1, &e),
                   k->name, "multiple of 16");
    k = op_find_kernel(&matvec_op, "matvec_f16_stream");
    ASSERT_REFUSED(matvec_record(nowhere, k, w, x, y, 1, 12, 1, &e), k->name, "multiple of 8");
    ASSERT_REFUSED(buffer_copy_record(nowhere, &buffer_copy_op.kernels[0], x, y, 0, &e),
                   "buffer_copy", "empty");
    ASSERT_REFUSED(buffer_copy_record(nowhere, &buffer_copy_op.kernels[0], x, y, 64, &e),
                   "buffer_copy", "dst has 128 bytes");
    PASS();
}

TEST only_the_kernel_for_many_rows_takes_many_rows(void) {
    slice x = take(0, 8 * 64);
    for (size_t k = 0; k < 2; k++)
        ASSERT_REFUSED(rmsnorm_record(nowhere, &rmsnorm_op.kernels[k], x, x, x, 2, 64, 1e-5f, &e),
                       rmsnorm_op.kernels[k].name, "'rows' to be 1, not 2");
    PASS();
}

TEST odd_heads_and_rows_outside_the_cache_are_refused(void) {
    slice a = take(0, 4 * 192), cache = take(4096, 4 * 192 * 3);
    ASSERT_REFUSED(
        rope_apply_record(nowhere, &rope_apply_op.kernels[0], a, 1, 63, param_u32(0), 1e4f, &e),
        "rope_apply", "63");
    ASSERT_REFUSED(rope_apply_dual_record(nowhere, &rope_apply_dual_op.kernels[0], a, a, 1, 1, 63,
                                          param_u32(0), 1e4f, &e),
                   "rope_apply_dual", "63");
    const kernel *k = &kv_cache_copy_op.kernels[0];
    ASSERT_REFUSED(kv_cache_copy_record(nowhere, k, a, a, cache, cache, 192, param_u32(3), &e),
                   k->name, "row 3");
    ASSERT_REFUSED(kv_cache_copy_record(nowhere, k, a, a, cache, a, 192, param_u32(0), &e), k->name,
                   "whole rows");
    PASS();
}

TEST attention_outside_its_caches_or_limits_is_refused(void) {
    const kernel *k = &decode_attention_op.kernels[0], *p = &prefill_attention_op.kernels[1];
    slice q = take(0, 65536), cache = take(65536, 4 * 64 * 3 * 10); /* 10 rows of 3 heads of 64 */
#define DECODE(caches, heads, kv_heads, head_dim, kv_len)                                          \
    decode_attention_record(nowhere, k, q, caches, cache, q, heads, kv_heads, head_dim,            \
                            param_u32(kv_len), 1, &e)
    ASSERT_REFUSED(DECODE(cache, 9, 3, 257, 1), k->name, "257");
    ASSERT_REFUSED(DECODE(cache, 9, 2, 64, 1), k->name, "equally, not 9 of 2");
    ASSERT_REFUSED(DECODE(cache, 9, 0, 64, 1), k->name, "equally, not 9 of 0");
    ASSERT_REFUSED(DECODE(cache, 9, 3, 64, 0), k->name, "0 rows");
    ASSERT_REFUSED(DECODE(cache, 9, 3, 64, 11), k->name, "11 rows of caches of 10");
    ASSERT_REFUSED(DECODE(take(0, 4 * 64 * 3 * 9), 9, 3, 64, 1), k->name, "the same whole rows");
    ASSERT_REFUSED(DECODE(take(4, 4 * 64 * 3 * 10), 9, 3, 64, 1), k->name, "multiple of 16");
#undef DECODE
    ASSERT_REFUSED(
        prefill_attention_record(nowhere, p, q, cache, cache, q, 4, 9, 3, 64, param_u32(7), 1, &e),
        p->name, "11 rows of caches of 10");
    ASSERT_REFUSED(prefill_attention_record(nowhere, p, take(0, 4096), cache, cache, q, 4, 9, 3, 64,
                                            param_u32(0), 1, &e),
                   p->name, "q has 4096");
    PASS();
}

TEST many_tokens_that_do_not_fit_are_refused(void) {
    slice a = take(0, 4 * 192 * 4), cache = take(65536, 4 * 192 * 5);
    const kernel *k = &kv_cache_copy_tokens_op.kernels[0];
    ASSERT_REFUSED(
        kv_cache_copy_tokens_record(nowhere, k, a, a, cache, cache, 4, 192, param_u32(2), &e),
        k->name, "4 rows from row 2");
    ASSERT_REFUSED(
        kv_cache_copy_tokens_record(nowhere, k, a, a, cache, cache, 5, 192, param_u32(0), &e),
        k->name, "k_src");
    PASS();
}

TEST biases_tables_of_frequencies_and_rings_that_do_not_fit_are_refused(void) {
    slice a = take(0, 4 * 192), state = take(4096, DECODE_STATE_BYTES);
    const kernel *k = &bias_add_op.kernels[0];
    ASSERT_REFUSED(bias_add_record(nowhere, k, a, a, 2, 192, &e), k->name, "a has 768");
    ASSERT_REFUSED(bias_add_record(nowhere, k, a, take(0, 8), 1, 3, &e), k->name, "b has 8");
    ASSERT_REFUSED(bias_add_record(nowhere, k, a, a, 0, 3, &e), k->name, "empty");
    k = &rope_apply_table_op.kernels[0];
#define ROPE(head_dim, freqs)                                                                      \
    rope_apply_table_record(nowhere, k, a, a, 1, 3, 1, head_dim, param_u32(0), freqs, &e)
    ASSERT_REFUSED(ROPE(63, a), k->name, "63");
    ASSERT_REFUSED(ROPE(64, take(0, 4 * 31)), k->name, "freqs has 124");
    ASSERT_REFUSED(ROPE(66, a), k->name, "q has 768");
#undef ROPE
    k = &decode_advance_op.kernels[0];
    ASSERT_REFUSED(decode_advance_record(nowhere, k, a, state, a, 193, &e), k->name, "history has");
    ASSERT_REFUSED(decode_advance_record(nowhere, k, a, state, a, 0, &e), k->name, "empty");
    ASSERT_REFUSED(decode_advance_record(nowhere, k, a, take(0, 12), a, 1, &e), k->name,
                   "state has 12");
    PASS();
}

TEST tables_and_ids_that_do_not_fit_are_refused(void) {
    slice a = take(0, 4096), ids = take(0, 4 * 10);
    const kernel *k = op_find_kernel(&embedding_lookup_op, "embedding_lookup_q8_0");
    ASSERT_REFUSED(embedding_lookup_record(nowhere, k, take(0, 18 * 2), ids, a, 1, 32, 2, &e),
                   k->name, "another format");
    ASSERT_REFUSED(embedding_lookup_record(nowhere, k, take(0, 34 * 2), ids, a, 1, 33, 2, &e),
                   k->name, "whole Q8_0 blocks of 32");
    ASSERT_REFUSED(embedding_lookup_record(nowhere, k, take(0, 34 * 2), ids, a, 11, 32, 2, &e),
                   k->name, "ids has 40");
    k = &repetition_penalty_op.kernels[0];
    ASSERT_REFUSED(repetition_penalty_record(nowhere, k, a, ids, param_u32(11), 99, 1.1f, &e),
                   k->name, "room for 10 ids");
    ASSERT_REFUSED(repetition_penalty_record(nowhere, k, a, ids, param_u32(3), 99, 0, &e), k->name,
                   "above 0");
    PASS();
}

SUITE(record_suite) {
    RUN_TEST(rows_that_are_not_whole_blocks_are_refused_and_not_cut);
    RUN_TEST(weights_of_another_type_are_refused);
    RUN_TEST(many_tokens_need_a_kernel_for_them);
    RUN_TEST(rows_that_are_too_long_to_be_near_are_refused);
    RUN_TEST(a_hidden_that_threadgroup_memory_cannot_hold_is_refused);
    RUN_TEST(vectors_that_are_short_or_badly_aligned_are_refused);
    RUN_TEST(only_the_kernel_for_many_rows_takes_many_rows);
    RUN_TEST(odd_heads_and_rows_outside_the_cache_are_refused);
    RUN_TEST(attention_outside_its_caches_or_limits_is_refused);
    RUN_TEST(many_tokens_that_do_not_fit_are_refused);
    RUN_TEST(biases_tables_of_frequencies_and_rings_that_do_not_fit_are_refused);
    RUN_TEST(tables_and_ids_that_do_not_fit_are_refused);
}
