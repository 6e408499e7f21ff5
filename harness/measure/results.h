/* results: files of measured times, of bench and of experiments alike.
 *
 * NAME.csv has a head of `# key: value` lines that say where the numbers come from, and rows. Every
 * row has the columns below, with the same names and units whatever measured it; an experiment may
 * add columns of its own after them. NAME.samples.csv beside it has every sample of every row, in
 * the order they were taken. A field that is not known, or makes no sense for a row, is empty.
 *
 * bench appends each case when it is finished, samples first: whenever the program is killed, every
 * row that is there is whole and has its samples. A row without a time says why in `message`.
 *
 * gpu_ns is the median on the GPU's clock; the other two clocks have columns of their own. */
#pragma once

#include "results_read.h"

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

/* The samples of one case. */
typedef struct {
    const char *name;
    const timing_sample *samples;
    size_t count;
} results_samples;

/* A whole run, written at once: both files, or neither. */
typedef struct {
    const results_meta *meta;
    const char *const *facts; /* (fact_count, 2): more of the head of NAME.csv, keys and values */
    size_t fact_count;
    const char *const *titles; /* (columns): the RESULT_COLUMNS of every row, then others */
    size_t columns;
    const char *const *cells; /* (rows, columns); NULL is empty */
    size_t rows;
    const results_samples *samples;
    size_t sample_sets;
} results_table;

/* EXIT_WRONG if a row has no name in column `case`, or that of another. */
bool results_write(const char *path, const results_table *t, err *e);
