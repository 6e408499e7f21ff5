/* Tests of `assay doctor` and of what it is made of: steps with a limit, and the archive.
 *
 * Kernels that are wrong or hang come from a copy of kernels/ with one file replaced, given by
 * ASSAY_KERNELS. $F is the file that a run leaves. */
#include <greatest.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "harness/base/os.h"
#include "harness/base/step.h"
#include "harness/base/tar.h"

SUITE(doctor_suite);

static err e;

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

/* Steps ---------------------------------------------------------------------------------------- */

static bool run_step(const char *script, double limit_s, step_outcome *out) {
    char log[300];
    clear();
    snprintf(log, sizeof log, "%s/log", getenv("T"));
    const char *const argv[] = {"sh", "-c", script, NULL};
    const step s = {.argv = argv, .log = log, .limit_s = limit_s, .limit_bytes = 100000};
    return step_run(&s, out, &e) && command_run("cat \"$T/log\"") == 0;
}

TEST a_step_keeps_its_output_and_its_exit_status(void) {
    step_outcome o;
    ASSERT(run_step("echo out; echo talk >&2; exit 7", 60, &o));
    ASSERT_EQ_FMT(7, o.status, "%d");
    ASSERT(!o.is_late && !o.is_profuse);
    ASSERT_STR_EQ("out\ntalk\n", command_get_output());
    ASSERT(run_step("kill -SEGV $$", 60, &o));
    ASSERT_EQ_FMT(128 + SIGSEGV, o.status, "%d");
    PASS();
}

TEST a_step_is_ended_at_its_limit_with_all_that_it_started(void) {
    step_outcome o;
    ASSERT(run_step("echo begun; sleep 600 & echo $!; wait", 0.5, &o));
    ASSERT(o.is_late);
    ASSERT_SAYS("begun");
    pid_t other = (pid_t)atoi(command_get_output() + strlen("begun\n"));
    ASSERT(other > 1);
    /* It was killed, but may still be a zombie. */
    ASSERT_RUN("n=$(sed -n 2p \"$T/log\"); for i in 1 2 3 4 5 6 7 8 9 10; do "
               "case $(ps -o stat= -p $n) in ''|Z*) exit 0 ;; esac; sleep 0.2; done; exit 1",
               0);
    PASS();
}

TEST a_step_that_ignores_the_request_is_killed(void) {
    step_outcome o;
    ASSERT(run_step("trap '' TERM; while :; do sleep 0.1; done", 0.3, &o));
    ASSERT(o.is_late);
    ASSERT_EQ_FMT(128 + SIGKILL, o.status, "%d");
    PASS();
}

TEST a_step_that_prints_without_end_is_ended(void) {
    step_outcome o;
    ASSERT(run_step("while :; do echo and so on and so on and so on; done", 60, &o));
    ASSERT(o.is_profuse && !o.is_late);
    PASS();
}

TEST a_program_that_is_not_there_is_an_error(void) {
    const char *const argv[] = {"/nowhere/at/all", NULL};
    step_outcome o;
    clear();
    ASSERT(!step_run(&(step){.argv = argv, .log = "/dev/null", .limit_s = 9, .limit_bytes = 9}, &o,
                     &e));
    ASSERTm(e.text, strstr(e.text, "/nowhere/at/all"));
    PASS();
}

TEST an_archive_is_read_by_tar_and_names_nobody(void) {
    char *data = NULL, path[300];
    size_t bytes = 0;
    clear();
    FILE *out = open_memstream(&data, &bytes);
    ASSERT(out);
    tar_add(out, "a/empty", "", 0, 0);
    tar_add(out, "a/one", "text\n", 5, 1000000000);
    char block[513];
    memset(block, 'x', sizeof block);
    tar_add(out, "a/long", block, sizeof block, 0);
    tar_end(out);
    fclose(out);
    ASSERT_EQ_FMT((size_t)0, bytes % 512, "%zu");
    snprintf(path, sizeof path, "%s/a.tar", getenv("T"));
    ASSERT(os_write_file(path, data, bytes, &e));
    free(data);
    ASSERT_RUN("cd \"$T\" && tar -xf a.tar && wc -c a/empty a/long && cat a/one && tar -tvf a.tar",
               0);
    ASSERT_SAYS("0 a/empty");
    ASSERT_SAYS("513 a/long");
    ASSERT_SAYS("text\n");
    ASSERT_RUN("cd \"$T\" && tar -tvf a.tar | grep -c ' 0/0 '", 0);
    ASSERT_SAYS("3");
    PASS();
}

/* The verb ------------------------------------------------------------------------------------- */

TEST a_machine_with_nothing_wrong_leaves_one_whole_file(void) {
    clear();
    ASSERT_RUN(DOCTOR "--device $D system info mapping times denormals", 0);
    ASSERT_SAYS("Nothing wrong was found");
    ASSERT_SAYS("a mapped file is");
    ASSERT_RUN("cd \"$T\" && tar -xzf f.tar.gz && ls assay-doctor && " IS_TIDY, 0);
    ASSERT_SAYS("summary.txt");
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
    RUN_TEST(a_step_keeps_its_output_and_its_exit_status);
    RUN_TEST(a_step_is_ended_at_its_limit_with_all_that_it_started);
    RUN_TEST(a_step_that_ignores_the_request_is_killed);
    RUN_TEST(a_step_that_prints_without_end_is_ended);
    RUN_TEST(a_program_that_is_not_there_is_an_error);
    RUN_TEST(an_archive_is_read_by_tar_and_names_nobody);
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
