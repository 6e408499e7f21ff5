/* store: the folders of results that claims and the report are read from.
 *
 * One folder per device: CSV files and, beside them, charts as SVG. Everything is read at once and
 * kept; nothing is measured and nothing is written. The kind of a CSV file follows from what is in
 * it, not from its name: an experiment says so in its head, the others are known by their columns.
 * A file that is malformed, or that has the numbers of another device than most files of its folder, is
 * left out: they would be credited to the wrong one.
 *
 * Files of raw samples can be large: listed, but not read here. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/base/csv.h"
#include "harness/base/err.h"
#include "harness/measure/freshness.h"

typedef enum {
    STORE_EXPERIMENT, /* `# experiment: NAME` */
    STORE_BENCH,      /* of assay bench */
    STORE_CHECK,      /* of assay check */
    STORE_VALIDATE,   /* of assay validate */
    STORE_HISTORY,    /* of assay bench, over all its runs */
    STORE_TRACE,      /* of assay trace */
    STORE_AGX,        /* of assay lint --agx */
    STORE_OTHER       /* any other table */
} store_kind;

/* `# metric: NAME = VALUE UNIT`, and `# spread: NAME = LOW to HIGH` where the experiment knows it. */
typedef struct {
    char name[64], unit[24];
    double value;
    double low, high; /* what the quartiles of its samples give; NaN: not known */
} store_metric;

typedef struct {
    char path[PATH_MAX];
    char name[256]; /* of the experiment, else of the file without .csv */
    store_kind kind;
    csv_file *csv;
    store_metric *metrics;
    size_t metric_count, metric_room;
    file_origin origin; /* rows 0: the file is a history, or another program's */
} store_file;

typedef struct {
    char path[PATH_MAX];
    char name[128];   /* the last part of the path */
    char device[160]; /* as its files call it, else the name */
    bool emulated;    /* the software device, or a virtual GPU: times mean nothing for a GPU */
    store_file *files;
    size_t count, room;
    char (*others)[256]; /* names of charts and of files with samples */
    size_t other_count, other_room;
} store_folder;

typedef struct {
    store_folder *folders;
    size_t count, room;
    char (*skipped)[256]; /* files that were left out: one sentence each */
    size_t skipped_count, skipped_room;
    freshness *fresh;
} store;

/* Each path is the folder of a device, or contains some; scratch is left out.
 * A file that is left out is remembered in `skipped`, with its line if it is malformed. A path without results is
 * EXIT_USAGE, unless may_be_empty. */
bool store_read(const char *const *paths, size_t count, bool may_be_empty, store *out, err *e);
/* The same for what a user names; if that is nothing, for all results of the root. */
bool store_open(const char *const *names, size_t count, bool may_be_empty, store *out, err *e);
void store_free(store *s);

/* After everything else is done: true if no file was left out, else EXIT_USAGE with the sentences. */
bool store_admit_skipped(const store *s, err *e);

/* Why an experiment failed; NULL if it did not. */
const char *store_get_failure(const store_file *f);
/* NULL if there is none. */
const store_file *store_find(const store_folder *f, store_kind kind, const char *name);
const store_metric *store_find_metric(const store_file *f, const char *name);

/* Of all its files. */
file_origin store_sum_origins(const store_folder *f);

/* The first value of a key in the heads of a folder's files, or NULL. */
const char *store_find_meta(const store_folder *f, const char *key);

/* The i-th chart of a file: NAME.svg, or NAME-anything.svg. NULL past the last. */
const char *store_find_chart(const store_folder *f, const char *file_name, size_t i);
bool store_has(const store_folder *f, const char *other);
