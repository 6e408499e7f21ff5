/* page: the report as one HTML page, drawn from stored results and nothing else.
 *
 * The frame, fixed texts, style and script are files beside this one, read when a page is drawn:
 * page.html has {{placeholders}} for the parts. The same files give the same page: no clock is
 * read, nothing is measured. */
#pragma once

#include "claims.h"
#include "html.h"
#include "store.h"

typedef struct {
    const store *store;
    const claim_list *claims;
    const char *const *experiments; /* all that exist, in order; unknown ones come after them */
    size_t experiment_count;
} page_content;

/* Experiments that failed, and checks and validations with something wrong. */
size_t page_count_failures(const store *s);

/* Its links are relative to the folder of `path`. */
bool page_write(const page_content *c, const char *path, err *e);

/* Parts of the page: page.c and part_*.c -------------------------------------------------------- */

typedef struct {
    const page_content *content;
    const store *store;
    char folder[PATH_MAX]; /* of the page, absolute */
    const char **names;    /* of experiments that have results, in order */
    size_t name_count, name_room;
} page;

typedef void page_part(const page *p, FILE *out);
page_part page_print_title, page_print_failures, page_print_doubts, page_print_summary,
    page_print_claims, page_print_experiments;

/* What a device has in a section; page.c puts it below the device's name. */
typedef void page_device_part(const page *p, FILE *out, const store_folder *f);
page_device_part page_print_token, page_print_right, page_print_times, page_print_profile;

/* Shared printers, in page.c ------------------------------------------------------------------- */

/* HTML with what a row of a table has: {title} is the text of that column, {#title} a cell with its number. */
void page_print_row(FILE *out, const char *format, const csv_file *f, size_t row);

/* A paragraph set off from the text, in which `code` is set as code. */
void page_print_note(FILE *out, const char *sentence);

/* Links to a table and, where there are some, its samples. */
void page_print_table_files(const page *p, FILE *out, const store_folder *f,
                            const store_file *file);

/* "stale", "origin unknown" or nothing. */
void page_print_staleness(FILE *out, const store_file *file);
/* Commit and date of a file, and what is stale of it. */
void page_print_origin(FILE *out, const store_file *file);

/* What a device has in a section: below its name if there are several. An emulated one is folded if
 * there are others, and one that is there again, with files of another model. */
bool page_is_folded(const page *p, const store_folder *f);
void page_start_device(const page *p, FILE *out, const store_folder *f);
void page_end_device(const page *p, FILE *out, const store_folder *f);

/* Charts of a file or of an experiment; how many there are. */
size_t page_print_charts(const page *p, FILE *out, const store_folder *f, const char *what);

/* Counts, in part_kernels.c ------------------------------------------------------------------- */

/* What `assay check` and `assay validate` found in a folder. */
typedef struct {
    size_t checked, wrong;              /* cases */
    size_t validated, failed, findings; /* a case may fail without a finding */
} page_verdict;

page_verdict page_count(const store_folder *f);
