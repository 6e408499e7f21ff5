/* The tests of the Metal device on the double, and of the double: only a list of suites. */
#include <greatest.h>
#include <stdio.h>

#define SUITES(X)                                                                                  \
    X(misuse_suite)                                                                                \
    X(metal_suite)                                                                                 \
    X(faults_suite)                                                                                \
    X(memory_suite)

#define DECLARE(suite) SUITE_EXTERN(suite);
#define RUN(suite) RUN_SUITE(suite);
SUITES(DECLARE)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion" /* version 1.3.1 narrows a flag */
GREATEST_MAIN_DEFS();
#pragma GCC diagnostic pop

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    GREATEST_MAIN_BEGIN();
    greatest_set_verbosity(1);
    SUITES(RUN)
    GREATEST_PRINT_REPORT();
    struct greatest_report_t report;
    greatest_get_report(&report);
    printf("%u passed, %u failed\n", report.passed, report.failed);
    return report.failed == 0 && report.passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
