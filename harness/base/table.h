/* table: aligned columns for people. Rows can be printed as they come, because widths are settled
 * before: by the caller, or by table_fit over what is known. */
#ifndef ASSAY_TABLE_H
#define ASSAY_TABLE_H

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

/* Colours are wanted on a terminal, unless NO_COLOR is set or the terminal is a dumb one. */
bool table_wants_colour(FILE *out);

/* Characters that a UTF-8 text takes on the screen (combining and wide ones count as one). */
int table_get_width(const char *text);

/* Widens a column so that its title and this cell fit. */
void table_fit(table_column *column, const char *cell);

void table_print_header(const table *t);
/* One cell a column. `cell_paint` colours column `painted` alone. */
void table_print_row(const table *t, const char *const *cells, size_t painted, paint cell_paint);

#endif
