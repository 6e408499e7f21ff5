/* command: runs ./assay through a shell and keeps its output, for the suites that test the command
 * line. */
#ifndef ASSAY_TESTS_COMMAND_H
#define ASSAY_TESTS_COMMAND_H

#include <stdbool.h>

/* Runs a shell line in which $A is assay, $H the project's root, $D the device under test and $T a
 * path for files of the test. Returns the exit status, or -1. */
int command_run(const char *line);

/* The software device gets one thread from here on: for suites of commands that time kernels, where a
 * second thread mostly spins while other suites have the cores. */
void command_use_one_thread(void);

const char *command_get_output(void); /* stdout and stderr of the last run */
bool command_says(const char *text);

#define ASSERT_RUN(line, status)                                                                   \
    do {                                                                                           \
        int got_ = command_run(line);                                                              \
        ASSERT_EQ_FMTm(command_get_output(), status, got_, "%d");                                  \
    } while (0)
#define ASSERT_SAYS(text) ASSERTm(command_get_output(), command_says(text))

#endif
