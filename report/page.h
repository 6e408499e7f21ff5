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
} page_content;

/* Experiments that failed, and checks and validations with something wrong. */
size_t page_count_failures(const store *s);

/* Its links are relative to the folder of `path`. */
bool page_write(const page_content *c, const char *path, err *e);

/* Parts of the page: page.c and part_*.c -------------------------------------------------------- */

typedef struct {
    const page_content *content;
    store sorted;       /* whose folders are those of the content: the device measured last first */
    const store *store; /* = &sorted */
    char *chart_style;  /* what makes charts dark where the page is */
    char folder[PATH_MAX]; /* of the page, absolute */
} page;

typedef void page_part(const page *p, FILE *out);
page_part page_print_title, page_print_failures, page_print_changes, page_print_doubts,
    page_print_claims, page_print_experiments;

/* What a device has in a section; page.c puts it below the device's name. */
typedef void page_device_part(const page *p, FILE *out, const store_folder *f);
page_device_part page_print_summary, page_print_token, page_print_right, page_print_times,
    page_print_profile, page_print_rivals;

enum { PAGE_NAME = 300 };

/* Shared printers, in page.c ------------------------------------------------------------------- */

/* A paragraph set off from the text, in which `code` is set as code. */
void page_print_note(FILE *out, const char *sentence);

/* Tokens per second of a test of `assay model bench`: "pp512", "tg32@d16". */
double page_get_rate(const char *test, double wall_ns);

/* Links to a table and, where there are some, its samples. */
void page_print_table_files(const page *p, FILE *out, const store_folder *f,
                            const store_file *file);

/* The same at the end of a paragraph, and commit and date of the file. */
void page_end_source(const page *p, FILE *out, const store_folder *f, const store_file *file);

/* "stale", "origin unknown" or nothing. */
void page_print_staleness(FILE *out, const store_file *file);
/* Commit and date of a file, and what is stale of it. */
void page_print_origin(FILE *out, const store_file *file);

/* What a device has in a section: below its name if there are several. An emulated one is folded if there are
 * others, unless it was measured last, and so is a folder of a device that had one, with files of another model. */
bool page_is_folded(const page *p, const store_folder *f);
bool page_is_again(const page *p, const store_folder *f); /* the device had a folder before it */
/* The device, and the folder if it is another of the same device. */
const char *page_get_name(const page *p, const store_folder *f, char text[PAGE_NAME]);
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
