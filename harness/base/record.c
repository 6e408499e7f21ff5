/* record: see record.h. */
#include "record.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "format.h"

static const void *find(const field *f, const void *row) {
    return (const char *)row + f->at;
}

static const char *get_text(const field *f, const void *row) {
    const char *text;
    if (f->kind == FIELD_CHARS)
        return find(f, row);
    memcpy(&text, find(f, row), sizeof text);
    return text ? text : "";
}

static int64_t get_integer(const field *f, const void *row) {
    const void *at = find(f, row);
    uint32_t small;
    int negative;
    uint64_t large;
    if (f->kind == FIELD_FLAG)
        return *(const bool *)at;
    if (f->size == sizeof large)
        return (int64_t) * (const uint64_t *)memcpy(&large, at, sizeof large);
    assert(f->size == sizeof small);
    return f->kind == FIELD_COUNT ? (int64_t) * (uint32_t *)memcpy(&small, at, sizeof small)
                                  : *(int *)memcpy(&negative, at, sizeof negative);
}

static double get_real(const field *f, const void *row) {
    double value;
    return *(double *)memcpy(&value, find(f, row), sizeof value);
}

double field_get_number(const field *f, const void *row) {
    return f->kind >= FIELD_REAL ? get_real(f, row) : (double)get_integer(f, row);
}

const char *field_print(const field *f, const void *row, char *text, size_t size) {
    double value = f->kind >= FIELD_REAL ? get_real(f, row) : NAN;
    if (f->kind <= FIELD_TEXT)
        snprintf(text, size, "%s", get_text(f, row));
    else if (f->kind < FIELD_REAL)
        snprintf(text, size, "%" PRId64, get_integer(f, row));
    else if (f->kind == FIELD_TIME)
        format_time(value, text, size);
    else if (f->format && !isnan(value))
        snprintf(text, size, f->format, value);
    else
        format_number(value, 3, text, size - 1);
    if (f->kind == FIELD_PERCENT && !isnan(value))
        strcat(text, "%");
    return text;
}

/* Files -------------------------------------------------------------------------------------- */

void record_add_json(const record *r, const void *row, json *j) {
    for (const field *f = r->fields; f < r->fields + r->count; f++)
        if (!f->name)
            continue;
        else if (f->kind <= FIELD_TEXT)
            json_add_text(j, f->name, get_text(f, row));
        else if (f->kind == FIELD_FLAG)
            json_add_flag(j, f->name, get_integer(f, row));
        else if (f->kind == FIELD_COUNT)
            json_add_count(j, f->name, (uint64_t)get_integer(f, row));
        else if (f->kind == FIELD_INTEGER)
            json_add_integer(j, f->name, get_integer(f, row));
        else
            json_add_real(j, f->name, get_real(f, row));
}

void record_list_json(const record *r, const void *rows, size_t count, size_t size, const char *key,
                      json *j) {
    json_open(j, key, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(j, NULL, '{');
        record_add_json(r, (const char *)rows + i * size, j);
        json_close(j);
    }
    json_close(j);
}

void record_add_titles(const record *r, csv *c) {
    for (size_t i = 0; i < r->count; i++)
        if (r->fields[i].name)
            csv_add_text(c, r->fields[i].name);
    csv_end_row(c);
}

void record_add_csv(const record *r, const void *row, csv *c) {
    char text[32];
    for (const field *f = r->fields; f < r->fields + r->count; f++)
        if (f->name && f->may_be_empty && f->kind >= FIELD_REAL && isnan(get_real(f, row)))
            csv_add_text(c, "");
        else if (f->name && f->kind >= FIELD_REAL)
            csv_add_double(c, get_real(f, row));
        else if (f->name)
            csv_add_text(c, f->kind <= FIELD_TEXT ? get_text(f, row)
                                                  : field_print(f, row, text, sizeof text));
    csv_end_row(c);
}

bool record_write_csv(const record *r, const void *rows, size_t count, size_t size, csv *c,
                      const char *path, err *e) {
    record_add_titles(r, c);
    for (size_t i = 0; i < count; i++)
        record_add_csv(r, (const char *)rows + i * size, c);
    bool ok = csv_write(c, path, e);
    csv_free(c);
    return ok;
}

static bool read_number(const field *x, const csv_file *f, size_t row, size_t column, double *out,
                        err *e) {
    const bool is_count = x->kind == FIELD_FLAG || x->kind == FIELD_COUNT;
    const char *text = csv_get_text(f, row, column);
    *out = is_count ? 0 : NAN;
    if (!*text && (is_count || x->may_be_empty))
        return true;
    if (!csv_get_double(f, row, column, out, e))
        return false;
    return !is_count || (*out >= 0 && *out < 1e15 && *out == floor(*out)) ||
           err_set(e, EXIT_USAGE, "%.120s:%zu: column '%s' takes a whole number, not '%.40s'",
                   csv_get_path(f), csv_get_line(f, row), x->name, text);
}

static bool read_field(const field *x, const csv_file *f, size_t row, size_t column, char *at,
                       err *e) {
    const char *text = csv_get_text(f, row, column);
    double value;
    if (x->kind == FIELD_CHARS)
        snprintf(at, x->size, "%s", text);
    else if (x->kind == FIELD_TEXT)
        memcpy(at, &text, sizeof text);
    else if (!read_number(x, f, row, column, &value, e))
        return false;
    else if (x->kind >= FIELD_REAL)
        memcpy(at, &value, sizeof value);
    else if (x->kind == FIELD_FLAG)
        *(bool *)at = value == 1;
    else if (x->size == sizeof(int64_t))
        memcpy(at, &(int64_t){(int64_t)value}, sizeof(int64_t));
    else
        memcpy(at, &(int32_t){(int32_t)(int64_t)value}, sizeof(int32_t));
    return true;
}

bool record_read(const record *r, const csv_file *f, size_t row, void *out, err *e) {
    for (const field *x = r->fields; x < r->fields + r->count; x++) {
        size_t column;
        bool is_there = x->name && csv_find_column(f, x->name, &column, x->is_optional ? NULL : e);
        if (x->name && !is_there && !x->is_optional)
            return false;
        if (is_there && !read_field(x, f, row, column, (char *)out + x->at, e))
            return false;
    }
    return true;
}
