/* sheet: see sheet.h. */
#include "sheet.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/csv.h"
#include "harness/base/os.h"
#include "harness/base/size.h"

enum { COLUMNS = 64, TEXT_BYTES = 512 };

typedef struct {
    char *cells[COLUMNS]; /* NULL: empty */
} row;

typedef struct {
    char *key, *value;
} fact;

typedef struct {
    char name[64], unit[16];
    double value;
} metric;

typedef struct {
    char *key;
    timing_sample *samples;
    size_t count;
} sample_set;

struct sheet {
    char *columns[COLUMNS];
    size_t column_count;
    row *rows;
    fact *notes;
    metric *metrics;
    sample_set *samples;
    size_t row_count, note_count, metric_count, sample_count;
    char conclusions[SHEET_CONCLUSIONS][TEXT_BYTES];
    size_t conclusion_count;
};

static void *grow(void *array, size_t count, size_t item) {
    array = realloc(array, size_multiply(count + 1, item));
    assert(array);
    memset((char *)array + count * item, 0, item);
    return array;
}

static char *copy_text(const char *text) {
    char *copy = strdup(text);
    assert(copy);
    return copy;
}

sheet *sheet_new(void) {
    sheet *s = calloc(1, sizeof *s);
    assert(s);
    return s;
}

void sheet_free(sheet *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->column_count; i++)
        free(s->columns[i]);
    for (size_t r = 0; r < s->row_count; r++)
        for (size_t i = 0; i < COLUMNS; i++)
            free(s->rows[r].cells[i]);
    for (size_t i = 0; i < s->note_count; i++) {
        free(s->notes[i].key);
        free(s->notes[i].value);
    }
    for (size_t i = 0; i < s->sample_count; i++) {
        free(s->samples[i].key);
        free(s->samples[i].samples);
    }
    free(s->rows);
    free(s->notes);
    free(s->metrics);
    free(s->samples);
    free(s);
}

/* Rows -------------------------------------------------------------------------------------- */

static size_t find_column(const sheet *s, const char *name) {
    size_t i = 0;
    while (i < s->column_count && strcmp(s->columns[i], name) != 0)
        i++;
    return i;
}

void sheet_add_row(sheet *s) {
    s->rows = grow(s->rows, s->row_count, sizeof *s->rows);
    s->row_count++;
}

static void put_text(sheet *s, size_t r, const char *column, const char *text) {
    size_t i = find_column(s, column);
    assert(r < s->row_count && i < COLUMNS);
    if (i == s->column_count)
        s->columns[s->column_count++] = copy_text(column);
    free(s->rows[r].cells[i]);
    s->rows[r].cells[i] = copy_text(text);
}

void sheet_put_text(sheet *s, const char *column, const char *text) {
    put_text(s, s->row_count - 1, column, text);
}

void sheet_put_at(sheet *s, size_t r, const char *column, double value) {
    char text[32] = "";
    if (!isnan(value))
        snprintf(text, sizeof text, value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.9g",
                 value);
    put_text(s, r, column, text);
}

void sheet_put(sheet *s, const char *column, double value) {
    sheet_put_at(s, s->row_count - 1, column, value);
}

size_t sheet_count_rows(const sheet *s) {
    return s->row_count;
}

const char *sheet_get_text(const sheet *s, size_t r, const char *column) {
    size_t i = find_column(s, column);
    assert(r < s->row_count);
    const char *text = i < s->column_count ? s->rows[r].cells[i] : NULL;
    return text ? text : "";
}

double sheet_get(const sheet *s, size_t r, const char *column) {
    const char *text = sheet_get_text(s, r, column);
    char *end;
    double value = strtod(text, &end);
    return *text && !*end ? value : NAN;
}

static bool has_pairs(const sheet *s, size_t r, va_list pairs) {
    for (const char *column; (column = va_arg(pairs, const char *));)
        if (strcmp(sheet_get_text(s, r, column), va_arg(pairs, const char *)) != 0)
            return false;
    return true;
}

bool sheet_is(const sheet *s, size_t r, ...) {
    va_list pairs;
    va_start(pairs, r);
    bool is = has_pairs(s, r, pairs);
    va_end(pairs);
    return is;
}

static size_t find_row(const sheet *s, va_list pairs) {
    for (size_t r = 0; r < s->row_count; r++) {
        va_list again;
        va_copy(again, pairs);
        bool is = has_pairs(s, r, again);
        va_end(again);
        if (is)
            return r;
    }
    return SIZE_MAX;
}

size_t sheet_find_row(const sheet *s, ...) {
    va_list pairs;
    va_start(pairs, s);
    size_t r = find_row(s, pairs);
    va_end(pairs);
    return r;
}

double sheet_find(const sheet *s, const char *column, ...) {
    va_list pairs;
    va_start(pairs, column);
    size_t r = find_row(s, pairs);
    va_end(pairs);
    return r == SIZE_MAX ? NAN : sheet_get(s, r, column);
}

/* The rest ---------------------------------------------------------------------------------- */

void sheet_add_note(sheet *s, const char *key, const char *format, ...) {
    char text[TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    s->notes = grow(s->notes, s->note_count, sizeof *s->notes);
    s->notes[s->note_count++] = (fact){copy_text(key), copy_text(text)};
}

void sheet_add_metric(sheet *s, const char *name, double value, const char *unit) {
    if (isnan(value))
        return;
    s->metrics = grow(s->metrics, s->metric_count, sizeof *s->metrics);
    metric *m = &s->metrics[s->metric_count++];
    snprintf(m->name, sizeof m->name, "%s", name);
    snprintf(m->unit, sizeof m->unit, "%s", unit);
    m->value = value;
}

double sheet_get_metric(const sheet *s, const char *name) {
    for (size_t i = 0; i < s->metric_count; i++)
        if (strcmp(s->metrics[i].name, name) == 0)
            return s->metrics[i].value;
    return NAN;
}

void sheet_conclude(sheet *s, const char *format, ...) {
    assert(s->conclusion_count < SHEET_CONCLUSIONS);
    va_list values;
    va_start(values, format);
    vsnprintf(s->conclusions[s->conclusion_count++], TEXT_BYTES, format, values);
    va_end(values);
}

size_t sheet_count_conclusions(const sheet *s) {
    return s->conclusion_count;
}

const char *sheet_get_conclusion(const sheet *s, size_t i) {
    assert(i < s->conclusion_count);
    return s->conclusions[i];
}

void sheet_add_samples(sheet *s, const char *key, const timing_sample *samples, size_t count) {
    s->samples = grow(s->samples, s->sample_count, sizeof *s->samples);
    sample_set *set = &s->samples[s->sample_count++];
    *set = (sample_set){copy_text(key), malloc(size_multiply(count + 1, sizeof *samples)), count};
    assert(set->samples);
    if (count > 0)
        memcpy(set->samples, samples, count * sizeof *samples);
}

/* Files ------------------------------------------------------------------------------------- */

static void add_head(csv *c, const sheet *s, const results_meta *m) {
    for (size_t i = 0; i < m->count; i++)
        csv_add_meta(c, m->facts[i].key, m->facts[i].value);
    for (size_t i = 0; i < s->note_count; i++)
        csv_add_meta(c, s->notes[i].key, s->notes[i].value);
}

static csv *make_rows(const sheet *s, const results_meta *m) {
    csv *c = csv_new();
    char text[128];
    add_head(c, s, m);
    for (size_t i = 0; i < s->conclusion_count; i++)
        csv_add_meta(c, "conclusion", s->conclusions[i]);
    for (size_t i = 0; i < s->metric_count; i++) {
        const metric *k = &s->metrics[i];
        snprintf(text, sizeof text, "%s = %.6g %s", k->name, k->value, k->unit);
        csv_add_meta(c, "metric", text);
    }
    for (size_t i = 0; i < s->column_count; i++)
        csv_add_text(c, s->columns[i]);
    csv_end_row(c);
    for (size_t r = 0; r < s->row_count; r++) {
        for (size_t i = 0; i < s->column_count; i++)
            csv_add_text(c, s->rows[r].cells[i] ? s->rows[r].cells[i] : "");
        csv_end_row(c);
    }
    return c;
}

static csv *make_samples(const sheet *s, const results_meta *m) {
    static const char *const titles[] = {"case", "i", "gpu_ns", "encode_ns", "wall_ns"};
    csv *c = csv_new();
    add_head(c, s, m);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        csv_add_text(c, titles[i]);
    csv_end_row(c);
    for (size_t i = 0; i < s->sample_count; i++)
        for (size_t k = 0; k < s->samples[i].count; k++) {
            csv_add_text(c, s->samples[i].key);
            csv_add_u64(c, k);
            for (int clock = 0; clock < CLOCK_COUNT; clock++) {
                char text[32];
                snprintf(text, sizeof text, "%.9g",
                         timing_get_clock(&s->samples[i].samples[k], (timing_clock)clock));
                csv_add_text(c, text);
            }
            csv_end_row(c);
        }
    return c;
}

bool sheet_write(const sheet *s, const results_meta *m, const char *path, err *e) {
    char samples_path[PATH_MAX], folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    if (!results_find_samples_path(path, samples_path, sizeof samples_path, e) ||
        (slash && slash != folder && !os_make_folder(folder, e)))
        return false;
    csv *rows = make_rows(s, m), *samples = make_samples(s, m);
    bool ok = csv_write(samples, samples_path, e) && csv_write(rows, path, e);
    csv_free(rows);
    csv_free(samples);
    return ok;
}
