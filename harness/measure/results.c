/* results: see results.h. Owns how the files are written; what a row's columns are is result_row.c's. */
#include "results.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/csv.h"
#include "harness/base/host.h"
#include "harness/base/os.h"
#include "harness/base/path.h"

struct results {
    char path[PATH_MAX], samples_path[PATH_MAX];
    results_list known; /* all that is in the files */
    lock *lock;
};

static const char *const sample_titles[] = {RESULTS_SAMPLE_TITLES};
enum { SAMPLE_COLUMNS = sizeof sample_titles / sizeof *sample_titles };

/* Writing ----------------------------------------------------------------------------------- */

void results_add_head(csv *c, const results_meta *m) {
    for (size_t i = 0; i < m->count; i++)
        csv_add_meta(c, m->facts[i].key, m->facts[i].value);
}

/* A row is a line: readers can cut a file at any of them. */
void results_add_cell(csv *c, const char *cell) {
    char text[1024];
    snprintf(text, sizeof text, "%s", cell);
    for (char *p = text; *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    csv_add_text(c, text);
}

static void add_row(csv *c, const result_row *row, const char *samples_path) {
    result_row whole = *row;
    char text[MADE_OF];
    bool is_number;
    if (row->gpu.count > 0)
        snprintf(whole.samples, sizeof whole.samples, "%.120s", path_get_name(samples_path));
    for (int i = 0; i < RESULT_COLUMNS; i++) {
        result_get_column(&whole, i, text, sizeof text, &is_number);
        results_add_cell(c, text);
    }
    csv_end_row(c);
}

void results_start_samples(csv *c, const results_meta *m) {
    results_add_head(c, m);
    csv_add_row(c, sample_titles, SAMPLE_COLUMNS);
}

void results_add_samples(csv *c, const char *name, const timing_sample *samples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        results_add_cell(c, name);
        csv_add_u64(c, i);
        for (int k = 0; k < CLOCK_COUNT; k++) {
            char text[32];
            snprintf(text, sizeof text, "%.9g", timing_get_clock(&samples[i], (timing_clock)k));
            csv_add_text(c, text);
        }
        csv_end_row(c);
    }
}

/* Both files with what is known, each at once. Rows come last: killed between the two, a row would
 * not find its samples, so a file that loses rows loses them first (forget). */
static bool write_rows(const results *r, err *e) {
    csv *rows = csv_new();
    results_add_head(rows, &r->known.meta);
    for (int i = 0; i < RESULT_COLUMNS; i++)
        csv_add_text(rows, result_get_title(i));
    csv_end_row(rows);
    for (size_t i = 0; i < r->known.count; i++)
        add_row(rows, &r->known.cases[i].row, r->samples_path);
    bool ok = csv_write(rows, r->path, e);
    csv_free(rows);
    return ok;
}

static bool write_samples(const results *r, err *e) {
    csv *samples = csv_new();
    results_start_samples(samples, &r->known.meta);
    for (size_t i = 0; i < r->known.count; i++) {
        const result_case *c = &r->known.cases[i];
        results_add_samples(samples, c->row.name, c->samples, c->count);
    }
    bool ok = csv_write(samples, r->samples_path, e);
    csv_free(samples);
    return ok;
}

static bool make_folder_of(const char *path, err *e) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return true;
    *slash = 0;
    return os_make_folder(folder, e);
}

/* With the lock of the file. */
static results *results_new(const char *path, err *e) {
    results *r = array_new(1, sizeof *r);
    int n = snprintf(r->path, sizeof r->path, "%s", path);
    if (n >= 0 && (size_t)n < sizeof r->path &&
        results_find_samples_path(path, r->samples_path, sizeof r->samples_path, e) &&
        make_folder_of(path, e) && (r->lock = lock_take(path, e)))
        return r;
    free(r);
    return NULL;
}

static bool start_files(results *r, const results_meta *m, err *e) {
    r->known = (results_list){.meta = *m};
    /* Killed between the two, rows of another run would stand beside these samples. */
    return (unlink(r->path) == 0 || errno == ENOENT ||
            err_set(e, EXIT_CANNOT, "cannot replace %.160s: %s", r->path, strerror(errno))) &&
           write_samples(r, e) && write_rows(r, e);
}

void results_close(results *r) {
    if (!r)
        return;
    results_list_free(&r->known);
    lock_release(r->lock);
    free(r);
}

/* The row first: samples that no row has are harmless. */
static bool forget(results *r, const char *name, err *e) {
    result_case *c = results_list_find(&r->known, name);
    if (!c)
        return true;
    free(c->samples);
    *c = r->known.cases[--r->known.count];
    return write_rows(r, e) && write_samples(r, e);
}

static void remember(results *r, const result_row *row, const timing_sample *samples,
                     size_t count) {
    results_list *l = &r->known;
    l->cases = realloc(l->cases, (l->count + 1) * sizeof *l->cases);
    timing_sample *copy = array_new(count + 1, sizeof *copy);
    assert(l->cases);
    if (count > 0)
        memcpy(copy, samples, count * sizeof *copy);
    l->cases[l->count++] = (result_case){*row, copy, count};
}

bool results_add(results *r, const result_row *row, const timing_sample *samples, size_t count,
                 err *e) {
    if (!forget(r, row->name, e))
        return false;
    csv *rows = csv_new(), *all = csv_new();
    add_row(rows, row, r->samples_path);
    results_add_samples(all, row->name, samples, count);
    bool ok = (count == 0 || csv_append(all, r->samples_path, e)) && csv_append(rows, r->path, e);
    csv_free(rows);
    csv_free(all);
    if (ok)
        remember(r, row, samples, count);
    return ok;
}

/* Merging ----------------------------------------------------------------------------------- */

/* Times of other conditions do not belong in one file. */
static bool is_alike(const results_meta *a, const results_meta *b) {
    static const char *const keys[] = {"device", "api", "driver",        "compiler",
                                       "os",     "cpu", "host compiler", "seed"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(results_meta_find(a, keys[i]), results_meta_find(b, keys[i])) != 0)
            return false;
    return true;
}

/* FOLDER/NAME.csv becomes FOLDER/baselines/NAME-DATE.csv, and so do its samples. */
static bool move_aside(const results *r, char *moved, size_t size, err *e) {
    char date[64], samples[PATH_MAX];
    const char *name = path_get_name(r->path);
    host_get_date(date, sizeof date);
    for (char *from = date, *to = date;; from++)
        if (*from != ':' && !(*to++ = *from))
            break;
    if (!path_print(moved, size, e, "%.*sbaselines/%.*s-%s.csv", (int)(name - r->path), r->path,
                    (int)strlen(name) - 4, name, date) ||
        !make_folder_of(moved, e) || !results_find_samples_path(moved, samples, sizeof samples, e))
        return false;
    bool ok =
        (rename(r->samples_path, samples) == 0 || errno == ENOENT) && rename(r->path, moved) == 0;
    return ok || err_set(e, EXIT_CANNOT, "cannot move %.120s to %.100s: %s", r->path, moved,
                         strerror(errno));
}

static bool merge(results *r, const results_meta *m, char *moved, size_t size, err *e) {
    results_list there;
    err why = {.code = EXIT_OK};
    if (access(r->path, F_OK) != 0)
        return start_files(r, m, e);
    bool is_read = results_read(r->path, &there, &why);
    if (!is_read || !is_alike(&there.meta, m)) {
        if (is_read)
            results_list_free(&there);
        return move_aside(r, moved, size, e) && start_files(r, m, e);
    }
    /* Written again with what is whole: half a row of a writer that was killed is left out. */
    r->known = there;
    r->known.meta = *m;
    return write_samples(r, e) && write_rows(r, e);
}

results *results_merge(const char *path, const results_meta *m, char *moved, size_t size, err *e) {
    results *r = results_new(path, e);
    moved[0] = 0;
    if (r && merge(r, m, moved, size, e))
        return r;
    results_close(r);
    return NULL;
}

bool results_check_resume(const char *path, const results_meta *was, const results_meta *now,
                          err *e) {
    static const char *const may_change[] = {"date",  "commit", "build",
                                             "assay", "cache",  "cache sweep, GB/s"};
    for (size_t i = 0; i < now->count; i++) {
        const char *key = now->facts[i].key, *value = results_meta_find(was, key);
        bool is_free = strcmp(value, now->facts[i].value) == 0;
        for (size_t k = 0; k < sizeof may_change / sizeof *may_change; k++)
            is_free = is_free || strcmp(key, may_change[k]) == 0;
        if (!is_free)
            return err_set(
                e, EXIT_USAGE,
                "cannot resume %.80s: its %s was '%.40s' and is '%.40s' now; run without "
                "--resume, or into another file",
                path, key, value, now->facts[i].value);
    }
    return true;
}

/* A whole run ------------------------------------------------------------------------------- */

bool results_write(const char *path, csv *rows, csv *samples, err *e) {
    char samples_path[PATH_MAX];
    if (!results_find_samples_path(path, samples_path, sizeof samples_path, e) ||
        !make_folder_of(path, e))
        return false;
    lock *held = lock_take(path, e);
    bool ok = held && csv_write(samples, samples_path, e) && csv_write(rows, path, e);
    lock_release(held);
    return ok;
}

/* History ----------------------------------------------------------------------------------- */

/* NAME.csv to NAME.history.csv. */
static bool find_history(const char *path, char *out, size_t size, err *e) {
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

static bool start_history(const char *path, const results_meta *m, err *e) {
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

bool results_add_history(const char *path, const results_meta *m, const result_row *row,
                         const timing_sample *samples, err *e) {
    char file[4096];
    double low, high;
    if (row->gpu.count == 0)
        return true;
    if (!find_history(path, file, sizeof file, e) ||
        (access(file, F_OK) != 0 && !start_history(file, m, e)))
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
