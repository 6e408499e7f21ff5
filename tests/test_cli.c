/* Tests of the command line: ./assay is run as a child and judged by its output and exit status. Most are
 * transcripts (tests/transcripts/); those here ask the registry or the devices what to expect. */
#include <greatest.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "harness/device/device.h"
#include "kernels/kernels.h"
#include "transcript.h"

SUITE(cli_suite);

/* A kernel of one token skips the batch of 8; those of many take both batches. */
TEST cases_are_chosen_by_axes(void) {
    char counts[64];
    size_t one = 0, many = 0;
    for (size_t i = 0; i < matvec_op.kernel_count; i++) {
        const kernel *k = &matvec_op.kernels[i];
        bool is_asked = (k->format == &format_q4_0 || k->format == &format_q8_0) &&
                        op_takes(&matvec_op, k, &(shape){{7, 96}}, NULL);
        *(k->tokens ? &many : &one) += is_asked && k->accumulates;
    }
    snprintf(counts, sizeof counts, "%zu passed, 0 failed, %zu skipped\n", one + 2 * many, one);
    ASSERT_RUN("\"$A\" check --device $D matvec --format q4_0,q8_0 --accumulate yes --shape 7x96 "
               "--batch 1,8 --input zeros -v | tr -s ' '",
               0);
    ASSERT_SAYS("matvec_q4_0_accumulate_vec16_rows 7x96 ");
    ASSERT_SAYS("multi_token_matvec_q8_0_accumulate_per_thread 7x96x8 ");
    ASSERT_SAYS(counts);
    ASSERT_RUN("\"$A\" list --format Q6_K --variant reuse | tr -s ' '", 0);
    ASSERT_SAYS("multi_token_matvec_q6_k_accumulate_reuse q6_k += many");
    ASSERT(!strstr(command_get_output(), "per_thread") && !strstr(command_get_output(), "q4_k"));
    PASS();
}

TEST list_has_every_kernel_of_the_registry(void) {
    ASSERT_RUN("\"$A\" list '*'", 0);
    for (size_t i = 0; i < registry_count; i++)
        for (size_t k = 0; k < registry[i]->kernel_count; k++)
            ASSERT_SAYS(registry[i]->kernels[k].name);
    ASSERT_RUN("\"$A\" list --md", 0);
    for (size_t i = 0; i < registry_count; i++) {
        char cell[160];
        snprintf(cell, sizeof cell, "| `%s` | ", registry[i]->name);
        ASSERT_SAYS(cell);
        ASSERT_SAYS(registry[i]->dims);
    }
    ASSERT_SAYS(" kernels](#matvec) |");
    ASSERT_SAYS("\n## matvec\n");
    ASSERT_SAYS(" bf16 f32 | = and += | each weight decoded once for 8 tokens, one quad per row |");
    PASS();
}

TEST a_device_that_cannot_be_had_says_why(void) {
    const char *name;
    err e;
    bool is_available = true;
    for (int i = 0; is_available && device_describe(i, &name, &is_available, &e); i++)
        continue;
    if (is_available)
        SKIPm("every device is available here");
    char line[128];
    snprintf(line, sizeof line, "\"$A\" check buffer_copy --device %s", name);
    ASSERT_RUN(line, 3);
    ASSERT_SAYS(e.text);
    ASSERT_RUN("ASSAY_DEVICE=abacus \"$A\" check buffer_copy", 2);
    ASSERT_SAYS("abacus");
    PASS();
}

SUITE(cli_suite) {
    transcript_run("cli");
    RUN_TEST(cases_are_chosen_by_axes);
    RUN_TEST(list_has_every_kernel_of_the_registry);
    RUN_TEST(a_device_that_cannot_be_had_says_why);
}
