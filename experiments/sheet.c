#include "sheet.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/csv.h"
#include "harness/base/format.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/size.h"
#include "harness/measure/fit.h"

enum { COLUMNS = 80 };

typedef struct {
    char *cells[COLUMNS]; /* NULL: empty */
} row;

typedef struct {
    char *key, *value;
} fact;

typedef struct {
    char name[64], unit[16];
    double value, low, high; /* low is NaN: the spread is not known */
} metric;

typedef struct {
    char *name;
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
    char *conclusions[SHEET_CONCLUSIONS];
    size_t conclusion_count;
    const results_meta *kept_meta; /* NULL: nothing is kept */
    const char *kept_path;
    uint64_t saved_ns;
};

static void *grow(void *array, size_t count, size_t item) {
    array = realloc(array, size_multiply(count + 1, item));
    assert(array);
    memset((char *)array + count * item, 0, item);
    return array;
}

static char *print_text(const char *format, va_list values) {
    va_list again;
    va_copy(again, values);
    size_t bytes = (size_t)vsnprintf(NULL, 0, format, again) + 1;
    va_end(again);
    char *text = array_new(bytes, 1);
    vsnprintf(text, bytes, format, values);
    return text;
}

static char *copy_text(const char *text) {
    char *copy = strdup(text);
    assert(copy);
    return copy;
}

sheet *sheet_new(void) {
    sheet *s = array_new(1, sizeof *s);
    for (int i = 0; i < RESULT_COLUMNS; i++)
        s->columns[s->column_count++] = copy_text(result_get_title(i));
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
        free(s->samples[i].name);
        free(s->samples[i].samples);
    }
    for (size_t i = 0; i < s->conclusion_count; i++)
        free(s->conclusions[i]);
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
    enum { KEEP_S = 5 };
    if (s->kept_meta && os_now_ns() - s->saved_ns > KEEP_S * 1000000000ull)
        sheet_save(s, NULL); /* without it a crash loses rows, and nothing else */
    s->rows = grow(s->rows, s->row_count, sizeof *s->rows);
    s->row_count++;
}

void sheet_add_variant(sheet *s, const char *variant) {
    sheet_add_row(s);
    sheet_put_text(s, "variant", variant);
}

void sheet_put_text_at(sheet *s, size_t r, const char *column, const char *text) {
    size_t i = find_column(s, column);
    assert(r < s->row_count && i < COLUMNS);
    if (i == s->column_count)
        s->columns[s->column_count++] = copy_text(column);
    free(s->rows[r].cells[i]);
    s->rows[r].cells[i] = copy_text(text);
}

void sheet_put_text(sheet *s, const char *column, const char *text) {
    sheet_put_text_at(s, s->row_count - 1, column, text);
}

void sheet_put_at(sheet *s, size_t r, const char *column, double value) {
    char text[32];
    result_format_number(value, text, sizeof text);
    sheet_put_text_at(s, r, column, text);
}

void sheet_put_row(sheet *s, const result_row *r) {
    char text[MADE_OF];
    bool is_number;
    for (int i = 0; i < RESULT_COLUMNS; i++) {
        result_get_column(r, i, text, sizeof text, &is_number);
        if (*text && !*sheet_get_text(s, s->row_count - 1, result_get_title(i)))
            sheet_put_text(s, result_get_title(i), text);
    }
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

void sheet_fit_line(const sheet *s, const char *variant, const char *x, const char *ns,
                    double *start, double *slope) {
    double *parts = array_new(3 * s->row_count + 1, sizeof *parts),
           *times = parts + 2 * s->row_count;
    size_t count = 0;
    for (size_t r = 0; r < s->row_count; r++)
        if (!variant || sheet_is(s, r, "variant", variant, NULL)) {
            parts[2 * count] = 1;
            parts[2 * count + 1] = sheet_get(s, r, x);
            times[count++] = 1e-3 * sheet_get(s, r, ns);
        }
    fit f;
    bool is_known = fit_parts(parts, times, count, 2, &f, NULL);
    *start = is_known ? f.value[0] : NAN;
    *slope = is_known ? f.value[1] : NAN;
    free(parts);
}

/* The rest ---------------------------------------------------------------------------------- */

void sheet_add_note(sheet *s, const char *key, const char *format, ...) {
    va_list values;
    va_start(values, format);
    s->notes = grow(s->notes, s->note_count, sizeof *s->notes);
    s->notes[s->note_count++] = (fact){copy_text(key), print_text(format, values)};
    va_end(values);
}

void sheet_add_metric(sheet *s, const char *name, double value, const char *unit) {
    if (!isfinite(value))
        return;
    s->metrics = grow(s->metrics, s->metric_count, sizeof *s->metrics);
    metric *m = &s->metrics[s->metric_count++];
    assert(strlen(name) < sizeof m->name && strlen(unit) < sizeof m->unit);
    snprintf(m->name, sizeof m->name, "%s", name);
    snprintf(m->unit, sizeof m->unit, "%s", unit);
    m->value = value;
    m->low = m->high = NAN;
}

void sheet_add_spread(sheet *s, const char *name, double low, double high) {
    for (size_t i = 0; i < s->metric_count; i++)
        if (strcmp(s->metrics[i].name, name) == 0 && !isnan(low) && !isnan(high)) {
            s->metrics[i].low = fmin(low, high);
            s->metrics[i].high = fmax(low, high);
        }
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
    char *text = print_text(format, values);
    size_t size = 2 * strlen(text) + 64; /* digits instead of an exponent, and units of two bytes */
    va_end(values);
    s->conclusions[s->conclusion_count] = array_new(1, size);
    format_text(text, s->conclusions[s->conclusion_count++], size);
    free(text);
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
    timing_sample *copy = array_new(count + 1, sizeof *copy);
    if (count > 0)
        memcpy(copy, samples, count * sizeof *copy);
    s->samples[s->sample_count++] = (sample_set){copy_text(key), copy, count};
}

/* Files ------------------------------------------------------------------------------------- */

static bool check_names(const sheet *s, const char *path, err *e) {
    for (size_t r = 0; r < s->row_count; r++) {
        const char *name = sheet_get_text(s, r, "case");
        if (!*name)
            return err_set(e, EXIT_WRONG, "%.120s: row %zu has no name in column 'case'", path,
                           r + 1);
        if (sheet_find_row(s, "case", name, NULL) < r)
            return err_set(e, EXIT_WRONG, "%.120s: two rows are the case '%.80s'", path, name);
    }
    return true;
}

static void add_facts(csv *c, const sheet *s) {
    char text[128];
    for (size_t i = 0; i < s->note_count; i++)
        csv_add_meta(c, s->notes[i].key, s->notes[i].value);
    for (size_t i = 0; i < s->conclusion_count; i++)
        csv_add_meta(c, "conclusion", s->conclusions[i]);
    for (const metric *k = s->metrics; k < s->metrics + s->metric_count; k++) {
        snprintf(text, sizeof text, "%s = %.6g %s", k->name, k->value, k->unit);
        csv_add_meta(c, "metric", text);
        if (isnan(k->low))
            continue;
        snprintf(text, sizeof text, "%s = %.6g to %.6g", k->name, k->low, k->high);
        csv_add_meta(c, "spread", text);
    }
}

/* Rows that no meter has filled get the device of the run as well. */
static const char *get_cell(const sheet *s, size_t r, const char *column, const results_meta *m,
                            const char *samples) {
    static const char *const keys[] = {"device", "api", "date", "commit", "build"};
    if (strcmp(column, "samples") == 0 && sheet_get(s, r, "n") > 0)
        return samples;
    const char *text = sheet_get_text(s, r, column);
    for (size_t k = 0; !*text && k < sizeof keys / sizeof *keys; k++)
        if (strcmp(column, keys[k]) == 0)
            return results_meta_find(m, column);
    return text;
}

bool sheet_write(const sheet *s, const results_meta *m, const char *path, const char *failed,
                 err *e) {
    char samples_path[PATH_MAX];
    if (!check_names(s, path, e) ||
        !results_find_samples_path(path, samples_path, sizeof samples_path, e))
        return false;
    csv *rows = csv_new(), *samples = csv_new();
    results_add_head(rows, m);
    add_facts(rows, s);
    csv_add_row(rows, (const char *const *)s->columns, s->column_count);
    for (size_t r = 0; r < s->row_count; r++) {
        for (size_t i = 0; i < s->column_count; i++)
            results_add_cell(rows, get_cell(s, r, s->columns[i], m, path_get_name(samples_path)));
        csv_end_row(rows);
    }
    results_start_samples(samples, m);
    for (size_t i = 0; i < s->sample_count; i++)
        results_add_samples(samples, s->samples[i].name, s->samples[i].samples,
                            s->samples[i].count);
    bool ok = results_write(path, rows, samples, failed, e);
    csv_free(rows);
    csv_free(samples);
    return ok;
}

void sheet_keep(sheet *s, const results_meta *m, const char *path) {
    s->kept_meta = m;
    s->kept_path = path;
    s->saved_ns = os_now_ns();
}

bool sheet_save(sheet *s, err *e) {
    sheet named = *s;
    named.rows = array_new(s->row_count + 1, sizeof *named.rows);
    named.row_count = 0;
    for (size_t r = 0; r < s->row_count; r++)
        if (*sheet_get_text(s, r, "case"))
            named.rows[named.row_count++] = s->rows[r];
    bool ok = sheet_write(&named, s->kept_meta, s->kept_path, NULL, e);
    free(named.rows);
    s->saved_ns = os_now_ns();
    return ok;
}
