/* csv_read: reads the files that csv.h writes, also after another program has rewritten them.
 *
 * RFC 4180: fields may be quoted, quotes in them are doubled, line ends are LF or CR LF. Lines that
 * start with '#' before the header row are metadata, `# key: value`. Everything is kept in memory.
 * Anything else is an error with file and line, EXIT_USAGE. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

typedef struct csv_file csv_file;

/* A file whose rows do not have as many fields as its header is refused. */
csv_file *csv_read(const char *path, err *e);
/* The same without a last line that has no newline: it is of a writer that was killed. */
csv_file *csv_read_lines(const char *path, err *e);
/* The same for a text in memory; messages use name as the path. */
csv_file *csv_parse(const char *text, size_t bytes, const char *name, err *e);
void csv_file_free(csv_file *f);

const char *csv_get_path(const csv_file *f);
const char *csv_get_meta(const csv_file *f, const char *key); /* NULL if there is none */
/* Metadata in file order; false past the last. */
bool csv_list_meta(const csv_file *f, size_t i, const char **key, const char **value);
size_t csv_get_meta_line(const csv_file *f, size_t i);

size_t csv_count_rows(const csv_file *f); /* without the header */
size_t csv_count_columns(const csv_file *f);
const char *csv_get_title(const csv_file *f, size_t column);
size_t csv_get_line(const csv_file *f, size_t row); /* where it starts, counted from 1 */

/* The column of this name. */
bool csv_find_column(const csv_file *f, const char *name, size_t *column, err *e);
const char *csv_get_text(const csv_file *f, size_t row, size_t column);
/* A field that is a number and nothing else: decimal, nan or inf. */
bool csv_get_double(const csv_file *f, size_t row, size_t column, double *out, err *e);

/* Rows as structs: where a column is kept, and as what. */
typedef enum {
    CSV_TEXT,    /* char[size]; what does not fit is cut */
    CSV_POINTER, /* const char *, into the file */
    CSV_NUMBER,  /* double */
    CSV_DOUBLE,  /* the same, and an empty field is NaN */
    CSV_COUNT,   /* size_t, a whole number; an empty field is 0 */
} csv_kind;

typedef struct {
    const char *title;
    csv_kind kind;
    size_t at, size;
    bool is_optional; /* a file may lack the column: the field is left as it was */
} csv_field;

bool csv_read_row(const csv_file *f, size_t row, const csv_field *fields, size_t count, void *out,
                  err *e);
