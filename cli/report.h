/* report: what `check` and `validate` take on the command line, and how they print their results: for people a
 * line per kernel or case, then what failed, with details and how to run it alone; for programs the
 * rows of a CSV file. */
#pragma once

#include "cases.h"
#include "harness/base/os.h"
#include "harness/base/record.h"
#include "harness/check/suite.h"
#include "options.h"
#include "outcome.h"

typedef struct {
    suite run;
    const char *csv, *junit, *sarif, *shapes, *extra, *input;
    axes_query axes;
    bool quick, skipped, quiet, verbose, json, worker;
} suite_settings;

/* Options that both verbs have, for their tables. */
/* clang-format off */
#define HELD_OUT_OPTION(value) \
    {"shapes", OPTION_TEXT, value, "random:N", "also N shapes per kernel, drawn from the seed, that its op does not list", 0, 0}
#define SUITE_OPTIONS(settings) \
    RANDOM_SEED_OPTION(&(settings).run.seed, "the inputs"), \
    TEXT_OPTION("shape", &(settings).shapes, "S,...", "only cases of these shapes, such as 3x576"), \
    HELD_OUT_OPTION(&(settings).extra), \
    AXES_OPTIONS((settings).axes), \
    TEXT_OPTION("input", &(settings).input, "D", "only this input: normal, zeros, denormals, large, negative"), \
    FLAG_OPTION("quick", &(settings).quick, "only the edge shapes of each kernel, and one shape with every input"), \
    FLAG_OPTION("skipped", &(settings).skipped, "also list the cases that are skipped, and why"), \
    {"v|verbose", OPTION_FLAG, &(settings).verbose, NULL, "a row per case instead of a line per kernel", 0, 0}, \
    {"q|quiet", OPTION_FLAG, &(settings).quiet, NULL, "only the failures and the counts", 0, 0}, \
    FLAG_OPTION("json", &(settings).json, "print one JSON object instead of the table"), \
    TEXT_OPTION("junit", &(settings).junit, "FILE.xml", "also write the cases as JUnit XML"), \
    DEVICE_OPTION(&(settings).run.device), \
    {"jobs", OPTION_NUMBER, &(settings).run.jobs, "N", \
     "workers at the same time (default: one per CPU, up to 16)", 1, 256}, \
    {"timeout", OPTION_SECONDS, &(settings).run.timeout_s, "S", \
     "give up on a case after this many seconds, not counting compilation (default 60)", 0, 0}, \
    {"worker", OPTION_FLAG, &(settings).worker, NULL, NULL, 0, 0}

/* The cases that they ask for. */
#define SUITE_QUERY(settings, names, count) \
    {.filters = names, .filter_count = count, .shapes = (settings).shapes, .input = (settings).input, \
     .axes = (settings).axes, .quick = (settings).quick, .extra = (settings).extra, \
     .seed = (settings).run.seed, .with_skips = true}
/* clang-format on */

/* What a line is about. */
typedef enum { REPORT_KERNELS, REPORT_CASES, REPORT_VERDICT } report_detail;

/* The cases of a kernel so far. */
typedef struct {
    const kernel *kernel;
    const char *name, *verdict;
    size_t cases, failed;
    double margin, ns; /* the largest of all, NaN: none; all together */
    bool is_printed;
} report_sum;

typedef struct {
    const suite_settings *settings;
    const device_facts *facts;
    const char *verb;
    uint64_t began_ns;
    report_detail detail;
    bool
        is_last; /* every case comes once more at most: lines are printed as soon as they are whole */
    bool lists_findings; /* the caller prints them: they are not repeated with failures */
    const char *tool;    /* of several that run the same cases, or NULL */
    sink rows;
    csv *csv; /* NULL if none is wanted */
    report_sum *sums;
    size_t sum_count, sum_room, current;    /* the one whose cases come */
    size_t passed, failed, skipped, wanted; /* wanted: all of them */
    outcome_list outcomes;                  /* every case */
    memory_file *failures; /* text for the end: the cases that failed, with details */
    memory_file *commands; /* the lines after them: how to run each alone */
    size_t command_count;
    size_t failure_count;
    const kernel *warned_kernel; /* the last that was warned about */
    const kernel *failed_kernel; /* the last that is among them */
    size_t failed_more, untried; /* its other cases that failed; those that were not run */
    char first_skip[200];        /* which was the first, and why */
} report;

/* Can the files be written that the settings name? Asked before the first case runs. */
bool report_can_write(const suite_settings *s, err *e);
/* name: the verb's. Says where the numbers come from. */
void report_start(report *r, const char *name, const suite_settings *s, const device_facts *f,
                  const case_list *cases);
/* From now on a CSV file gets a row for each case. */
void report_keep_rows(report *r);
/* For suite_run, which may be called several times with the same cases: shows rows at once. */
suite_listener report_get_listener(report *r);
/* Prints the lines that are not printed yet. */
void report_end_rows(report *r);
/* The same, which cases failed, the files and objects for other programs (found: what validation found, or NULL), and, as
 * the last line, the counts. Of a run that was interrupted, which e says, e says then how far it came. */
bool report_end(report *r, const finding_list *found, err *e);
/* False, with e set, if every case was skipped: a run that checked nothing is no success. */
bool report_check_ran(const report *r, err *e);
void report_free(report *r);

/* Where the numbers come from: the head of a CSV file, and the same for people. */
csv *report_start_csv(const device_facts *f, uint64_t seed);
void report_print_header(const device_facts *f, uint64_t seed);
