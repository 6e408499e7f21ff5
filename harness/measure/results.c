/* results: see results.h. Owns the files; what a row's columns are is result_row.c's. */
#include "results.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/csv.h"
#include "harness/base/os.h"

struct results {
    char path[PATH_MAX], samples_path[PATH_MAX];
    results_list known; /* rows found when it was resumed, without samples */
};

static const char *const sample_titles[] = {"case", "i", "gpu_ns", "encode_ns", "wall_ns"};
enum { SAMPLE_COLUMNS = sizeof sample_titles / sizeof *sample_titles };

void results_get_folder(const char *name, char *folder, size_t size) {
    size_t used = 0;
    for (const char *p = name; *p && used + 1 < size; p++)
        if (isalnum((unsigned char)*p))
            folder[used++] = (char)tolower((unsigned char)*p);
        else if (used > 0 && folder[used - 1] != '-')
            folder[used++] = '-';
    while (used > 0 && folder[used - 1] == '-')
        used--;
    folder[used] = 0;
}

bool results_find_samples_path(const char *path, char *out, size_t size, err *e) {
    size_t length = strlen(path);
    if (length < 5 || strcmp(path + length - 4, ".csv") != 0)
        return err_set(e, EXIT_USAGE, "results are written to a file NAME.csv, not to '%.120s'",
                       path);
    int n = snprintf(out, size, "%.*s.samples.csv", (int)(length - 4), path);
    return (n > 0 && (size_t)n < size) ||
           err_set(e, EXIT_USAGE, "the path %.120s... is too long", path);
}

/* Writing ----------------------------------------------------------------------------------- */

static void add_head(csv *c, const results_meta *m) {
    for (size_t i = 0; i < m->count; i++)
        csv_add_meta(c, m->facts[i].key, m->facts[i].value);
}

/* A row is a line: readers can cut a file at any of them. */
static void add_cell(csv *c, const char *cell) {
    char text[1024];
    snprintf(text, sizeof text, "%s", cell);
    for (char *p = text; *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    csv_add_text(c, text);
}

static const char *get_file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void add_row(csv *c, const result_row *row, const char *samples_path) {
    result_row whole = *row;
    char text[512];
    bool is_number;
    if (row->gpu.count > 0)
        snprintf(whole.samples, sizeof whole.samples, "%.120s", get_file_name(samples_path));
    for (int i = 0; i < RESULT_COLUMNS; i++) {
        result_get_column(&whole, i, text, sizeof text, &is_number);
        add_cell(c, text);
    }
    csv_end_row(c);
}

static void start_samples(csv *c, const results_meta *m) {
    add_head(c, m);
    for (int i = 0; i < SAMPLE_COLUMNS; i++)
        csv_add_text(c, sample_titles[i]);
    csv_end_row(c);
}

static void add_samples(csv *c, const char *name, const timing_sample *samples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        add_cell(c, name);
        csv_add_u64(c, i);
        for (int k = 0; k < CLOCK_COUNT; k++) {
            char text[32];
            snprintf(text, sizeof text, "%.9g", timing_get_clock(&samples[i], (timing_clock)k));
            csv_add_text(c, text);
        }
        csv_end_row(c);
    }
}

/* Both files with these cases (none: NULL), each at once. */
static bool write_files(const results *r, const results_meta *m, const results_list *l, err *e) {
    csv *rows = csv_new(), *samples = csv_new();
    add_head(rows, m);
    for (int i = 0; i < RESULT_COLUMNS; i++)
        csv_add_text(rows, result_get_title(i));
    csv_end_row(rows);
    start_samples(samples, m);
    for (size_t i = 0; l && i < l->count; i++) {
        add_row(rows, &l->cases[i].row, r->samples_path);
        add_samples(samples, l->cases[i].row.name, l->cases[i].samples, l->cases[i].count);
    }
    /* Killed between the two, rows of another run would stand beside these samples: a new run takes
     * the old rows away first. */
    bool ok = (l || unlink(r->path) == 0 || errno == ENOENT ||
               err_set(e, EXIT_CANNOT, "cannot replace %.160s: %s", r->path, strerror(errno))) &&
              csv_write(samples, r->samples_path, e) && csv_write(rows, r->path, e);
    csv_free(rows);
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

static results *results_new(const char *path, err *e) {
    results *r = calloc(1, sizeof *r);
    assert(r);
    int n = snprintf(r->path, sizeof r->path, "%s", path);
    if (n >= 0 && (size_t)n < sizeof r->path &&
        results_find_samples_path(path, r->samples_path, sizeof r->samples_path, e))
        return r;
    free(r);
    return NULL;
}

results *results_create(const char *path, const results_meta *m, err *e) {
    results *r = results_new(path, e);
    if (r && make_folder_of(path, e) && write_files(r, m, NULL, e))
        return r;
    results_close(r);
    return NULL;
}

void results_close(results *r) {
    if (!r)
        return;
    results_list_free(&r->known);
    free(r);
}

bool results_add(results *r, const result_row *row, const timing_sample *samples, size_t count,
                 err *e) {
    csv *rows = csv_new(), *all = csv_new();
    add_row(rows, row, r->samples_path);
    add_samples(all, row->name, samples, count);
    bool ok = (count == 0 || csv_append(all, r->samples_path, e)) && csv_append(rows, r->path, e);
    csv_free(rows);
    csv_free(all);
    return ok;
}

/* A whole table ----------------------------------------------------------------------------- */

static const char *get_cell(const results_table *t, size_t row, size_t column) {
    const char *text = t->cells[row * t->columns + column];
    return text ? text : "";
}

static size_t find_title(const results_table *t, const char *title) {
    size_t i = 0;
    while (strcmp(t->titles[i], title) != 0)
        i++;
    return i;
}

static bool check_names(const results_table *t, const char *path, err *e) {
    size_t column = find_title(t, "case");
    for (size_t r = 0; r < t->rows; r++) {
        const char *name = get_cell(t, r, column);
        if (!*name)
            return err_set(e, EXIT_WRONG, "%.120s: row %zu has no name in column 'case'", path,
                           r + 1);
        for (size_t k = 0; k < r; k++)
            if (strcmp(get_cell(t, k, column), name) == 0)
                return err_set(e, EXIT_WRONG, "%.120s: two rows are the case '%.80s'", path, name);
    }
    return true;
}

static csv *make_rows(const results_table *t, const char *samples_path) {
    csv *c = csv_new();
    size_t n = find_title(t, "n"), samples = find_title(t, "samples");
    add_head(c, t->meta);
    for (size_t i = 0; i < t->fact_count; i++)
        csv_add_meta(c, t->facts[2 * i], t->facts[2 * i + 1]);
    for (size_t i = 0; i < t->columns; i++)
        csv_add_text(c, t->titles[i]);
    csv_end_row(c);
    for (size_t r = 0; r < t->rows; r++) {
        bool is_timed = strtod(get_cell(t, r, n), NULL) > 0;
        for (size_t i = 0; i < t->columns; i++)
            add_cell(c, i == samples && is_timed ? get_file_name(samples_path) : get_cell(t, r, i));
        csv_end_row(c);
    }
    return c;
}

bool results_write(const char *path, const results_table *t, err *e) {
    char samples_path[PATH_MAX];
    if (!results_find_samples_path(path, samples_path, sizeof samples_path, e) ||
        !check_names(t, path, e) || !make_folder_of(path, e))
        return false;
    csv *rows = make_rows(t, samples_path), *samples = csv_new();
    start_samples(samples, t->meta);
    for (size_t i = 0; i < t->sample_sets; i++)
        add_samples(samples, t->samples[i].name, t->samples[i].samples, t->samples[i].count);
    bool ok = csv_write(samples, samples_path, e) && csv_write(rows, path, e);
    csv_free(rows);
    csv_free(samples);
    return ok;
}

/* Reading ----------------------------------------------------------------------------------- */

static csv_file *read_whole_lines(const char *path, err *e) {
    size_t bytes;
    char *text = os_read_file(path, &bytes, e);
    if (!text)
        return NULL;
    while (bytes > 0 && text[bytes - 1] != '\n')
        bytes--;
    csv_file *f = csv_parse(text, bytes, path, e);
    free(text);
    return f;
}

bool results_check_schema(const csv_file *f, err *e) {
    const char *schema = csv_get_meta(f, "schema");
    char ours[16];
    snprintf(ours, sizeof ours, "%d", RESULTS_SCHEMA);
    if (!schema)
        return err_set(e, EXIT_USAGE, "%.140s:1: no line '# schema: %s': not a file of results",
                       csv_get_path(f), ours);
    return strcmp(schema, ours) == 0 ||
           err_set(e, EXIT_USAGE,
                   "%.140s:1: schema %.20s, but this assay reads schema %s: measure it again",
                   csv_get_path(f), schema, ours);
}

static bool read_meta(const csv_file *f, results_meta *m, err *e) {
    const char *key, *value;
    if (!results_check_schema(f, e))
        return false;
    for (size_t i = 0; csv_list_meta(f, i, &key, &value) && m->count < RESULTS_META; i++)
        results_meta_add(m, key, value);
    return true;
}

result_case *results_list_find(const results_list *l, const char *name) {
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->cases[i].row.name, name) == 0)
            return &l->cases[i];
    return NULL;
}

static bool read_rows(const csv_file *f, results_list *out, err *e) {
    out->cases = calloc(csv_count_rows(f) + 1, sizeof *out->cases);
    assert(out->cases);
    for (size_t i = 0; i < csv_count_rows(f); i++) {
        result_case c = {.count = 0};
        if (!result_read_row(f, i, &c.row, e))
            return false;
        if (!c.row.name[0])
            return err_set(e, EXIT_USAGE, "%.120s:%zu: the row has no name in column 'case'",
                           csv_get_path(f), csv_get_line(f, i));
        if (results_list_find(out, c.row.name))
            return err_set(e, EXIT_USAGE, "%.120s:%zu: the case %.80s appears twice",
                           csv_get_path(f), csv_get_line(f, i), c.row.name);
        out->cases[out->count++] = c;
    }
    return true;
}

static bool read_sample(const csv_file *f, size_t row, const size_t *column, timing_sample *out,
                        err *e) {
    return csv_get_double(f, row, column[2], &out->gpu_ns, e) &&
           csv_get_double(f, row, column[3], &out->encode_ns, e) &&
           csv_get_double(f, row, column[4], &out->wall_ns, e);
}

/* Samples whose name no row has are from a case that was never finished, or an experiment's extra
 * samples. */
static bool read_samples(const csv_file *f, results_list *l, err *e) {
    size_t column[SAMPLE_COLUMNS];
    result_case *c = NULL;
    for (int i = 0; i < SAMPLE_COLUMNS; i++)
        if (!csv_find_column(f, sample_titles[i], &column[i], e))
            return false;
    for (size_t i = 0; i < csv_count_rows(f); i++) {
        const char *name = csv_get_text(f, i, column[0]);
        if (!c || strcmp(c->row.name, name) != 0)
            c = results_list_find(l, name);
        if (!c)
            continue;
        if (!c->samples) {
            size_t most = csv_count_rows(f) - i; /* a limit, whatever its row says */
            c->samples = calloc(c->row.gpu.count < most ? c->row.gpu.count + 1 : most + 1,
                                sizeof *c->samples);
            assert(c->samples);
        }
        if (c->count == c->row.gpu.count)
            return err_set(e, EXIT_USAGE,
                           "%.120s:%zu: more samples of %.80s than the %zu of its row",
                           csv_get_path(f), csv_get_line(f, i), name, c->count);
        timing_sample *s = &c->samples[c->count++];
        if (!read_sample(f, i, column, s, e))
            return false;
        if (!(s->gpu_ns >= 0 && s->encode_ns >= 0 && s->wall_ns >= 0))
            return err_set(e, EXIT_USAGE, "%.120s:%zu: a time is negative or not a number",
                           csv_get_path(f), csv_get_line(f, i));
    }
    return true;
}

static bool check_counts(const results_list *l, const char *samples_path, err *e) {
    for (size_t i = 0; i < l->count; i++)
        if (l->cases[i].count != l->cases[i].row.gpu.count)
            return err_set(e, EXIT_USAGE, "%.120s: %zu samples of %.80s, but its row says %zu",
                           samples_path, l->cases[i].count, l->cases[i].row.name,
                           l->cases[i].row.gpu.count);
    return true;
}

bool results_read(const char *path, results_list *out, err *e) {
    *out = (results_list){.count = 0};
    char samples_path[PATH_MAX];
    csv_file *rows = NULL, *samples = NULL;
    bool ok = results_find_samples_path(path, samples_path, sizeof samples_path, e) &&
              (rows = read_whole_lines(path, e)) && read_meta(rows, &out->meta, e) &&
              read_rows(rows, out, e) && (samples = read_whole_lines(samples_path, e)) &&
              read_samples(samples, out, e) && check_counts(out, samples_path, e);
    csv_file_free(rows);
    csv_file_free(samples);
    if (!ok)
        results_list_free(out);
    return ok;
}

void results_list_free(results_list *l) {
    for (size_t i = 0; i < l->count; i++)
        free(l->cases[i].samples);
    free(l->cases);
    *l = (results_list){.count = 0};
}

/* Continuing -------------------------------------------------------------------------------- */

/* The date is that of the first run; caches are measured, and measured again. */
static bool do_agree(const char *path, const results_meta *a, const results_meta *b, err *e) {
    for (size_t i = 0; i < b->count; i++) {
        const char *key = b->facts[i].key, *was = results_meta_find(a, key);
        if (strcmp(key, "date") == 0 || strncmp(key, "cache", 5) == 0 ||
            strcmp(was, b->facts[i].value) == 0)
            continue;
        return err_set(e, EXIT_USAGE,
                       "cannot resume %.80s: its %s was '%.40s' and is '%.40s' now; run without "
                       "--resume, or into another file",
                       path, key, was, b->facts[i].value);
    }
    return true;
}

results *results_resume(const char *path, const results_meta *m, err *e) {
    if (access(path, F_OK) != 0)
        return results_create(path, m, e);
    results *r = results_new(path, e);
    /* Rewritten with the complete rows: half a row of a writer that was killed is left out. */
    if (r && results_read(path, &r->known, e) && do_agree(path, &r->known.meta, m, e) &&
        write_files(r, &r->known.meta, &r->known, e))
        return r;
    results_close(r);
    return NULL;
}

bool results_has(const results *r, const char *name) {
    return results_list_find(&r->known, name) != NULL;
}
