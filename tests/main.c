/* The tests: only a list of suites. Each is a file test_*.c beside this one.
 *
 * greatest calls a run of nothing a success. Here a run in which no test ran is a failure. Output
 * is verbose, so that a skipped test is named with its reason. */
#include <greatest.h>
#include <stdio.h>

#define SUITES(X)                                                                                  \
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
    X(cuda_suite)                                                                                  \
    X(cli_suite)                                                                                   \
    X(gguf_suite)                                                                                  \
    X(convert_suite)                                                                               \
    X(run_suite)                                                                                   \
    X(launch_suite)                                                                                \
    X(untrusted_suite)                                                                             \
    X(lint_suite)                                                                                  \
    X(mutants_suite)                                                                               \
    X(bench_suite)                                                                                 \
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

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0); /* a crash must not swallow the name of the last test */
    GREATEST_MAIN_BEGIN();
    greatest_set_verbosity(1);
    SUITES(RUN)
    GREATEST_PRINT_REPORT();
    if (GREATEST_LIST_ONLY())
        return EXIT_SUCCESS;
    struct greatest_report_t report;
    greatest_get_report(&report);
    if (report.skipped > 0)
        printf("%u skipped, named above with SKIP\n", report.skipped);
    if (report.passed + report.failed == 0)
        printf("no test ran: that is a failure\n");
    printf("%u passed, %u failed\n", report.passed, report.failed);
    return report.failed == 0 && report.passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
