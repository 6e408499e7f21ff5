/* report: how the results of `check` look: rows for people, with the details of what is wrong, and
 * rows of a CSV file. */
#ifndef ASSAY_REPORT_H
#define ASSAY_REPORT_H

#include "cases.h"
#include "harness/base/csv.h"
#include "harness/base/table.h"
#include "harness/check/check.h"

/* What became of one case. */
typedef struct {
    bool made; /* the check could be made: result holds; else error or failure says why */
    check_result result;
    err error;             /* what kept the check from being made: a compile error */
    const char *failure;   /* how its worker ended, or NULL */
    finding_list findings; /* of the device's validation, where it is on */
} case_report;

enum { REPORT_COLUMNS = 10 };

typedef struct {
    table_column columns[REPORT_COLUMNS];
    table rows;
    csv *csv; /* NULL if none is wanted */
    uint64_t seed;
    char
        *shown; /* tool output that was printed last: a compiler's message is shown once a kernel */
    bool show_skips; /* a row for each case that was skipped, with the reason */
    size_t passed, failed, skipped;
    char first_skip[200]; /* which was the first, and why */
} report;

void report_start(report *r, FILE *out, const case_list *cases, uint64_t seed, csv *file);
void report_add(report *r, const test_case *c, const case_report *what);
void report_end(report *r); /* prints the summary, frees what it holds */
/* False, with e set, if every case was skipped: a run that checked nothing is no success. */
bool report_check_ran(const report *r, err *e);

#endif
