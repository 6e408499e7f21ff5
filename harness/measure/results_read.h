/* results_read: files of measured times (results.h), read back. */
#pragma once

#include "result_row.h"

typedef struct {
    result_row row;
    timing_sample *samples;
    size_t count;
} result_case;

typedef struct {
    results_meta meta;
    result_case *cases;
    size_t count;
} results_list;

/* Malformed files are one sentence with file and line, EXIT_USAGE; so is another schema. A last
 * line without a newline is from a writer that was killed: it is left out. Columns of an
 * experiment's own are not read. */
bool results_read(const char *path, results_list *out, err *e);
void results_list_free(results_list *l);
result_case *results_list_find(const results_list *l, const char *name);

/* For readers of the file itself: is it of this schema? False with one sentence if not. */
bool results_check_schema(const csv_file *f, err *e);

#define RESULTS_SAMPLE_TITLES "case", "i", "gpu_ns", "encode_ns", "wall_ns"

/* The folder of a device below results/: "Apple M4" is apple-m4. */
void results_get_folder(const char *name, char *folder, size_t size);
/* The same with the path to it. */
bool results_find_folder(const char *name, char *path, size_t size, err *e);

/* NAME.csv to NAME.samples.csv. */
bool results_find_samples_path(const char *path, char *out, size_t size, err *e);
