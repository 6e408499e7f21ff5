/* report: prints the results of `check`: rows for people, with details of each error, and rows of a
 * CSV file. */
#ifndef ASSAY_REPORT_H
#define ASSAY_REPORT_H

#include "harness/base/csv.h"
#include "harness/base/table.h"
#include "harness/check/suite.h"

enum { REPORT_COLUMNS = 10 };

typedef struct {
    table_column columns[REPORT_COLUMNS];
    table rows;
    csv *csv; /* NULL if none is wanted */
    uint64_t seed;
    char *shown; /* the tool output printed last: a compiler's message is shown once per kernel */
    bool show_skips; /* one row per skipped case, with the reason */
    size_t passed, failed, skipped;
    char first_skip[200]; /* the first one skipped, and why */
} report;

void report_start(report *r, FILE *out, const case_list *cases, uint64_t seed, csv *file);
void report_add(report *r, const test_case *c, const case_report *what);
/* report_add for suite_run: a listener that shows rows at once. */
suite_listener report_get_listener(report *r);
void report_end(report *r); /* prints the summary, frees what it holds */
/* False, with e set, if every case was skipped: a run that checked nothing has failed. */
bool report_check_ran(const report *r, err *e);

/* Where the numbers come from: the head of a CSV file, and the same for people. */
csv *report_start_csv(const device_facts *f, uint64_t seed);
void report_print_header(const device_facts *f, uint64_t seed);

#endif
