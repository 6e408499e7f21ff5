/* csv: results as files that plots and other programs read, and such files read back, also after another
 * program has rewritten them.
 *
 * First `# key: value` lines that say where the numbers come from, then a header row, then rows, as RFC 4180
 * has them: fields may be quoted, quotes in them are doubled, line ends are LF or CR LF. Everything is kept
 * in memory. What is written is written at once: a reader never sees half a file. Of what is read anything
 * else is an error with file and line, EXIT_USAGE. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

typedef struct csv csv;

csv *csv_new(void);
void csv_free(csv *c);

void csv_add_meta(csv *c, const char *key, const char *value); /* before the first row */
void csv_add_text(csv *c, const char *text);                   /* quoted where RFC 4180 says so */
void csv_add_u64(csv *c, uint64_t value);
void csv_add_double(csv *c, double value); /* the shortest text that reads back as the same value */
void csv_end_row(csv *c);
void csv_add_row(csv *c, const char *const *cells, size_t count); /* a whole row of texts */

bool csv_write(csv *c, const char *path, err *e);

/* The other way to a file: appends what was added since the last call, in one write, and forgets
 * it. A reader sees whole rows, even if this program is killed. */
bool csv_append(csv *c, const char *path, err *e);

/* Reading -------------------------------------------------------------------------------------- */

typedef struct csv_file csv_file;

/* A file whose rows do not have as many fields as its header is refused. */
csv_file *csv_read(const char *path, err *e);
/* The same without a last line that has no newline: it is of a writer that was killed. */
csv_file *csv_read_lines(const char *path, err *e);
/* The same for a text in memory; messages use name as the path. */
csv_file *csv_parse(const char *text, size_t bytes, const char *name, err *e);
void csv_file_free(csv_file *f);

const char *csv_get_path(const csv_file *f);
const char *csv_get_meta(const csv_file *f, const char *key);  /* NULL if there is none */
const char *csv_find_meta(const csv_file *f, const char *key); /* "" if there is none */
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
/* The same by name: "" and NaN where there is no such column, and NaN for what is not a number. */
const char *csv_find_text(const csv_file *f, size_t row, const char *title);
double csv_find_double(const csv_file *f, size_t row, const char *title);
