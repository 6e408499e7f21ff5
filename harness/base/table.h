/* table: aligned columns for people. Rows can be printed as they arrive, because widths are fixed
 * before: by the caller, or by table_fit over the cells known so far. On a terminal they are
 * made to fit; in a pipe all columns are printed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct {
    const char *title;
    bool right; /* numbers */
    int width;  /* in characters on the screen; a longer cell pushes the rest along */
    int rank;   /* where there is too little room the highest goes first; 0: is always shown */
    bool lifts; /* may go to a line above the table if every cell that is fitted is the same */
    /* Found by table_fit and table_print_header. */
    char same[48]; /* the text of all cells so far */
    bool varies, is_hidden;
} table_column;

typedef enum { PAINT_NONE, PAINT_GOOD, PAINT_BAD, PAINT_DIM } paint;

typedef struct {
    FILE *out;
    table_column *columns;
    size_t count;
    bool colour;
    int heads; /* where there is too little room, the first cell goes to a line of its own: as if it had
                * this rank */
    /* Found by table_print_header. */
    bool has_heads;
    int limit;     /* characters of a line, or 0 */
    char head[96]; /* the last of those lines */
} table;

/* True on a terminal, unless NO_COLOR is set or the terminal is dumb. */
bool table_wants_colour(FILE *out);

/* Characters of a line of the terminal; elsewhere COLUMNS, or 0 if it is not set: no limit. */
int table_find_limit(FILE *out);

/* Characters that a UTF-8 text takes on the screen (combining and wide ones count as one). */
int table_get_width(const char *text);

/* Widens a column so that its title and this cell fit. */
void table_fit(table_column *column, const char *cell);

table table_new(FILE *out, table_column *columns, size_t count);

/* Makes the table fit first: columns whose cells are all the same go to a line above it, columns of a
 * high rank are left out, with a line that says so, the first goes to lines of its own, text in the
 * last column is broken into lines, and the widest other text is cut. */
void table_print_header(table *t);
/* One cell per column. `cell_paint` colours column `painted` only. */
void table_print_row(table *t, const char *const *cells, size_t painted, paint cell_paint);

/* A sentence that is broken between words so that a line has at most `limit` characters (0: any
 * number): the first indented by `indent`, the others by 4 more. */
void table_print_text(FILE *out, int limit, int indent, const char *text);
