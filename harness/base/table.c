/* table: see table.h. Prints only to the stream that it is given. */
#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Cells are not cut to less, nor broken into shorter lines; a narrower terminal is not believed. */
enum { MIN_TEXT = 12, MIN_WRAPPED = 20, MIN_LIMIT = 20 };

bool table_wants_colour(FILE *out) {
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    if ((no_colour && *no_colour) || !term || strcmp(term, "dumb") == 0)
        return false;
    return isatty(fileno(out)) == 1;
}

int table_find_limit(FILE *out) {
    struct winsize size = {.ws_col = 0};
    const char *columns = getenv("COLUMNS");
    int limit = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col
                : columns                                  ? atoi(columns)
                                                           : 0;
    return limit >= MIN_LIMIT ? limit : 0;
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
    if (!column->same[0] && strlen(cell) < sizeof column->same)
        strcpy(column->same, cell);
    column->varies = column->varies || strcmp(column->same, cell) != 0;
}

/* Narrowing ----------------------------------------------------------------------------------- */

static int measure(const table *t) {
    int width = 0;
    for (size_t i = 0; i < t->count; i++)
        width += t->columns[i].is_hidden ? 0 : t->columns[i].width + (width > 0 ? 2 : 0);
    return width;
}

static void lift_constants(table *t) {
    bool any = false;
    for (size_t i = 0; i < t->count; i++) {
        table_column *c = &t->columns[i];
        if (!c->lifts || c->varies || !c->same[0])
            continue;
        fprintf(t->out, "%s%s: %s", any ? ", " : "# ", c->title, c->same);
        c->is_hidden = any = true;
    }
    if (any)
        fputc('\n', t->out);
}

static void drop_columns(table *t) {
    bool any = false;
    while (measure(t) > t->limit) {
        table_column *least = NULL;
        for (size_t i = 0; i < t->count; i++) {
            table_column *c = &t->columns[i];
            if (!c->is_hidden && c->rank > (least ? least->rank : 0))
                least = c;
        }
        if (t->heads > (least ? least->rank : 0) && !t->columns[0].is_hidden) {
            t->has_heads = t->columns[0].is_hidden = true;
            continue;
        }
        if (!least)
            break;
        fprintf(t->out, "%s%s", any ? ", " : "# no room for: ", least->title);
        least->is_hidden = any = true;
    }
    if (any)
        fputc('\n', t->out);
}

/* The last column to be shown, whose text is broken into lines if it is too long; NULL if it has
 * numbers. */
static table_column *find_text(const table *t) {
    size_t i = t->count;
    while (i > 1 && t->columns[i - 1].is_hidden)
        i--;
    return t->columns[i - 1].right ? NULL : &t->columns[i - 1];
}

static void shrink(const table *t, table_column *c, int least) {
    int over = measure(t) - t->limit;
    if (c && over > 0 && c->width > least)
        c->width = c->width - over > least ? c->width - over : least;
}

static void cut_texts(table *t) {
    table_column *text = find_text(t);
    shrink(t, text, MIN_WRAPPED);
    for (size_t turn = 0; turn < t->count && measure(t) > t->limit; turn++) {
        table_column *widest = NULL;
        for (size_t i = 0; i < t->count; i++) {
            table_column *c = &t->columns[i];
            if (!c->is_hidden && !c->right && c != text && (!widest || c->width > widest->width))
                widest = c;
        }
        shrink(t, widest, MIN_TEXT);
    }
}

static void narrow(table *t) {
    t->limit = table_find_limit(t->out);
    if (!t->limit || measure(t) <= t->limit)
        return;
    lift_constants(t);
    drop_columns(t);
    cut_texts(t);
}

/* Printing ------------------------------------------------------------------------------------ */

static const char *get_escape(paint p) {
    static const char *const escapes[] = {"", "\033[32m", "\033[1;31m", "\033[2m"};
    return escapes[p];
}

/* As many characters as there is room for, the last of them dots. */
static void print_cut(FILE *out, const char *text, int room) {
    const char *end = text;
    for (int width = 0; *end; end++)
        if (((unsigned char)*end & 0xC0) != 0x80 && ++width == room)
            break;
    fprintf(out, "%.*s…", (int)(end - text), text);
}

/* Breaks between words where a line would be longer than `limit`; `at` is where the first begins,
 * `hang` where the others do. */
static void print_words(FILE *out, int limit, int at, int hang, const char *text) {
    bool begins = true;
    for (const char *word = text; *word;) {
        size_t bytes = strcspn(word, " ");
        int width = 0;
        for (size_t i = 0; i < bytes; i++)
            width += ((unsigned char)word[i] & 0xC0) != 0x80;
        if (limit && !begins && at + 1 + width > limit) {
            fprintf(out, "\n%*s", hang, "");
            at = hang;
            begins = true;
        }
        fprintf(out, "%s%.*s", begins ? "" : " ", (int)bytes, word);
        at += width + !begins;
        begins = false;
        word += bytes + (word[bytes] == ' ');
    }
}

static void print_text(const table *t, const table_column *c, const char *text, int at) {
    if (t->limit && c == find_text(t))
        print_words(t->out, t->limit, at, at, text);
    else if (t->limit && !c->right && c->width < table_get_width(text))
        print_cut(t->out, text, c->width);
    else
        fputs(text, t->out);
}

static void print_cell(const table *t, size_t i, const char *text, paint p, int at) {
    const table_column *c = &t->columns[i];
    int pad = c->width - table_get_width(text);
    bool is_painted = t->colour && p != PAINT_NONE;
    if (c->right && pad > 0)
        fprintf(t->out, "%*s", pad, "");
    if (is_painted)
        fputs(get_escape(p), t->out);
    print_text(t, c, text, at);
    if (is_painted)
        fputs("\033[0m", t->out);
    if (!c->right && pad > 0 && i + 1 < t->count)
        fprintf(t->out, "%*s", pad, "");
}

static void print_cells(const table *t, const char *const *cells, size_t painted, paint p) {
    int at = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->columns[i].is_hidden)
            continue;
        if (at > 0)
            fputs("  ", t->out);
        at += at > 0 ? 2 : 0;
        print_cell(t, i, cells ? cells[i] : t->columns[i].title, i == painted ? p : PAINT_NONE, at);
        at += t->columns[i].width;
    }
    fputc('\n', t->out);
}

table table_new(FILE *out, table_column *columns, size_t count) {
    return (table){
        .out = out, .columns = columns, .count = count, .colour = table_wants_colour(out)};
}

void table_print_header(table *t) {
    narrow(t);
    print_cells(t, NULL, t->count, PAINT_NONE);
}

void table_print_row(table *t, const char *const *cells, size_t painted, paint cell_paint) {
    if (t->has_heads && strcmp(t->head, cells[0]) != 0) {
        snprintf(t->head, sizeof t->head, "%s", cells[0]);
        fprintf(t->out, "%s:\n", cells[0]);
    }
    print_cells(t, cells, painted, cell_paint);
}

void table_print_text(FILE *out, int limit, int indent, const char *text) {
    fprintf(out, "%*s", indent, "");
    print_words(out, limit, indent, indent + 4, text);
    fputc('\n', out);
}
