#include "csv.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "os.h"

/* Writing ------------------------------------------------------------------------------------- */

struct csv {
    memory_file *text;
    bool has_rows, in_row;
};

csv *csv_new(void) {
    csv *c = array_new(1, sizeof *c);
    c->text = memory_file_new();
    return c;
}

void csv_free(csv *c) {
    if (c)
        memory_file_free(c->text);
    free(c);
}

static void start_field(csv *c) {
    if (c->in_row)
        fputc(',', c->text->out);
    c->in_row = c->has_rows = true;
}

void csv_add_meta(csv *c, const char *key, const char *value) {
    assert(!c->has_rows);
    fprintf(c->text->out, "# %s: ", key);
    for (const char *p = value; *p; p++)
        fputc(*p == '\n' || *p == '\r' ? ' ' : *p, c->text->out);
    fputc('\n', c->text->out);
}

void csv_add_text(csv *c, const char *text) {
    start_field(c);
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, c->text->out);
        return;
    }
    fputc('"', c->text->out);
    for (const char *p = text; *p; p++) {
        if (*p == '"')
            fputc('"', c->text->out);
        fputc(*p, c->text->out);
    }
    fputc('"', c->text->out);
}

void csv_add_u64(csv *c, uint64_t value) {
    start_field(c);
    fprintf(c->text->out, "%" PRIu64, value);
}

void csv_add_double(csv *c, double value) {
    start_field(c);
    if (value != value) { /* one spelling: printf's depends on the sign bit */
        fputs("nan", c->text->out);
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, c->text->out);
}

void csv_end_row(csv *c) {
    assert(c->in_row);
    fputc('\n', c->text->out);
    c->in_row = false;
}

void csv_add_row(csv *c, const char *const *cells, size_t count) {
    for (size_t i = 0; i < count; i++)
        csv_add_text(c, cells[i]);
    csv_end_row(c);
}

bool csv_write(csv *c, const char *path, err *e) {
    assert(!c->in_row);
    if (fflush(c->text->out) != 0)
        return err_set(e, EXIT_CANNOT, "no memory for the rows of %.160s", path);
    return os_write_file(path, c->text->text, c->text->bytes, e);
}

/* After the last whole line: a writer that was killed may have left part of another. */
static bool append_bytes(const char *path, const char *data, size_t bytes) {
    int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    off_t whole = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    for (char last = 0; whole > 0 && pread(fd, &last, 1, whole - 1) == 1 && last != '\n';)
        whole--;
    bool ok =
        whole >= 0 && ftruncate(fd, whole) == 0 && os_write_all(fd, data, bytes) && fsync(fd) == 0;
    int why = errno;
    if (!ok && whole >= 0 && ftruncate(fd, whole) != 0)
        why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return ok;
}

bool csv_append(csv *c, const char *path, err *e) {
    assert(!c->in_row);
    errno = 0;
    bool ok = fflush(c->text->out) == 0 && append_bytes(path, c->text->text, c->text->bytes);
    int why = errno;
    memory_file_free(c->text);
    c->text = memory_file_new();
    return ok || os_refuse_write(path, why, e);
}

/* Reading ------------------------------------------------------------------------------------- */

typedef struct {
    const char *key, *value;
    size_t line;
} meta;

struct csv_file {
    char path[PATH_MAX];
    char *text;
    meta *metas;
    size_t meta_count, meta_capacity;
    const char **fields; /* (rows + 1, columns): the header first */
    size_t field_count, field_capacity, columns, rows;
    size_t *lines; /* of each row, the header first */
    size_t line_capacity;
};

/* How far the reader has got. Fields are cut out of the text in place. */
typedef struct {
    csv_file *file;
    char *at, *end;
    size_t line;
} reader;

static bool refuse(const reader *r, size_t line, const char *what, err *e) {
    return err_set(e, EXIT_USAGE, "%.120s:%zu: %s", r->file->path, line, what);
}

static void add_field(csv_file *f, const char *text) {
    *ARRAY_ADD(f->fields, f->field_count, f->field_capacity) = text;
}

static void add_meta(csv_file *f, char *line, size_t number) {
    line += strspn(line, "# \t");
    char *colon = strchr(line, ':');
    if (!colon) /* a person's comment */
        return;
    *colon = 0;
    *ARRAY_ADD(f->metas, f->meta_count, f->meta_capacity) =
        (meta){line, colon + 1 + strspn(colon + 1, " \t"), number};
}

/* `# key: value` lines, which end where the header starts. */
static void read_metas(reader *r) {
    while (r->at < r->end && *r->at == '#') {
        char *line = r->at, *stop = memchr(line, '\n', (size_t)(r->end - line));
        r->at = stop ? stop + 1 : r->end;
        if (stop)
            *stop = 0;
        size_t length = strlen(line);
        if (length > 0 && line[length - 1] == '\r')
            line[length - 1] = 0;
        add_meta(r->file, line, r->line++);
    }
}

/* A quoted field, starting after the opening quote; the text is compacted in place. */
static bool read_quoted(reader *r, err *e) {
    size_t first_line = r->line;
    char *to = r->at;
    add_field(r->file, to);
    for (; r->at < r->end; r->at++) {
        if (*r->at == '"' && r->at + 1 < r->end && r->at[1] == '"')
            r->at++;
        else if (*r->at == '"')
            break;
        r->line += *r->at == '\n';
        *to++ = *r->at;
    }
    if (r->at == r->end)
        return refuse(r, first_line, "a quoted field is not closed", e);
    r->at++;
    if (r->at < r->end && !strchr(",\r\n", *r->at))
        return refuse(r, r->line, "text after the closing quote of a field", e);
    *to = 0; /* at or before the closing quote */
    return true;
}

static bool read_plain(reader *r, err *e) {
    add_field(r->file, r->at);
    r->at += strcspn(r->at, ",\r\n\"");
    if (r->at < r->end && *r->at == '"')
        return refuse(r, r->line, "a quote inside a field that is not quoted", e);
    return true;
}

/* One record with its line end. */
static bool read_record(reader *r, err *e) {
    csv_file *f = r->file;
    size_t first_line = r->line, before = f->field_count;
    for (;;) {
        bool is_quoted = r->at < r->end && *r->at == '"';
        r->at += is_quoted;
        if (is_quoted ? !read_quoted(r, e) : !read_plain(r, e))
            return false;
        char stop = r->at < r->end ? *r->at : 0;
        *r->at = 0; /* ends the field; the text is NUL-terminated */
        r->at += r->at < r->end;
        if (stop == ',')
            continue;
        if (stop == '\r' && (r->at == r->end || *r->at != '\n'))
            return refuse(r, r->line, "a carriage return without a line feed", e);
        r->at += stop == '\r';
        break;
    }
    r->line++;
    *ARRAY_ADD(f->lines, f->rows, f->line_capacity) = first_line;
    size_t fields = f->field_count - before;
    if (f->rows == 1)
        f->columns = fields;
    if (fields == f->columns)
        return true;
    char what[96];
    snprintf(what, sizeof what, "%zu field%s where the header has %zu", fields,
             fields == 1 ? "" : "s", f->columns);
    return refuse(r, first_line, what, e);
}

static bool check_header(const reader *r, err *e) {
    const csv_file *f = r->file;
    if (f->rows == 0)
        return refuse(r, r->line, "there is no header row", e);
    for (size_t i = 0; i < f->columns; i++) {
        if (!f->fields[i][0])
            return refuse(r, f->lines[0], "a column of the header has no name", e);
        for (size_t j = 0; j < i; j++)
            if (strcmp(f->fields[i], f->fields[j]) == 0)
                return refuse(r, f->lines[0], "two columns of the header have the same name", e);
    }
    return true;
}

static bool parse(csv_file *f, size_t bytes, err *e) {
    reader r = {f, f->text, f->text + bytes, 1};
    if (memchr(f->text, 0, bytes))
        return refuse(&r, 1, "not a text file: contains NUL bytes", e);
    if (bytes >= 3 && memcmp(f->text, "\xEF\xBB\xBF", 3) == 0)
        r.at += 3; /* a byte-order mark, as spreadsheets write it */
    read_metas(&r);
    while (r.at < r.end)
        if (!read_record(&r, e))
            return false;
    if (!check_header(&r, e))
        return false;
    f->rows--;
    return true;
}

static csv_file *parse_owned(char *text, size_t bytes, const char *name, err *e) {
    csv_file *f = array_new(1, sizeof *f);
    f->text = text;
    snprintf(f->path, sizeof f->path, "%s", name);
    if (parse(f, bytes, e))
        return f;
    csv_file_free(f);
    return NULL;
}

csv_file *csv_parse(const char *text, size_t bytes, const char *name, err *e) {
    char *copy = array_new(1, bytes + 1);
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return parse_owned(copy, bytes, name, e);
}

static csv_file *read_file(const char *path, bool whole_lines, err *e) {
    size_t bytes;
    char *text = os_read_file(path, &bytes, e);
    while (whole_lines && text && bytes > 0 && text[bytes - 1] != '\n')
        text[--bytes] = 0;
    return text ? parse_owned(text, bytes, path, e) : NULL;
}

csv_file *csv_read(const char *path, err *e) {
    return read_file(path, false, e);
}

csv_file *csv_read_lines(const char *path, err *e) {
    return read_file(path, true, e);
}

void csv_file_free(csv_file *f) {
    if (!f)
        return;
    free(f->text);
    free(f->metas);
    free(f->fields);
    free(f->lines);
    free(f);
}

const char *csv_get_path(const csv_file *f) {
    return f->path;
}

const char *csv_get_meta(const csv_file *f, const char *key) {
    for (size_t i = 0; i < f->meta_count; i++)
        if (strcmp(f->metas[i].key, key) == 0)
            return f->metas[i].value;
    return NULL;
}

const char *csv_find_meta(const csv_file *f, const char *key) {
    const char *value = csv_get_meta(f, key);
    return value ? value : "";
}

bool csv_list_meta(const csv_file *f, size_t i, const char **key, const char **value) {
    if (i >= f->meta_count)
        return false;
    *key = f->metas[i].key;
    *value = f->metas[i].value;
    return true;
}

size_t csv_get_meta_line(const csv_file *f, size_t i) {
    assert(i < f->meta_count);
    return f->metas[i].line;
}

size_t csv_count_rows(const csv_file *f) {
    return f->rows;
}

size_t csv_count_columns(const csv_file *f) {
    return f->columns;
}

const char *csv_get_title(const csv_file *f, size_t column) {
    assert(column < f->columns);
    return f->fields[column];
}

size_t csv_get_line(const csv_file *f, size_t row) {
    assert(row < f->rows);
    return f->lines[row + 1];
}

bool csv_find_column(const csv_file *f, const char *name, size_t *column, err *e) {
    for (size_t i = 0; i < f->columns; i++)
        if (strcmp(f->fields[i], name) == 0) {
            *column = i;
            return true;
        }
    return err_set(e, EXIT_USAGE, "%.120s:%zu: there is no column '%s'", f->path, f->lines[0],
                   name);
}

const char *csv_get_text(const csv_file *f, size_t row, size_t column) {
    assert(row < f->rows && column < f->columns);
    return f->fields[(row + 1) * f->columns + column];
}

bool csv_get_double(const csv_file *f, size_t row, size_t column, double *out, err *e) {
    const char *text = csv_get_text(f, row, column);
    char *end;
    *out = strtod(text, &end);
    bool is_plain = *text && !isspace((unsigned char)*text) && !strpbrk(text, "xXpP");
    if (is_plain && *end == 0)
        return true;
    return err_set(e, EXIT_USAGE, "%.120s:%zu: '%.40s' in column '%s' is not a number", f->path,
                   csv_get_line(f, row), text, f->fields[column]);
}

const char *csv_find_text(const csv_file *f, size_t row, const char *title) {
    size_t column;
    return csv_find_column(f, title, &column, NULL) ? csv_get_text(f, row, column) : "";
}

double csv_find_double(const csv_file *f, size_t row, const char *title) {
    size_t column;
    double value;
    return csv_find_column(f, title, &column, NULL) && csv_get_double(f, row, column, &value, NULL)
               ? value
               : NAN;
}
