/* bench_files: where `bench` keeps its rows: the file of the device, and named baselines in the folder
 * baselines/ beside it. */
#pragma once

#include "bench_cases.h"
#include "harness/measure/results.h"

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
