/* page_parts: what page.c and the files that print its parts (part_*.c) share. */
#pragma once

#include "html.h"
#include "page.h"

typedef struct {
    const page_content *content;
    const store *store;
    char folder[PATH_MAX]; /* of the page, absolute */
    const char **names;    /* of experiments that have results, in order */
    size_t name_count;
} page;

typedef bool page_part(page *p, FILE *out, err *e);

page_part page_print_title, page_print_date, page_print_failures, page_print_doubts,
    page_print_summary, page_print_found, page_print_claims, page_print_experiments,
    page_print_right, page_print_times, page_print_devices, page_print_missing, page_print_files;

/* Shared printers, in page_shared.c ------------------------------------------------------------ */

/* A link to a file of results by its name. */
void page_print_file(const page *p, FILE *out, const store_folder *f, const char *name);

/* Commit and date of a file, and what is stale of it. */
void page_print_origin(FILE *out, const store_file *file);

/* All rows of a file as a table that sorts; long ones are cut, and say so. */
void page_print_rows(const page *p, FILE *out, const store_folder *f, const store_file *file);

/* Charts of a file or of an experiment; how many there are. */
size_t page_print_charts(const page *p, FILE *out, const store_folder *f, const char *what);

/* After the times of bench: trends over all runs, and verdicts against the baselines; in
 * part_history.c. */
void page_print_history(const page *p, FILE *out, const store_folder *f, const store_file *bench);

/* Counts, in part_kernels.c ------------------------------------------------------------------- */

/* What `assay check` and `assay validate` found in a folder. */
typedef struct {
    bool is_known;
    size_t cases, wrong;
} page_verdict;

page_verdict page_count_checks(const store_folder *f);
/* Cases that failed, with or without a finding. */
page_verdict page_count_validations(const store_folder *f);
size_t page_count_findings(const store_folder *f);
