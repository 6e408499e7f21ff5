/* results: files of measured times, of bench and of experiments alike.
 *
 * NAME.csv has a head of `# key: value` lines that say where the numbers come from, and rows. Every
 * row has the columns below, with the same names and units whatever measured it; an experiment may
 * add columns of its own after them. NAME.samples.csv beside it has every sample of every row, in
 * the order they were taken. A field that is not known, or makes no sense for a row, is empty.
 *
 * bench appends each case when it is finished, samples first, and replaces both files together where it had a row (see
 * publish.h): whenever the program is killed, every row that is there is whole and has its samples. A row without a time
 * says why in `message`.
 *
 * gpu_ns is the median on the GPU's clock; the other two clocks have columns of their own. */
#pragma once

#include "freshness.h"
#include "harness/base/csv.h"
#include "timing.h"

enum { RESULTS_SCHEMA = 2, RESULTS_META = 24 };

/* The head: where the numbers come from. */
typedef struct {
    char key[32], value[320];
} results_fact;

typedef struct results_meta {
    results_fact facts[RESULTS_META];
    size_t count;
} results_meta;

void results_meta_add(results_meta *m, const char *key, const char *value);
const char *results_meta_find(const results_meta *m, const char *key); /* "" if there is none */
/* Schema, version, device, driver, system, CPU, compilers, commit, seed, date. */
results_meta results_meta_new(const char *version, const device_facts *f, uint64_t seed);

/* Numbers are NaN where they are not known. */
typedef struct {
    char name[320]; /* column `case`: names it in both files, and in other runs */
    char device[96], api[16], model[128];
    char op[160], kernel[128], format[16], shape[72], input[16], math[16], regime[16], cache[8];
    char variant[128];   /* what is compared: a kernel of an op, or a variant of an experiment */
    double batch;        /* tokens */
    stats gpu, wall;     /* ns per play; count 0: no time */
    double encode_ns;    /* median */
    double repeats;      /* plays in a sample */
    double copies;       /* sets of buffers */
    double bytes, flops; /* of a play: what it must move and do */
    double gb_s, gflop_s, roof_gb_s;
    double pct_roof; /* of the roof that is nearer: that of bytes or that of arithmetic */
    double launch_ns, submit_ns; /* of an empty launch, in the same window */
    char stop[8], labels[128];
    char samples[256]; /* the file of samples, beside this one; set by the writer */
    char message[256]; /* why there is no time; "" if there is one */
    /* When, and with which program: a file may have rows of several runs. */
    char date[24], commit[32], build[20];
    double roof_gflop_s;   /* of the same window as roof_gb_s */
    char made_of[MADE_OF]; /* see freshness.h */
} result_row;

/* A row about which nothing is known yet. */
result_row result_row_new(void);

/* Date, commit and build, as the head has them. */
void result_row_sign(result_row *r, const results_meta *m);

/* Columns of every row, by number, for writing a row in another form. */
enum { RESULT_COLUMNS = 45 };
const char *result_get_title(int i);
/* Column i as text, "" for what is not known; *is_number says which kind it is. */
void result_get_column(const result_row *r, int i, char *text, size_t size, bool *is_number);
/* A number as written to a file. */
void result_format_number(double value, char *text, size_t size);

/* Does a file have the columns of timed rows? Files of check and validate have others. */
bool results_has_rows(const csv_file *f);
bool result_read_row(const csv_file *f, size_t row, result_row *out, err *e);

/* Reading -------------------------------------------------------------------------------------- */

typedef struct {
    result_row row;
    timing_sample *samples;
    size_t count;
} result_case;

typedef struct {
    results_meta meta;
    result_case *cases;
    size_t count, room;
} results_list;

/* Malformed files are one sentence with file and line, EXIT_USAGE; so is another schema. A last
 * line without a newline is from a writer that was killed: it is left out. Columns of an
 * experiment's own are not read. */
bool results_read(const char *path, results_list *out, err *e);
void results_list_free(results_list *l);
result_case *results_list_find(const results_list *l, const char *name);

/* For readers of the file itself: is it of this schema? False with one sentence if not. */
bool results_check_schema(const csv_file *f, err *e);

/* The folder of a device below results/: "Apple M4" is apple-m4. */
void results_get_folder(const char *name, char *folder, size_t size);
/* The same with the path to it. */
bool results_find_folder(const char *name, char *path, size_t size, err *e);

/* NAME.csv to NAME.samples.csv. */
bool results_find_samples_path(const char *path, char *out, size_t size, err *e);

/* Writing -------------------------------------------------------------------------------------- */

struct csv;
typedef struct results results;

/* Starts both files, or adds to those that are there: the rows of other cases stay. Files of another
 * device, driver, compiler, system or seed, and files that cannot be read, are moved to
 * baselines/NAME-DATE.csv beside them first; `moved` then names that file, and is "" otherwise. Folders
 * are made. The file is locked until results_close: a second writer is refused. */
results *results_merge(const char *path, const results_meta *m, char *moved, size_t size, err *e);
void results_close(results *r);
/* A row of a case that is there already replaces it. */
bool results_add(results *r, const result_row *row, const timing_sample *samples, size_t count,
                 err *e);

/* May a run with this head continue one with that? False if something differs that times depend on
 * and rows do not say themselves. */
bool results_check_resume(const char *path, const results_meta *was, const results_meta *now,
                          err *e);

/* A whole run, written at once: both files, or neither. Both begin with the same head; results_start_samples adds their
 * titles, too. Rows have the RESULT_COLUMNS, then others. A row is a line: results_add_cell puts spaces in the place of
 * newlines. */
void results_add_head(struct csv *c, const results_meta *m);
void results_add_cell(struct csv *c, const char *cell);
void results_start_samples(struct csv *c, const results_meta *m);
void results_add_samples(struct csv *c, const char *name, const timing_sample *samples,
                         size_t count);
/* Both files, or neither; NAME.csv and its samples in the same folder, if one is named, go when they come. */
bool results_write(const char *path, struct csv *rows, struct csv *samples, const char *failed,
                   err *e);

/* What each case took in every run so far: NAME.history.csv beside NAME.csv only grows by a line per timed case and
 * run, with date, commit, build, sum of the kernel, the median on the GPU's clock and its 95 percent interval. Adds a
 * row with its samples to the history beside `path`, the file of the rows; a row without a time is left out. */
bool results_add_history(const char *path, const results_meta *m, const result_row *row,
                         const timing_sample *samples, err *e);
