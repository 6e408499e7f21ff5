/* Tests of `assay doctor`.
 *
 * Kernels that are wrong or hang come from a copy of kernels/ with one file replaced, given by
 * ASSAY_KERNELS. $F is the file that a run leaves. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

SUITE(doctor_suite);

/* Also makes $T, in which there is $T/tmp for files that must be gone afterwards. */
static void clear(void) {
    command_run("rm -rf \"$T\" && mkdir -p \"$T/tmp\"");
}

static void clear_after(void *unused) {
    (void)unused;
    command_run("rm -rf \"$T\"");
}

#define DOCTOR "cd \"$T\" && TMPDIR=\"$T/tmp\" \"$A\" doctor --out f.tar.gz "
#define IS_TIDY "test -z \"$(ls \"$T/tmp\")\""

TEST a_machine_with_nothing_wrong_leaves_one_whole_file(void) {
    clear();
    ASSERT_RUN(DOCTOR "--device $D system info mapping times denormals", 0);
    ASSERT_SAYS("Nothing wrong was found");
    ASSERT_SAYS(strcmp(getenv("D"), "cuda") ? "used in place" : "copied");
    ASSERT_RUN("cd \"$T\" && tar -xzf f.tar.gz && ls assay-doctor && " IS_TIDY, 0);
    ASSERT_SAYS("summary.txt");
    ASSERT_RUN("cd \"$T\" && tar -tvzf f.tar.gz | grep -vc ' 0/0 '",
               1); /* every file in it belongs to root */
    ASSERT_RUN("cat \"$T\"/assay-doctor/*-info-*.txt", 0);
    ASSERT_SAYS("simdgroups of");
    ASSERT_RUN("awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' "
               "\"$T\"/assay-doctor/summary.txt",
               0);
    PASS();
}

#define PLANT(body)                                                                                \
    "cp -R \"$H/kernels\" \"$T/kernels\" && printf '%s\\n' '#include <metal_stdlib>' "             \
    "'using namespace metal;' 'kernel void buffer_copy(device const float *src [[buffer(0)]],' "   \
    "'device float *dst [[buffer(1)]], constant uint &count [[buffer(2)]],' "                      \
    "'uint i [[thread_position_in_grid]]) { " body " }' > \"$T/kernels/buffer_copy.metal\""
#define PLANTED "export ASSAY_KERNELS=\"$T/kernels\"; "

TEST a_step_that_fails_is_named_and_the_next_one_runs(void) {
    clear();
    ASSERT_RUN(PLANT("if (i < count) dst[i] = src[i] + 1;"), 0);
    ASSERT_RUN(PLANTED DOCTOR "--device $D --quick --risky check fault", 1);
    ASSERT_SAYS("1 of 2 steps found something wrong: 1 ok");
    ASSERT_SAYS("A kernel computes something else than its oracle");
    ASSERT_SAYS("    buffer_copy");
    ASSERT_RUN("cd \"$T\" && tar -xzf f.tar.gz && grep ^failed: assay-doctor/01-check-*.txt && "
               "grep -l buffer_copy assay-doctor/01-check-*.csv && " IS_TIDY,
               0);
    PASS();
}

/* The kernel of `long` runs for longer than that. */
TEST a_step_that_hangs_is_ended_at_its_limit(void) {
    clear();
    ASSERT_RUN(DOCTOR "--device $D --limit 1.5 --risky long", 1);
    ASSERT_SAYS("1 of 1 step found something wrong: 0 ok");
    ASSERT_SAYS("It hangs, or this machine is slow");
    ASSERT_SAYS("ended after");
    ASSERT_RUN(IS_TIDY, 0);
    PASS();
}

TEST a_kernel_that_hangs_fails_alone(void) {
    clear();
    ASSERT_RUN(PLANT("volatile device float *p = dst; while (p[0] != 77.0f) p[1] = float(i);"), 0);
    ASSERT_RUN(PLANTED DOCTOR "--device $D --quick check", 1);
    ASSERT_SAYS("timed out after 20 s");
    ASSERT_RUN("tar -xzOf \"$T/f.tar.gz\" assay-doctor/01-check-$D.csv | grep rmsnorm", 0);
    PASS();
}

TEST in_a_project_the_kernels_are_assays_own(void) {
    clear();
    ASSERT_RUN("cd \"$T\" && \"$A\" init mine > log 2>&1 && cd mine && \"$A\" doctor --out "
               "../f.tar.gz --device $D --quick check",
               0);
    ASSERT_SAYS(" passed, 0 failed");
    PASS();
}

TEST a_device_that_does_not_open_is_tried_once(void) {
    clear();
    ASSERT_RUN("ASSAY_LIBCUDA=/nowhere/libcuda.so; export ASSAY_LIBCUDA; " DOCTOR
               "--device cuda info times mapping",
               1);
    ASSERT_SAYS("The device cannot be opened");
    ASSERT_SAYS("info cuda failed");
    ASSERT_SAYS("1 of 3 steps found something wrong: 0 ok, 2 not run");
    PASS();
}

TEST steps_after_the_total_are_not_run(void) {
    clear();
    ASSERT_RUN(DOCTOR "--device $D --total 0.5 system info", 0);
    ASSERT_SAYS("2 not run");
    ASSERT_SAYS("the time for all steps is over");
    PASS();
}

TEST a_run_that_is_stopped_leaves_no_file_and_no_folder(void) {
    clear();
    ASSERT_RUN("echo old > \"$T/f.tar.gz\"; cd \"$T\"; TMPDIR=\"$T/tmp\" \"$A\" doctor --out "
               "f.tar.gz --device $D check > log 2>&1 & n=$!; sleep 1; kill -TERM $n; wait $n; "
               "test $? = 143 && cat \"$T/f.tar.gz\" && " IS_TIDY,
               0);
    ASSERT_SAYS("old");
    PASS();
}

TEST bad_usage_is_refused_before_anything_runs(void) {
    clear();
    ASSERT_RUN(DOCTOR "chekc", 2);
    ASSERT_SAYS("did you mean check");
    ASSERT_RUN(DOCTOR "fault", 2);
    ASSERT_SAYS("needs --risky");
    ASSERT_RUN("\"$A\" doctor --out \"$T/file.zip\"", 2);
    ASSERT_SAYS(".tar.gz");
    ASSERT_RUN("\"$A\" doctor --out \"$T/none/f.tar.gz\"", 2);
    ASSERT_SAYS("cannot write");
    ASSERT_RUN("test ! -e \"$T/f.tar.gz\" && " IS_TIDY, 0);
    PASS();
}

TEST without_gzip_it_says_so(void) {
    clear();
    ASSERT_RUN("cd \"$T\" && PATH=\"$T/tmp\" \"$A\" doctor --out f.tar.gz system", 3);
    ASSERT_SAYS("gzip, which is not installed");
    PASS();
}

/* Home, cache, temporary files and the kernels are below a folder with a name in it. */
TEST the_file_has_no_user_name_and_no_variables(void) {
    clear();
    ASSERT_RUN("mkdir -p \"$T/alice-b/.cache\" \"$T/alice-b/tmp\" && "
               "cp -R \"$H/kernels\" \"$T/alice-b/kernels\" && cd \"$T\" && "
               "HOME=\"$T/alice-b\" XDG_CACHE_HOME= TMPDIR=\"$T/alice-b/tmp\" "
               "ASSAY_KERNELS=\"$T/alice-b/kernels\" MY_TOKEN=hunter2 "
               "\"$A\" doctor --device $D --out f.tar.gz system info cc; "
               "tar -xzf f.tar.gz && ! grep -rl 'alice\\|hunter2\\|MY_TOKEN' assay-doctor && "
               "grep -h '^cache' assay-doctor/*-info-*",
               0);
    ASSERT_SAYS("~/.cache/assay");
    ASSERT_RUN("cd \"$T\" && gzip -dc f.tar.gz | strings | grep -c alice", 1);
    PASS();
}

TEST a_file_is_compiled_by_the_device_itself(void) {
    clear();
    ASSERT_RUN("printf '%s\\n' 'kernel void good(device float *x [[buffer(0)]]) { x[0] = 1; }' "
               "'kernel void bad(device float *x [[buffer(0)]]) { x[0] = nothing; }' > "
               "\"$T/two.metal\"; \"$A\" lint --device $D \"$T/two.metal\" "
               "\"$H/kernels/buffer_copy.metal\"",
               1);
    ASSERT_SAYS("use of undeclared identifier 'nothing'");
    ASSERT_SAYS("buffer_copy.metal: 1 of 1 kernel compiles");
    ASSERT_SAYS("1024 threads   32 lanes");
    ASSERT_RUN("\"$A\" lint --device $D \"$T/none.metal\"", 1);
    ASSERT_SAYS("none.metal");
    PASS();
}

SUITE(doctor_suite) {
    SET_TEARDOWN(clear_after, NULL);
    RUN_TEST(a_machine_with_nothing_wrong_leaves_one_whole_file);
    RUN_TEST(a_step_that_fails_is_named_and_the_next_one_runs);
    RUN_TEST(a_step_that_hangs_is_ended_at_its_limit);
    RUN_TEST(a_kernel_that_hangs_fails_alone);
    RUN_TEST(in_a_project_the_kernels_are_assays_own);
    RUN_TEST(a_device_that_does_not_open_is_tried_once);
    RUN_TEST(steps_after_the_total_are_not_run);
    RUN_TEST(a_run_that_is_stopped_leaves_no_file_and_no_folder);
    RUN_TEST(bad_usage_is_refused_before_anything_runs);
    RUN_TEST(without_gzip_it_says_so);
    RUN_TEST(the_file_has_no_user_name_and_no_variables);
    RUN_TEST(a_file_is_compiled_by_the_device_itself);
}
