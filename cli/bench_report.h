/* bench_report: rows of `bench`: how they look as they come, or all of them as JSON or Markdown; what a run
 * comes to, in sentences; verdicts, at the end of `compare`, `bench --baseline` and `model bench --baseline`;
 * and where they are kept: the file of the device, and named baselines in the folder baselines/ beside it. */
#pragma once

#include "cases.h"
#include "harness/base/record.h"
#include "harness/measure/comparison.h"
#include "harness/measure/results.h"

typedef struct {
    double min_effect; /* 0.03 */
    bool explain, markdown, json;
    bool against; /* the base is a kernel of others, which the note names */
    uint64_t seed;
} comparison_options;

/* Adds a comparison of what was timed interleaved. */
comparison_row *bench_compare(comparison_list *l, const char *key, const result_row *base,
                              const timing_sample *base_samples, const result_row *now,
                              const timing_sample *samples);
/* Decides, prints one row per case and a summary; EXIT_REGRESSION if one is slower, else
 * EXIT_INCONCLUSIVE if one is ambiguous or missing, else EXIT_OK. */
exit_code comparison_print(comparison_list *l, const comparison_options *o, FILE *out);

/* A table as wide as these cases need, to which rows are added as they come. */
void bench_print_start(sink *s, FILE *out, const bench_list *cases, const bench_settings *settings);
void bench_print_row(sink *s, const result_row *r);

void bench_print_json(FILE *out, const results_meta *m, const result_row *rows, size_t count,
                      comparison_list *compared, const comparison_options *o);
void bench_print_markdown(FILE *out, const results_meta *m, const result_row *rows, size_t count);
/* Which kernel is how many times as fast as the others of the same op, format, shape, input, regime and
 * cache, and what is above a roof. */
void bench_print_summary(FILE *out, const result_row *rows, size_t count, const bench_list *cases);

/* `out`, or results/<device>/NAME.csv where it is NULL. */
bool bench_files_find_rows(const char *out, const char *name, const device_facts *f, char *path,
                           size_t size, err *e);

/* The file of a named baseline beside `rows`; refuses names that are none. */
bool bench_files_find_named(const char *rows, const char *name, char *path, size_t size, err *e);

/* What --baseline means: a folder of kernels (*is_folder), a CSV file, or the name of a baseline that
 * was saved. EXIT_USAGE if there is none, or if it is the file that this run writes. */
bool bench_files_find_baseline(const char *rows, const char *text, char *path, size_t size,
                               bool *is_folder, err *e);

/* Its rows, which must be of this device: a time of another is no baseline. `called`: as the user named it. */
bool bench_files_read_baseline(const char *path, const char *called, const device_facts *f,
                               results_list *out, err *e);
/* The file that rows are added to; says so if those of other conditions were moved aside. */
results *bench_files_open(const char *path, const results_meta *m, err *e);

/* Takes the cases out of the list whose rows in `rows` are still true: timed, by a program of
 * the same commit, from code that has not changed since and in the same math mode. *kept counts them. */
bool bench_files_drop_finished(const char *rows, const results_meta *m, const device_facts *f,
                               bench_list *l, size_t *kept, err *e);
