/* The tests: only a list of suites. Each suite is a file test_*.c beside this one, or a transcript.
 *
 * Usage: tests [SUITE...]   only suites whose names contain one of these
 *        tests -s SUITE     and greatest's other options: in this process, for a debugger
 *
 * Each suite is a process of its own, one more of them at a time than there are cores, so that every
 * core has work while one suite waits, and a suite that crashes takes no other with it. What a suite
 * printed follows when it has ended.
 *
 * greatest calls a run of nothing a success. Here a run in which no test ran is a failure. Output
 * is verbose, so that a skipped test is named with its reason. */
#include <fcntl.h>
#include <greatest.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/base/toolchain.h"

/* Those that take long come first: the last ones are short, and no core waits. Those that need many kernels
 * of the project follow when the first two have compiled them. */
#define SUITES(X)                                                                                  \
    X(kernels_suite)                                                                               \
    X(builtins_suite)                                                                              \
    X(exact_suite)                                                                                 \
    X(lint_suite)                                                                                  \
    X(mutants_suite)                                                                               \
    X(gate_suite)                                                                                  \
    X(ci_suite)                                                                                    \
    X(install_suite)                                                                               \
    X(project_suite)                                                                               \
    X(run_suite)                                                                                   \
    X(bench_suite)                                                                                 \
    X(tune_verb_suite)                                                                             \
    X(against_suite)                                                                               \
    X(changes_suite)                                                                               \
    X(judge_suite)                                                                                 \
    X(failures_suite)                                                                              \
    X(faults_suite)                                                                                \
    X(takes_suite)                                                                                 \
    X(experiments_suite)                                                                           \
    X(tolerance_suite)                                                                             \
    X(profile_suite)                                                                               \
    X(numerics_suite)                                                                              \
    X(edges_suite)                                                                                 \
    X(rwkv7_suite)                                                                                 \
    X(state_suite)                                                                                 \
    X(attack_suite)                                                                                \
    X(cache_suite)                                                                                 \
    X(freshness_suite)                                                                             \
    X(significance_suite)                                                                          \
    X(tensor_suite)                                                                                \
    X(launch_suite)                                                                                \
    X(run_all_suite)                                                                               \
    X(checked_suite)                                                                               \
    X(describe_suite)                                                                              \
    X(declared_suite)                                                                              \
    X(doctor_suite)                                                                                \
    X(cli_suite)                                                                                   \
    X(double_suite)                                                                                \
    X(tune_suite)                                                                                  \
    X(depth_suite)                                                                                 \
    X(cuda_suite)                                                                                  \
    X(cuda_copies_suite)                                                                           \
    X(cuda_ptx_suite)                                                                              \
    X(cuda_halves_suite)                                                                           \
    X(per_thread_suite)                                                                            \
    X(agx_suite)                                                                                   \
    X(shipped_suite)                                                                               \
    X(stats_suite)                                                                                 \
    X(compare_suite)                                                                               \
    X(output_suite)                                                                                \
    X(results_suite)                                                                               \
    X(reference_suite)                                                                             \
    X(formats_suite)                                                                               \
    X(oracles_suite)                                                                               \
    X(time_mix_suite)                                                                              \
    X(msl_suite)                                                                                   \
    X(msl_launch_suite)                                                                            \
    X(msl_source_suite)                                                                            \
    X(readme_suite)                                                                                \
    X(docs_suite)                                                                                  \
    X(record_suite)                                                                                \
    X(worker_suite)                                                                                \
    X(timing_suite)                                                                                \
    X(subject_suite)                                                                               \
    X(tape_suite)                                                                                  \
    X(tape_early_suite)                                                                            \
    X(tape_memory_suite)                                                                           \
    X(check_suite)                                                                                 \
    X(threads_suite)                                                                               \
    X(simd_suite)                                                                                  \
    X(simd_matrix_suite)                                                                           \
    X(language_suite)                                                                              \
    X(sampler_suite)                                                                               \
    X(model_suite)                                                                                 \
    X(nonfinite_suite)                                                                             \
    X(llama_suite)                                                                                 \
    X(llama_file_suite)                                                                            \
    X(lines_suite)                                                                                 \
    X(sanitizer_suite)                                                                             \
    X(disturbance_suite)                                                                           \
    X(validation_suite)                                                                            \
    X(gguf_suite)                                                                                  \
    X(convert_suite)                                                                               \
    X(import_suite)                                                                                \
    X(untrusted_suite)                                                                             \
    X(conclusions_suite)                                                                           \
    X(words_suite)                                                                                 \
    X(vocabularies_suite)                                                                          \
    X(tokenizer_suite)                                                                             \
    X(world_suite)                                                                                 \
    X(tokenize_suite)                                                                              \
    X(claims_suite)                                                                                \
    X(plot_suite)                                                                                  \
    X(page_suite)                                                                                  \
    X(arrows_suite)

#define DECLARE(suite) SUITE_EXTERN(suite);
SUITES(DECLARE)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion" /* version 1.3.1 narrows a flag */
GREATEST_MAIN_DEFS();
#pragma GCC diagnostic pop

typedef struct greatest_report_t report;

typedef struct {
    const char *name;
    void (*run)(void);
} suite;

#define RUN(suite)                                                                                 \
    static void run_##suite(void) {                                                                \
        RUN_SUITE(suite);                                                                          \
    }
SUITES(RUN)

#define ROW(suite) {#suite, run_##suite},
static const suite suites[] = {SUITES(ROW)};
enum { SUITE_COUNT = sizeof suites / sizeof *suites, MOST_AT_A_TIME = 9 };
static int at_a_time;

/* A suite that runs. */
typedef struct {
    const suite *what;
    pid_t process;
    FILE *output;
    int counts; /* a pipe: the report follows the last test */
} job;

static bool start(job *j, const suite *what) {
    int ends[2];
    *j = (job){.what = what, .output = tmpfile()};
    if (!j->output || pipe(ends) != 0)
        return false;
    fcntl(ends[0], F_SETFL, O_NONBLOCK); /* it is read when the suite has ended, or died */
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    fflush(stdout);
    j->process = fork();
    if (j->process == 0) {
        close(ends[0]);
        dup2(fileno(j->output), STDOUT_FILENO);
        what->run();
        fflush(stdout);
        const greatest_suite_info *s = &greatest_info.suite;
        report r = {.passed = s->passed, .failed = s->failed, .skipped = s->skipped};
        _exit(write(ends[1], &r, sizeof r) == (ssize_t)sizeof r ? 0 : 1);
    }
    close(ends[1]);
    j->counts = ends[0];
    return j->process > 0;
}

/* Prints what the suite printed and adds its counts; one that died before it told them is a
 * failure. */
static void end(job *j, const struct rusage *used, report *sum) {
    char text[4096];
    report r;
    rewind(j->output);
    for (size_t n; (n = fread(text, 1, sizeof text, j->output)) > 0;)
        fwrite(text, 1, n, stdout);
    if (read(j->counts, &r, sizeof r) != (ssize_t)sizeof r) {
        printf("FAIL %s died in the test after the last one above\n", j->what->name);
        r = (report){.failed = 1};
    }
    printf("%s took %.1f s of CPU time\n", j->what->name,
           (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) +
               (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) * 1e-6);
    sum->passed += r.passed;
    sum->failed += r.failed;
    sum->skipped += r.skipped;
    close(j->counts);
    fclose(j->output);
    j->what = NULL;
}

static bool wait_for_one(job *jobs, report *sum) {
    struct rusage used; /* by the suite and what it ran */
    pid_t ended = wait4(-1, NULL, 0, &used);
    for (int i = 0; i < at_a_time; i++)
        if (jobs[i].what && jobs[i].process == ended)
            end(&jobs[i], &used, sum);
    return ended > 0;
}

static bool is_wanted(const suite *s, int count, char **names) {
    for (int i = 0; i < count; i++)
        if (strstr(s->name, names[i]))
            return true;
    return count == 0;
}

/* The first job that runs a suite, or the first that does not; NULL: there is none. */
static job *find_job(job *jobs, bool runs) {
    for (int i = 0; i < at_a_time; i++)
        if ((jobs[i].what != NULL) == runs)
            return &jobs[i];
    return NULL;
}

static bool run_suites(int count, char **names, report *sum) {
    job jobs[MOST_AT_A_TIME] = {{.what = NULL}};
    bool ok = true;
    char clang[4096];
    at_a_time = os_count_cpus() < MOST_AT_A_TIME ? os_count_cpus() + 1 : MOST_AT_A_TIME;
    toolchain_find_clang(clang, sizeof clang, NULL, 0, NULL); /* asked once, for all suites */
    for (size_t i = 0; ok && i < SUITE_COUNT; i++) {
        if (!is_wanted(&suites[i], count, names))
            continue;
        while (ok && !find_job(jobs, false))
            ok = wait_for_one(jobs, sum);
        ok = ok && start(find_job(jobs, false), &suites[i]);
    }
    while (ok && find_job(jobs, true))
        ok = wait_for_one(jobs, sum);
    return ok;
}

/* A misspelt name must not make a green run of less than was asked for. */
static bool check_names(int count, char **names) {
    for (int i = 0; i < count; i++) {
        bool is_known = false;
        for (size_t k = 0; k < SUITE_COUNT; k++)
            is_known = is_known || strstr(suites[k].name, names[i]);
        if (!is_known) {
            printf("no suite is called %s\n", names[i]);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    report sum = {0};
    scratch_start();
    setvbuf(stdout, NULL, _IOLBF, 0);       /* a crash must not swallow the name of the last test */
    setenv("ASSAY_LOOP_SECONDS", "0.2", 0); /* each `validate` plays a canary that never ends */
    bool has_options = argc > 1 && argv[1][0] == '-';
    int count = has_options ? 0 : argc - 1;
    argc -= count;
    GREATEST_MAIN_BEGIN();
    greatest_set_verbosity(1);
    if (!check_names(count, argv + 1))
        return EXIT_FAILURE;
    if (has_options) {
        for (size_t i = 0; i < SUITE_COUNT; i++)
            suites[i].run();
        GREATEST_PRINT_REPORT();
        greatest_get_report(&sum);
    } else if (!run_suites(count, argv + 1, &sum)) {
        printf("FAIL the processes of the tests cannot be run\n");
        sum.failed++;
    }
    if (GREATEST_LIST_ONLY())
        return EXIT_SUCCESS;
    if (sum.skipped > 0)
        printf("%u skipped, named above with SKIP\n", sum.skipped);
    if (sum.passed + sum.failed == 0)
        printf("no test ran: that is a failure\n");
    printf("%u passed, %u failed\n", sum.passed, sum.failed);
    return sum.failed == 0 && sum.passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
