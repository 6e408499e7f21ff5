#include "history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/csv.h"
#include "harness/base/path.h"

/* NAME.csv to NAME.history.csv. */
static bool find_path(const char *path, char *out, size_t size, err *e) {
    if (!path_ends_with(path, ".csv"))
        return err_set(e, EXIT_USAGE, "a history belongs to a file NAME.csv, not to '%.120s'",
                       path);
    return path_print(out, size, e, "%.*s.history.csv", (int)strlen(path) - 4, path);
}

/* By order statistics: no shape of the distribution is assumed. */
static void find_interval(const timing_sample *samples, size_t count, double *low, double *high) {
    timing_result r = {.samples = (timing_sample *)(uintptr_t)samples, .count = count};
    double *all = timing_list_clock(&r, CLOCK_GPU), reach = 0.98 * sqrt((double)count);
    stats_sort(all, count);
    double first = floor((double)count / 2 - reach), last = ceil((double)count / 2 + reach);
    *low = all[(size_t)fmax(0, first)];
    *high = all[(size_t)fmin((double)count - 1, last)];
    free(all);
}

static bool start(const char *path, const results_meta *m, err *e) {
    static const char *const titles[] = {"case", "date",      "commit", "build",   "kernel_hash",
                                         "n",    "median_ns", "low_ns", "high_ns", "labels"};
    csv *c = csv_new();
    csv_add_meta(c, "schema", results_meta_find(m, "schema"));
    csv_add_meta(c, "device", results_meta_find(m, "device"));
    csv_add_row(c, titles, sizeof titles / sizeof *titles);
    bool ok = csv_write(c, path, e);
    csv_free(c);
    return ok;
}

bool history_add(const char *path, const results_meta *m, const result_row *row,
                 const timing_sample *samples, err *e) {
    char file[4096];
    double low, high;
    if (row->gpu.count == 0)
        return true;
    if (!find_path(path, file, sizeof file, e) || (access(file, F_OK) != 0 && !start(file, m, e)))
        return false;
    find_interval(samples, row->gpu.count, &low, &high);
    made_of_part part = {.sum = ""};
    made_of_find(row->made_of, "kernel", &part);
    const char *const texts[] = {row->name, row->date, row->commit, row->build, part.sum};
    const double numbers[] = {(double)row->gpu.count, row->gpu.median, low, high};
    csv *c = csv_new();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        csv_add_text(c, texts[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char text[32];
        result_format_number(numbers[i], text, sizeof text);
        csv_add_text(c, text);
    }
    csv_add_text(c, row->labels);
    csv_end_row(c);
    bool ok = csv_append(c, file, e);
    csv_free(c);
    return ok;
}
