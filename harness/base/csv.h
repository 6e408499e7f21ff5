/* csv: results as a file that plots and other programs read.
 *
 * First `# key: value` lines that say where the numbers come from, then a header row, then rows.
 * Everything is kept in memory and written at once: a reader never sees half a file. */
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
