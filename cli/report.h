/* report: prints the results of `check` and `validate`: for people a line per kernel, op or case, then what
 * failed, with details and how to run it alone; for programs the rows of a CSV file. */
#pragma once

#include "harness/base/csv.h"
#include "harness/base/table.h"
#include "outcome.h"
#include "suite_options.h"

enum { REPORT_COLUMNS = 10 };

/* What a line is about. */
typedef enum { REPORT_KERNELS, REPORT_OPS, REPORT_CASES, REPORT_VERDICT } report_detail;

/* The cases of a kernel, or of an op, so far. */
typedef struct {
    const op *op;
    const kernel *kernel; /* the last */
    size_t passed, failed;
    double margin, ns; /* the largest of all, or below 0; all together */
    bool is_printed;
} report_sum;

typedef struct {
    report_detail detail;
    bool show_skips; /* a line for each case that was skipped, with the reason */
    bool
        is_last; /* every case comes once more at most: lines are printed as soon as they are whole */
    bool lists_findings; /* the caller prints them: they are not repeated with failures */
    const char *tool;    /* of several that run the same cases, or NULL */
    char again[160];     /* the command that runs a case alone, up to its name */
    table rows;
    bool has_header;
    table_column columns[REPORT_COLUMNS];
    csv *csv;        /* NULL if none is wanted */
    const char *api; /* of the device, for the rows of the file */
    uint64_t seed;
    report_sum *sums;
    size_t sum_count, sum_room, current; /* the one whose cases come */
    size_t passed, failed, skipped;
    outcome_list *outcomes; /* NULL, or every case is kept there */
    FILE *failures;         /* text for the end: the cases that failed, with details */
    char *failure_text;
    size_t failure_size, failure_count;
    const kernel *warned_kernel; /* the last that was warned about */
    const kernel *failed_kernel; /* the last that is among them */
    size_t failed_more, untried; /* its other cases that failed; those that were not run */
    char first_skip[200];        /* which was the first, and why */
} report;

/* `name` is the verb's. */
void report_start(report *r, const char *name, const suite_settings *s, const device_facts *f,
                  const case_list *cases, csv *file);
/* For suite_run, which may be called several times with the same cases: shows rows at once. */
suite_listener report_get_listener(report *r);
/* Prints the lines that are not printed yet. */
void report_end_rows(report *r);
/* The same, which cases failed and the counts; frees what it holds. */
void report_end(report *r);
/* False, with e set, if every case was skipped: a run that checked nothing is no success. */
bool report_check_ran(const report *r, err *e);

/* Where the numbers come from: the head of a CSV file, and the same for people. */
/* Can the files be written that the settings name? Asked before the first case runs. */
bool report_can_write(const suite_settings *s, err *e);
csv *report_start_csv(const device_facts *f, uint64_t seed);
void report_print_header(const device_facts *f, uint64_t seed);
