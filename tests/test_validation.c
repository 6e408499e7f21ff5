/* Metal's validation as text: the environment, reports as Macs print them, files of workers.
 * transcripts/validation.txt has what it looks like end to end, where there is a Metal device. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "harness/device/validation.h"
#include "transcript.h"
#include "wanted.h"

SUITE_EXTERN(validation_suite);

static err e;

TEST reports_of_metal_are_read_wherever_they_stand(void) {
    /* Lines as they were printed on Macs, one of them in the middle of another program's line. */
    static const char text[] =
        "2024-01-01 12:00:00.000 assay[123:456] Metal GPU Validation Enabled\n"
        "Invalid device store at offset 72192, executing kernel function: \"genIndexBuffer\"\n"
        "buffer: <unnamed>, length:65535, resident:Read Write\n"
        "running 3 testsInvalid device load at offset 640, executing kernel function: "
        "\"custom_kernel_rmlx_q8_quantize\"\n"
        "[GPUDebug] Invalid threadgroup load at offset 96, executing kernel function: \"tile\"\n"
        "buffer: not of this report, length:1, resident:Read\n"
        "Invalid device store at offset 72192, executing kernel function: \"genIndexBuffer\"\n"
        "buffer: <unnamed>, length:65535, resident:Read Write\n"
        "Invalid argument\nInvalid device store";
    finding_list found = {0};
    ASSERT_EQ_FMT((size_t)4, validation_parse(text, &found), "%zu");
    static const wanted_finding want[] = {
        {FINDING_STORE_OUTSIDE, "genIndexBuffer", "", 0, "<unnamed>", NULL},
        {FINDING_LOAD_OUTSIDE, "custom_kernel_rmlx_q8_quantize", "", 0, "device memory", NULL},
        {FINDING_LOAD_OUTSIDE, "tile", "", 0, "threadgroup memory", NULL},
    };
    const char *wrong = wanted_compare(&found, want, 3);
    ASSERTm(wrong, !wrong);
    const finding *f = found.items;
    ASSERT_EQ(72192, f[0].element);
    ASSERT_EQ(72192 - 65535 + 1, f[0].by);
    ASSERT_EQ_FMT((size_t)2, (size_t)f[0].count, "%zu");
    finding_free(&found);
    PASS();
}

TEST reports_with_frames_and_encoders_have_lines(void) {
    /* The lines after the first come in either order, and not all of them always. */
    static const char text[] =
        "Invalid device load at offset 4096, executing kernel function: \"step\"\n"
        "buffer: <unnamed>, length:4096, resident:Read Write\n"
        "  * frame #0: step() - /program_source:885:56\n"
        "    frame #1: outer() - /program_source:12:3\n"
        "\n"
        "Invalid device load at offset 2116, executing kernel function: \"main\"\n"
        "buffer: Out of bounds of user address space, length:1, resident:Read Write\n"
        "encoder: \"ComputeEncoder\", dispatch: 12\n"
        "a line of the program\n"
        "  * frame #0: helper(device float*, uint) - /a folder/with: colon/tile.h:7:11\n"
        "Invalid device store at offset 8, executing kernel function: \"none\"\n"
        "[GPUDebug] Invalid threadgroup store at offset 64, executing kernel function: \"tile\"\n"
        "encoder: \"0\", dispatch: 3\n"
        "  * frame #0: tile() - tile.metal:21\n";
    finding_list found = {0};
    ASSERT_EQ_FMT((size_t)4, validation_parse(text, &found), "%zu");
    static const wanted_finding want[] = {
        {FINDING_LOAD_OUTSIDE, "step", "program_source", 885, NULL, NULL},
        {FINDING_LOAD_OUTSIDE, "main", "tile.h", 7, NULL,
         "\"main\", dispatch 12 of \"ComputeEncoder\""},
        {FINDING_STORE_OUTSIDE, "none", "", 0, NULL, NULL},
        {FINDING_STORE_OUTSIDE, "tile", "tile.metal", 21, NULL, "dispatch 3 of \"0\""},
    };
    const char *wrong = wanted_compare(&found, want, 4);
    ASSERTm(wrong, !wrong);
    ASSERT_EQ(1, found.items[0].by);
    finding_free(&found);
    PASS();
}

TEST every_variable_of_metal_is_pinned_and_others_are_gone(void) {
    setenv("MTL_SHADER_VALIDATION_DISABLE_PIPELINES", "all", 1);
    setenv("MTL_SHADER_VALIDATION_FAIL_MODE", "allow", 1);
    setenv("MTL_ANYTHING", "1", 1);
    ASSERT_FALSE(validation_is_on());
    validation_pin_environment();
    ASSERT(validation_is_on());
    ASSERT_EQ(NULL, getenv("MTL_SHADER_VALIDATION_DISABLE_PIPELINES"));
    ASSERT_EQ(NULL, getenv("MTL_ANYTHING"));
    ASSERT_STR_EQ("zerofill", getenv("MTL_SHADER_VALIDATION_FAIL_MODE"));
    ASSERT_STR_EQ("1", getenv("MTL_SHADER_VALIDATION_REPORT_TO_STDERR"));
    static const char *const names[] = {
        "MTL_DEBUG_LAYER",
        "MTL_DEBUG_LAYER_ERROR_MODE",
        "MTL_DEBUG_LAYER_WARNING_MODE",
        "MTL_SHADER_VALIDATION",
        "MTL_SHADER_VALIDATION_REPORT_TO_STDERR",
        "MTL_SHADER_VALIDATION_ENABLE_ERROR_REPORTING",
        "MTL_SHADER_VALIDATION_ABORT_ON_FAULT",
        "MTL_SHADER_VALIDATION_FAIL_MODE",
        "MTL_SHADER_VALIDATION_GLOBAL_MEMORY",
        "MTL_SHADER_VALIDATION_THREADGROUP_MEMORY",
        "MTL_SHADER_VALIDATION_RESOURCE_USAGE",
        "MTL_SHADER_VALIDATION_TEXTURE_USAGE",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ASSERT(getenv(names[i]));
        unsetenv(names[i]);
    }
    PASS();
}

TEST files_without_the_banner_are_counted(void) {
    char folder[256], path[300];
    validation_count count;
    finding_list found = {0};
    ASSERT(validation_open_folder(folder, sizeof folder, &e));
    ASSERT_STR_EQ(folder, getenv("ASSAY_REPORTS"));
    static const char seen[] = "Metal GPU Validation Enabled\nInvalid device load at offset 4, "
                               "executing kernel function: \"k\"\n";
    snprintf(path, sizeof path, "%s/1.log", folder);
    ASSERT(os_write_file(path, seen, strlen(seen), &e));
    snprintf(path, sizeof path, "%s/2.log", folder);
    ASSERT(os_write_file(path, "nothing", 7, &e));
    ASSERT(validation_read_folder(folder, &metal_log, &count, &found, &e));
    ASSERT(count.files == 2 && count.banners == 1 && count.reports == 1 && found.count == 1);
    finding_free(&found);
    validation_close_folder(folder);
    ASSERT_EQ(NULL, getenv("ASSAY_REPORTS"));
    ASSERT_FALSE(validation_read_folder(folder, &metal_log, &count, &found, &e));
    PASS();
}

SUITE(validation_suite) {
    RUN_TEST(reports_of_metal_are_read_wherever_they_stand);
    RUN_TEST(reports_with_frames_and_encoders_have_lines);
    RUN_TEST(every_variable_of_metal_is_pinned_and_others_are_gone);
    RUN_TEST(files_without_the_banner_are_counted);
    transcript_run("validation");
}
