/* report: prints the results of `check`: rows for people, with details of each error, and rows of a
 * CSV file. */
#pragma once

#include "harness/base/csv.h"
#include "harness/base/table.h"
#include "harness/check/suite.h"
#include "outcome.h"

enum { REPORT_COLUMNS = 10, REPORT_LINE = 200 };

typedef struct {
    table_column columns[REPORT_COLUMNS];
    table rows;
    csv *csv;        /* NULL if none is wanted */
    const char *api; /* of the device, for the rows of the file */
    uint64_t seed;
    char
        *shown; /* tool output that was printed last: a compiler's message is shown once a kernel */
    bool show_skips; /* a row for each case that was skipped, with the reason */
    bool quiet;      /* no row for a case that passed */
    size_t passed, failed, skipped;
    outcome_list *outcomes;        /* NULL, or every case is kept there */
    char (*failures)[REPORT_LINE]; /* for the end: each case and its failure */
    size_t failure_count, failure_room;
    char first_skip[200];  /* which was the first, and why */
    const kernel *untried; /* whose cases were last counted here, not yet told */
    size_t untried_count;
    char why_untried[96];
} report;

void report_start(report *r, FILE *out, const case_list *cases, uint64_t seed, csv *file);
/* For suite_run: a listener that shows rows at once. */
suite_listener report_get_listener(report *r);
/* Prints which cases failed and the counts, frees what it holds. */
void report_end(report *r);
/* False, with e set, if every case was skipped: a run that checked nothing is no success. */
bool report_check_ran(const report *r, err *e);

/* Where the numbers come from: the head of a CSV file, and the same for people. */
csv *report_start_csv(const device_facts *f, uint64_t seed);
void report_print_header(const device_facts *f, uint64_t seed);
