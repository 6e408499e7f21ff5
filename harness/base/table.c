/* table: see table.h. Prints only to the stream that it is given. */
#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool table_wants_colour(FILE *out) {
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    if ((no_colour && *no_colour) || !term || strcmp(term, "dumb") == 0)
        return false;
    return isatty(fileno(out)) == 1;
}

int table_get_width(const char *text) {
    int width = 0;
    for (const char *p = text; *p; p++)
        width += ((unsigned char)*p & 0xC0) != 0x80; /* not a continuation byte */
    return width;
}

void table_fit(table_column *column, const char *cell) {
    int wanted = table_get_width(column->title), width = table_get_width(cell);
    if (width > wanted)
        wanted = width;
    if (wanted > column->width)
        column->width = wanted;
}

static const char *get_escape(paint p) {
    static const char *const escapes[] = {"", "\033[32m", "\033[1;31m", "\033[2m"};
    return escapes[p];
}

static void print_cell(const table *t, size_t i, const char *text, paint p) {
    const table_column *c = &t->columns[i];
    int pad = c->width - table_get_width(text);
    bool is_painted = t->colour && p != PAINT_NONE;
    if (i > 0)
        fputs("  ", t->out);
    if (c->right && pad > 0)
        fprintf(t->out, "%*s", pad, "");
    if (is_painted)
        fputs(get_escape(p), t->out);
    fputs(text, t->out);
    if (is_painted)
        fputs("\033[0m", t->out);
    if (!c->right && pad > 0 && i + 1 < t->count)
        fprintf(t->out, "%*s", pad, "");
}

void table_print_header(const table *t) {
    for (size_t i = 0; i < t->count; i++)
        print_cell(t, i, t->columns[i].title, PAINT_NONE);
    fputc('\n', t->out);
}

void table_print_row(const table *t, const char *const *cells, size_t painted, paint cell_paint) {
    for (size_t i = 0; i < t->count; i++)
        print_cell(t, i, cells[i], i == painted ? cell_paint : PAINT_NONE);
    fputc('\n', t->out);
}
