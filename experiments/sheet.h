/* sheet: the results of an experiment: rows with named columns, numbers that claims are judged by,
 * conclusions, samples.
 *
 * An experiment fills rows while it measures, and draws its conclusions from the rows alone, so
 * that a test can give it made-up rows.
 *
 * Columns are those of every measured row (results.h) and whatever else the experiment puts in,
 * without declaration: those come after them in the order in which they were first filled. Missing
 * values are empty fields. */
#pragma once

#include "harness/measure/results.h"

typedef struct sheet sheet;

sheet *sheet_new(void);
void sheet_free(sheet *s);

/* A new row, the one that put fills from now on. */
void sheet_add_row(sheet *s);
void sheet_add_variant(sheet *s, const char *variant); /* with that in column `variant` */
void sheet_put_text(sheet *s, const char *column, const char *text);
void sheet_put(sheet *s, const char *column, double value); /* NaN: stays empty */
void sheet_put_text_at(sheet *s, size_t row, const char *column, const char *text);
void sheet_put_at(sheet *s, size_t row, const char *column, double value);
/* All known columns of a measured row; those already filled stay. */
void sheet_put_row(sheet *s, const result_row *r);

size_t sheet_count_rows(const sheet *s);
const char *sheet_get_text(const sheet *s, size_t row, const char *column); /* "" for none */
double sheet_get(const sheet *s, size_t row, const char *column);           /* NaN for none */

/* Pairs of a column and its text, ending in NULL: "variant", "reuse", "batch", "4", NULL. */
#define SHEET_PAIRS __attribute__((sentinel))
bool sheet_is(const sheet *s, size_t row, ...) SHEET_PAIRS;
/* The first such row, or SIZE_MAX; the number in one of its columns, or NaN. */
size_t sheet_find_row(const sheet *s, ...) SHEET_PAIRS;
double sheet_find(const sheet *s, const char *column, ...) SHEET_PAIRS;

/* The line through the rows of a variant (NULL: all rows), time in us = start + slope * x, by columns `x` and `ns`; NaN
 * where they do not determine it. */
void sheet_fit_line(const sheet *s, const char *variant, const char *x, const char *ns,
                    double *start, double *slope);

/* `# key: value`, for what holds for all rows. */
void sheet_add_note(sheet *s, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* `# metric: name = value unit`; none for a NaN. */
void sheet_add_metric(sheet *s, const char *name, double value, const char *unit);
/* `# spread: name = low to high`: what the quartiles of the samples give; only of a metric above,
 * none for a NaN. */
void sheet_add_spread(sheet *s, const char *name, double low, double high);
double sheet_get_metric(const sheet *s, const char *name); /* NaN for none */

/* One of at most three sentences. */
enum { SHEET_CONCLUSIONS = 3 };
void sheet_conclude(sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t sheet_count_conclusions(const sheet *s);
const char *sheet_get_conclusion(const sheet *s, size_t i);

void sheet_add_samples(sheet *s, const char *key, const timing_sample *samples, size_t count);

/* From now on a new row first saves those before it to this file, at most every few seconds, so that
 * they survive a crash; sheet_save does so at once. Rows that have no name yet are left out. */
void sheet_keep(sheet *s, const results_meta *m, const char *path);
bool sheet_save(sheet *s, err *e);

/* Both files (results.h), or neither; those of an earlier failure beside them are removed, unless it is NULL. Every row
 * needs a name of its own in column `case`, else EXIT_WRONG. */
bool sheet_write(const sheet *s, const results_meta *m, const char *path, const char *failed,
                 err *e);
