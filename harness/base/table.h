/* table: aligned columns for people. Rows can be printed as they arrive, because widths are fixed
 * before: by the caller, or by table_fit over the cells known so far. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct {
    const char *title;
    bool right; /* numbers */
    int width;  /* in characters on the screen; a longer cell pushes the rest along */
} table_column;

typedef enum { PAINT_NONE, PAINT_GOOD, PAINT_BAD, PAINT_DIM } paint;

typedef struct {
    FILE *out;
    const table_column *columns;
    size_t count;
    bool colour;
} table;

/* True on a terminal, unless NO_COLOR is set or the terminal is dumb. */
bool table_wants_colour(FILE *out);

/* Characters that a UTF-8 text takes on the screen (combining and wide ones count as one). */
int table_get_width(const char *text);

/* Widens a column so that its title and this cell fit. */
void table_fit(table_column *column, const char *cell);

void table_print_header(const table *t);
/* One cell per column. `cell_paint` colours column `painted` only. */
void table_print_row(const table *t, const char *const *cells, size_t painted, paint cell_paint);
