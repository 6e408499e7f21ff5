/* NVIDIA's compute-sanitizer as text: its reports, the command line that it is given, and the whole
 * of `validate --device cuda` over doubles of the driver and of the tool. */
#include <greatest.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/device/cuda/ptx.h"
#include "harness/device/cuda/sanitizer.h"
#include "support.h"
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

#define DOUBLE                                                                                     \
    "PATH=\"$H/tests/sanitizer:$PATH\" SANITIZER_STATE=\"$T.state\" "                              \
    "CANARIES=\"$H/harness/check/canaries/canary.metal\" "
#define CLEAN "; s=$?; rm -rf \"$T.state\" \"$T.logs\"; exit $s"

TEST a_worker_enters_the_tool_with_its_pipes(void) {
    ASSERT_RUN(
        "rm -rf \"$T.state\" \"$T.logs\"; mkdir -p \"$T.logs\"; " DOUBLE
        "ASSAY_SANITIZER=racecheck ASSAY_REPORTS=\"$T.logs\" "
        "\"$A\" validate --worker --device soft 3</dev/null 4>/dev/null && cat \"$T.logs\"/*" CLEAN,
        0);
    ASSERT_SAYS("========= COMPUTE-SANITIZER\n========= Error: Race reported between");
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

/* The whole, over the doubles ------------------------------------------------------------------- */

#define VALIDATE "\"$A\" validate --device cuda buffer_copy/33/normal --jobs 4 "

TEST every_tool_catches_its_canaries_and_is_clean(void) {
    ASSERT_RUN(DOUBLE VALIDATE "--csv \"$T.logs\" && cat \"$T.logs\"" CLEAN, 0);
    ASSERT_SAYS("# memcheck: canaries: 4 of 4 caught");
    ASSERT_SAYS("# racecheck: canaries: 1 of 1 caught");
    ASSERT_SAYS("# initcheck: canaries: 1 of 1 caught");
    ASSERT_SAYS("# synccheck: canaries: 1 of 1 caught");
    ASSERT_SAYS("canaries: 7 of 7 caught");
    ASSERT_SAYS("\nbuffer_copy  pass          4 "); /* a line for all four */
    ASSERT_SAYS("passed: 4");
    PASS();
}

TEST what_a_tool_finds_fails_the_run(void) {
    ASSERT_RUN("SANITIZER_DOUBLE=finds " DOUBLE VALIDATE CLEAN, 1);
    ASSERT_SAYS("store outside  buffer_copy.metal:7");
    ASSERT_SAYS("# synccheck: canaries: 1 of 1 caught");
    PASS();
}

TEST a_tool_that_is_not_looking_is_a_failure(void) {
    ASSERT_RUN("SANITIZER_DOUBLE=blind " DOUBLE VALIDATE CLEAN, 1);
    ASSERT_SAYS("# racecheck: canaries: 0 of 1 caught");
    ASSERT_RUN("SANITIZER_DOUBLE=silent " DOUBLE VALIDATE CLEAN, 1);
    ASSERT_SAYS("did not confirm that compute-sanitizer is on");
    PASS();
}

#define LAUNCH                                                                                     \
    "\"$A\" launch \"$H/kernels/buffer_copy.metal\" buffer_copy --arg 0=f32[64] --arg 1=f32[64] "  \
    "--arg 2=u32:64 --grid 1 --group 64 --device cuda --validate "

/* The double reports canaries in every other run. */
TEST a_launch_is_validated_under_every_tool(void) {
    ASSERT_RUN(DOUBLE LAUNCH CLEAN, 1);
    ASSERT_SAYS("# memcheck\n");
    ASSERT_SAYS("store outside  canary.metal:");
    ASSERT_SAYS("# racecheck\n");
    ASSERT_SAYS("# initcheck\n");
    ASSERT_SAYS("unwritten memory  canary.metal:");
    ASSERT_SAYS("# synccheck\n");
    ASSERT_RUN("SANITIZER_DOUBLE=blind ASSAY_SANITIZER=initcheck " DOUBLE LAUNCH CLEAN, 0);
    ASSERT_SAYS("# initcheck\n");
    ASSERT_FALSE(command_says("# memcheck\n"));
    ASSERT_RUN("SANITIZER_DOUBLE=silent " DOUBLE LAUNCH CLEAN, 1);
    ASSERT_SAYS("did not confirm that compute-sanitizer is on");
    PASS();
}

SUITE(sanitizer_suite) {
    RUN_TEST(reports_of_memory_say_what_where_and_who);
    RUN_TEST(reports_of_the_other_tools_have_their_classes);
    RUN_TEST(a_log_that_lacks_something_is_not_believed);
    RUN_TEST(a_worker_enters_the_tool_with_its_pipes);
    RUN_TEST(a_missing_tool_is_one_sentence);
    if (strcmp(support_get_device_name(), "cuda") != 0)
        return;
    RUN_TEST(every_tool_catches_its_canaries_and_is_clean);
    RUN_TEST(what_a_tool_finds_fails_the_run);
    RUN_TEST(a_tool_that_is_not_looking_is_a_failure);
    RUN_TEST(a_launch_is_validated_under_every_tool);
}
