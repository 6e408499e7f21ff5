/* The reports of NVIDIA's compute-sanitizer; transcripts/sanitizer.txt has the whole of `validate --device cuda`. */
#include <greatest.h>
#include <stdlib.h>
#include <string.h>

#include "harness/device/cuda/ptx.h"
#include "harness/device/cuda/sanitizer.h"
#include "transcript.h"
#include "wanted.h"

SUITE_EXTERN(sanitizer_suite);

static err e;

TEST reports_of_memory_say_what_where_and_who(void) {
    static const char text[] =
        "========= COMPUTE-SANITIZER\n"
        "========= Invalid __shared__ write of size 4 bytes\n"
        "=========     at msl_tile+0x890 in tile.metal:29\n"
        "=========     by thread (63,1,0) in block (2,0,3)\n"
        "=========     Access to 0x500 is out of bounds\n"
        "=========     Saved host backtrace up to driver entry point at kernel launch time\n"
        "=========         Host Frame: main [0x1234] in assay\n"
        "========= \n"
        "========= Invalid __local__ read of size 16 bytes\n"
        "=========     at msl_tile(cuda_arguments)+0x940 in /some folder/of/tile.metal:38\n"
        "=========     by thread (4,0,0) in block (0,0,0)\n"
        "=========     Access to 0xfffab0 is out of bounds\n"
        "========= \n"
        "========= Invalid __global__ atomic of size 4 bytes\n"
        "=========     at msl_count+0x10\n"
        "=========     by thread (0,0,0) in block (0,0,0)\n"
        "=========     Address 0x7f0000000002 is misaligned\n"
        "========= \n"
        "========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to \"unspecified launch "
        "failure\" on CUDA API call to cuEventSynchronize.\n"
        "=========     Saved host backtrace up to driver entry point at error\n"
        "========= Target application returned an error\n"
        "========= ERROR SUMMARY: 4 errors\n";
    finding_list found = {0};
    ASSERT_EQ_FMT((size_t)3, sanitizer_parse(text, &found), "%zu");
    static const wanted_finding want[] = {
        {FINDING_STORE_OUTSIDE, "tile", "tile.metal", 29, "threadgroup memory",
         "Access to 0x500 is out of bounds"},
        {FINDING_LOAD_OUTSIDE, "tile", "tile.metal", 38, "private memory", NULL},
        {FINDING_MISALIGNED, "count", "", 0, NULL, NULL},
    };
    const char *wrong = wanted_compare(&found, want, 3);
    ASSERTm(wrong, !wrong);
    const finding *f = found.items;
    ASSERT(f[0].thread[0] == 63 && f[0].thread[1] == 1 && f[0].group[0] == 2 && f[0].group[2] == 3);
    ASSERT_EQ_FMT(4u, f[0].bytes, "%u");
    ASSERT(sanitizer_log.is_watched(text));
    finding_free(&found);
    PASS();
}

TEST reports_of_the_other_tools_have_their_classes(void) {
    static const char text[] =
        "========= COMPUTE-SANITIZER\n"
        "========= Error: Race reported between Write access at msl_sum+0x8a0 in sum.metal:84\n"
        "=========     and Read access at msl_sum+0x8d0 in sum.metal:86 [256 hazards]\n"
        "========= \n"
        "========= Warning: Race reported between Read access at msl_max+0x8a0 in max.metal:9\n"
        "=========     and Write access at msl_max+0x8d0 in max.metal:7 [2 hazards]\n"
        "a line of the program\n"
        "========= Uninitialized __global__ memory read of size 4 bytes\n"
        "=========     at msl_add+0x70 in add.metal:41\n"
        "=========     by thread (31,0,0) in block (1,0,0)\n"
        "=========     Address 0x7f3c7ec000fc\n"
        "========= \n"
        "========= Barrier error detected. Divergent thread(s) in warp\n"
        "=========     at msl_scan+0xb0 in scan.metal:20\n"
        "=========     by thread (2,0,0) in block (0,0,0)\n"
        "========= \n"
        "========= Something that is not known yet\n"
        "=========     at msl_scan+0xb0 in scan.metal:21\n"
        "========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)\n";
    static const wanted_finding want[] = {
        {FINDING_RACE_IN_GROUP, "sum", "sum.metal", 86, NULL, "[256 hazards]"},
        {FINDING_RACE_IN_GROUP, "max", "max.metal", 9, NULL, NULL},
        {FINDING_UNWRITTEN, "add", "add.metal", 41, NULL, NULL},
        {FINDING_BARRIER, "scan", "scan.metal", 20, NULL, NULL},
        {FINDING_FAULT, "scan", "scan.metal", 21, NULL, NULL}};
    finding_list found = {0};
    ASSERT_EQ_FMT(sizeof want / sizeof *want, sanitizer_parse(text, &found), "%zu");
    const char *wrong = wanted_compare(&found, want, sizeof want / sizeof *want);
    ASSERTm(wrong, !wrong);
    finding_free(&found);
    PASS();
}

TEST a_log_that_lacks_something_is_not_believed(void) {
    static const char *const doubtful[] = {
        "",
        "========= ERROR SUMMARY: 0 errors\n",
        "========= COMPUTE-SANITIZER\n========= Error: No attachable process found. Timed out.\n",
        "========= COMPUTE-SANITIZER\n========= Internal Sanitizer Error: out of memory\n",
        "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 2 errors\n",
        "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 1 hazard displayed (1 error)\n"};
    for (size_t i = 0; i < sizeof doubtful / sizeof *doubtful; i++)
        ASSERT_FALSEm(doubtful[i], sanitizer_log.is_watched(doubtful[i]));
    ASSERT(sanitizer_log.is_watched("========= COMPUTE-SANITIZER\n"));
    ASSERT(sanitizer_log.is_watched("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 "
                                    "errors\n"));
    PASS();
}

TEST a_missing_tool_is_one_sentence(void) {
    char found[4096], *path = strdup(getenv("PATH"));
    setenv("PATH", "/nowhere", 1);
    bool is_there = ptx_find_tool("compute-sanitizer", found, sizeof found);
    bool ok = sanitizer_choose("memcheck", &e);
    setenv("PATH", path, 1);
    free(path);
    sanitizer_choose(NULL, NULL);
    if (is_there)
        SKIPm("this machine has compute-sanitizer in its toolkit");
    ASSERT_FALSE(ok);
    ASSERT_EQ_FMT(EXIT_CANNOT, e.code, "%d");
    ASSERTm(e.text, strstr(e.text, "compute-sanitizer"));
    ASSERT_EQ(NULL, sanitizer_get_tool());
    PASS();
}

SUITE(sanitizer_suite) {
    RUN_TEST(reports_of_memory_say_what_where_and_who);
    RUN_TEST(reports_of_the_other_tools_have_their_classes);
    RUN_TEST(a_log_that_lacks_something_is_not_believed);
    RUN_TEST(a_missing_tool_is_one_sentence);
    transcript_run("sanitizer");
}
