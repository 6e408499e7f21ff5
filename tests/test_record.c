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
    const op *ops[] = {&matvec_q4_0_op, &matvec_q4_0_accumulate_op};
    for (size_t k = 0; k < ops[0]->kernel_count; k++)
        ASSERT_REFUSED(matvec_q4_0_record(nowhere, &ops[0]->kernels[k], w, x, y, 32, 65, &e),
                       ops[0]->kernels[k].name, "65");
    for (size_t k = 0; k < ops[1]->kernel_count; k++)
        ASSERT_REFUSED(
            matvec_q4_0_accumulate_record(nowhere, &ops[1]->kernels[k], w, x, y, 32, 63, &e),
            ops[1]->kernels[k].name, "63");
    PASS();
}

TEST weights_of_another_type_are_refused(void) {
    const kernel_row *k = &matvec_q4_0_op.kernels[0];
    slice q8_0 = take(0, 34 * 64), x = take(0, 4096), y = take(0, 4096);
    ASSERT_REFUSED(matvec_q4_0_record(nowhere, k, q8_0, x, y, 32, 64, &e), k->name, "another type");
    PASS();
}

TEST vectors_that_are_short_or_badly_aligned_are_refused(void) {
    const kernel_row *k = &matvec_q4_0_op.kernels[0];
    slice w = take(0, 18 * 64), x = take(0, 256), y = take(0, 128);
    ASSERT_REFUSED(matvec_q4_0_record(nowhere, k, w, take(0, 252), y, 32, 64, &e), k->name, "252");
    ASSERT_REFUSED(matvec_q4_0_record(nowhere, k, w, x, take(0, 124), 32, 64, &e), k->name, "124");
    ASSERT_REFUSED(matvec_q4_0_record(nowhere, k, w, take(4, 256), y, 32, 64, &e), k->name,
                   "multiple of 16");
    ASSERT_REFUSED(buffer_copy_record(nowhere, &buffer_copy_op.kernels[0], x, y, 0, &e),
                   "buffer_copy", "empty");
    ASSERT_REFUSED(buffer_copy_record(nowhere, &buffer_copy_op.kernels[0], x, y, 64, &e),
                   "buffer_copy", "dst has 128 bytes");
    PASS();
}

TEST only_the_kernel_for_many_rows_takes_many_rows(void) {
    slice x = take(0, 8 * 64);
    for (size_t k = 0; k < 3; k++)
        ASSERT_REFUSED(rmsnorm_record(nowhere, &rmsnorm_op.kernels[k], x, x, x, 2, 64, 1e-5f, &e),
                       rmsnorm_op.kernels[k].name, "rmsnorm_rows");
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
    const kernel_row *k = &kv_cache_copy_op.kernels[0];
    ASSERT_REFUSED(kv_cache_copy_record(nowhere, k, a, a, cache, cache, 192, param_u32(3), &e),
                   k->name, "row 3");
    ASSERT_REFUSED(kv_cache_copy_record(nowhere, k, a, a, cache, a, 192, param_u32(0), &e), k->name,
                   "whole rows");
    PASS();
}

SUITE(record_suite) {
    RUN_TEST(rows_that_are_not_whole_blocks_are_refused_and_not_cut);
    RUN_TEST(weights_of_another_type_are_refused);
    RUN_TEST(vectors_that_are_short_or_badly_aligned_are_refused);
    RUN_TEST(only_the_kernel_for_many_rows_takes_many_rows);
    RUN_TEST(odd_heads_and_rows_outside_the_cache_are_refused);
}
