/* The tests: only two lists of suites. Each suite is a file test_*.c beside this one.
 *
 * A run of all suites is two processes, one for each list, so that two cores have work; the second
 * one's output follows the first one's.
 *
 * greatest calls a run of nothing a success. Here a run in which no test ran is a failure. Output
 * is verbose, so that a skipped test is named with its reason. */
#include <fcntl.h>
#include <greatest.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SUITES(X) INNER_SUITES(X) COMMAND_SUITES(X)

/* What the program is made of. */
#define INNER_SUITES(X)                                                                            \
    X(stats_suite)                                                                                 \
    X(significance_suite)                                                                          \
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
    X(record_suite)                                                                                \
    X(worker_suite)                                                                                \
    X(timing_suite)                                                                                \
    X(subject_suite)                                                                               \
    X(tape_suite)                                                                                  \
    X(check_suite)                                                                                 \
    X(numerics_suite)                                                                              \
    X(threads_suite)                                                                               \
    X(simd_suite)                                                                                  \
    X(language_suite)                                                                              \
    X(sampler_suite)                                                                               \
    X(model_suite)                                                                                 \
    X(nonfinite_suite)                                                                             \
    X(llama_suite)                                                                                 \
    X(llama_file_suite)                                                                            \
    X(rwkv7_suite)                                                                                 \
    X(state_suite)                                                                                 \
    X(kernels_suite)                                                                               \
    X(checked_suite)                                                                               \
    X(lines_suite)                                                                                 \
    X(sanitizer_suite)                                                                             \
    X(disturbance_suite)                                                                           \
    X(exact_suite)                                                                                 \
    X(validation_suite)                                                                            \
    X(cache_suite)                                                                                 \
    X(cuda_suite)

/* The program as its users run it, and half of the kernels. */
#define COMMAND_SUITES(X)                                                                          \
    X(more_kernels_suite)                                                                          \
    X(cli_suite)                                                                                   \
    X(gguf_suite)                                                                                  \
    X(convert_suite)                                                                               \
    X(run_suite)                                                                                   \
    X(launch_suite)                                                                                \
    X(untrusted_suite)                                                                             \
    X(lint_suite)                                                                                  \
    X(mutants_suite)                                                                               \
    X(bench_suite)                                                                                 \
    X(against_suite)                                                                               \
    X(experiments_suite)                                                                           \
    X(conclusions_suite)                                                                           \
    X(words_suite)                                                                                 \
    X(vocabularies_suite)                                                                          \
    X(tokenizer_suite)                                                                             \
    X(world_suite)                                                                                 \
    X(tokenize_suite)                                                                              \
    X(claims_suite)                                                                                \
    X(page_suite)                                                                                  \
    X(run_all_suite)                                                                               \
    X(install_suite)                                                                               \
    X(project_suite)                                                                               \
    X(ci_suite)

#define DECLARE(suite) SUITE_EXTERN(suite);
#define RUN(suite) RUN_SUITE(suite);
SUITES(DECLARE)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion" /* version 1.3.1 narrows a flag */
GREATEST_MAIN_DEFS();
#pragma GCC diagnostic pop

typedef struct greatest_report_t report;

/* The second process: its output goes to a file, its counts through a pipe. It is not a child
 * of the first one, in which there are tests of having none. Ends the process. */
static void run_second(int counts, FILE *output) {
    report r;
    pid_t self = fork();
    if (self != 0)
        _exit(self > 0 ? 0 : 1);
    fcntl(counts, F_SETFD, FD_CLOEXEC); /* so that the pipe ends with this process */
    dup2(fileno(output), STDOUT_FILENO);
    COMMAND_SUITES(RUN)
    greatest_get_report(&r);
    fflush(stdout);
    bool is_told = write(counts, &r, sizeof r) == (ssize_t)sizeof r;
    _exit(is_told ? 0 : 1);
}

/* Adds what the second process counted; one that died before it told its counts is a failure. */
static void add_second(int counts, FILE *output, report *sum) {
    char text[4096];
    report r;
    bool is_told = read(counts, &r, sizeof r) == (ssize_t)sizeof r;
    rewind(output);
    for (size_t n; (n = fread(text, 1, sizeof text, output)) > 0;)
        fwrite(text, 1, n, stdout);
    if (!is_told) {
        printf("FAIL the second process of the tests ended before its counts\n");
        r = (report){.failed = 1};
    }
    sum->passed += r.passed;
    sum->failed += r.failed;
    sum->skipped += r.skipped;
}

static bool run_both(report *sum) {
    int counts[2];
    FILE *output = tmpfile();
    if (!output || pipe(counts) != 0)
        return false;
    fflush(stdout);
    pid_t second = fork();
    if (second < 0)
        return false;
    if (second == 0)
        run_second(counts[1], output);
    close(counts[1]);
    waitpid(second, NULL, 0);
    INNER_SUITES(RUN)
    greatest_get_report(sum);
    add_second(counts[0], output, sum);
    close(counts[0]);
    fclose(output);
    return true;
}

int main(int argc, char **argv) {
    report sum;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a crash must not swallow the name of the last test */
    GREATEST_MAIN_BEGIN();
    greatest_set_verbosity(1);
    if (argc > 1 || !run_both(&sum)) {
        SUITES(RUN)
        GREATEST_PRINT_REPORT();
        greatest_get_report(&sum);
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
