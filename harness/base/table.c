/* table: rows of a record for people, in aligned columns or Markdown (record.h). Prints only to the stream that it
 * is given. A table is made to fit first: columns whose cells are all the same go to a line above it, columns of
 * a high rank are left out, with a line that says so, the first goes to lines of its own, text in the last column
 * is broken into lines, and the widest other text is cut. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "array.h"
#include "path.h"
#include "record.h"

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

static int count_characters(const char *text, size_t bytes) {
    int count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80; /* not a continuation byte */
    return count;
}

int table_get_width(const char *text) {
    return count_characters(text, strlen(text));
}

typedef struct sink_column column;

static bool is_number(const column *c) {
    return c->field->kind > FIELD_FLAG;
}

static void fit(column *c, const char *cell) {
    int width = table_get_width(cell);
    c->width = width > c->width ? width : c->width;
    if (!c->same[0] && strlen(cell) < sizeof c->same)
        strcpy(c->same, cell);
    c->varies = c->varies || strcmp(c->same, cell) != 0;
}

static int measure(const sink *s) {
    int width = 0;
    for (size_t i = 0; i < s->count; i++)
        width += s->columns[i].is_hidden ? 0 : s->columns[i].width + (width > 0 ? 2 : 0);
    return width;
}

static void lift_constants(sink *s) {
    char line[SINK_CELL] = "#";
    size_t used = 1;
    for (column *c = s->columns; c < s->columns + s->count; c++) {
        if (!c->field->lifts || c->varies || !c->same[0])
            continue;
        used += (size_t)snprintf(line + used, sizeof line - used, "%s %s: %s", used > 1 ? "," : "",
                                 c->field->title, c->same);
        c->is_hidden = true;
    }
    if (used > 1)
        table_print_text(s->out, s->limit, 0, line);
}

static void drop_columns(sink *s) {
    char line[SINK_CELL];
    size_t used = 0;
    while (measure(s) > s->limit) {
        column *least = NULL;
        for (column *c = s->columns; c < s->columns + s->count; c++)
            if (!c->is_hidden && c->field->rank > (least ? least->field->rank : 0))
                least = c;
        if (s->heads > (least ? least->field->rank : 0) && !s->columns[0].is_hidden) {
            s->has_heads = s->columns[0].is_hidden = true;
            continue;
        }
        if (!least)
            break;
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s",
                                 used ? ", " : "# no room for: ", least->field->title);
        least->is_hidden = true;
    }
    if (used)
        table_print_text(s->out, s->limit, 0, line);
}

/* The last column to be shown, whose text is broken into lines if it is too long; NULL if it has
 * numbers. */
static column *find_text(sink *s) {
    size_t i = s->count;
    while (i > 1 && s->columns[i - 1].is_hidden)
        i--;
    return is_number(&s->columns[i - 1]) ? NULL : &s->columns[i - 1];
}

static void shrink(const sink *s, column *c, int least) {
    int over = measure(s) - s->limit;
    if (c && over > 0 && c->width > least)
        c->width = c->width - over > least ? c->width - over : least;
}

static void cut_texts(sink *s) {
    column *text = find_text(s);
    shrink(s, text, MIN_WRAPPED);
    for (size_t turn = 0; turn < s->count && measure(s) > s->limit; turn++) {
        column *widest = NULL;
        for (column *c = s->columns; c < s->columns + s->count; c++)
            if (!c->is_hidden && !is_number(c) && c != text &&
                (!widest || c->width > widest->width))
                widest = c;
        shrink(s, widest, MIN_TEXT);
    }
}

static void narrow(sink *s) {
    s->limit = table_find_limit(s->out);
    if (!s->limit || measure(s) <= s->limit)
        return;
    lift_constants(s);
    drop_columns(s);
    cut_texts(s);
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
        const size_t bytes = strcspn(word, " ");
        const int width = count_characters(word, bytes);
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

static void print_text(sink *s, const column *c, const char *text, int at) {
    if (s->limit && c == find_text(s))
        print_words(s->out, s->limit, at, at, text);
    else if (s->limit && !is_number(c) && c->width < table_get_width(text))
        print_cut(s->out, text, c->width);
    else
        fputs(text, s->out);
}

static void print_cell(sink *s, const column *c, const char *text, paint p, int at) {
    int pad = c->width - table_get_width(text);
    bool is_painted = s->has_colour && c->field->is_painted && p != PAINT_NONE;
    if (is_number(c) && pad > 0)
        fprintf(s->out, "%*s", pad, "");
    if (is_painted)
        fputs(get_escape(p), s->out);
    print_text(s, c, text, at);
    if (is_painted)
        fputs("\033[0m", s->out);
    if (!is_number(c) && pad > 0 && c + 1 < s->columns + s->count)
        fprintf(s->out, "%*s", pad, "");
}

/* cells: NULL for the titles. */
static void print_cells(sink *s, char *const *cells, paint p) {
    int at = 0;
    for (size_t i = 0; i < s->count; i++) {
        const column *c = &s->columns[i];
        if (c->is_hidden)
            continue;
        if (at > 0)
            fputs("  ", s->out);
        at += at > 0 ? 2 : 0;
        print_cell(s, c, cells ? cells[i] : c->field->title, p, at);
        at += c->width;
    }
    fputc('\n', s->out);
}

static void print_markdown_header(sink *s) {
    for (size_t i = 0; i < s->count; i++)
        fprintf(s->out, "| %s ", s->columns[i].field->title);
    fputs("|\n", s->out);
    for (size_t i = 0; i < s->count; i++)
        fputs(is_number(&s->columns[i]) ? "|---:" : "|---", s->out);
    fputs("|\n", s->out);
}

/* What is bad is bold. */
static void print_markdown_row(sink *s, char *const *cells, paint p) {
    for (size_t i = 0; i < s->count; i++) {
        const char *bold = s->columns[i].field->is_painted && p == PAINT_BAD ? "**" : "";
        fprintf(s->out, "| %s", bold);
        for (const char *c = cells[i]; *c; c++)
            fprintf(s->out, *c == '|' ? "\\%c" : "%c", *c);
        fprintf(s->out, "%s ", bold);
    }
    fputs("|\n", s->out);
}

static void print_header(sink *s) {
    if (s->has_header)
        return;
    s->has_header = true;
    if (s->is_markdown) {
        print_markdown_header(s);
        return;
    }
    narrow(s);
    print_cells(s, NULL, PAINT_NONE);
}

static void print_row(sink *s, char *const *cells, paint p) {
    print_header(s);
    if (s->is_markdown) {
        print_markdown_row(s, cells, p);
        return;
    }
    if (s->has_heads && strcmp(s->head, cells[0]) != 0) {
        snprintf(s->head, sizeof s->head, "%s", cells[0]);
        fprintf(s->out, "%s:\n", cells[0]);
    }
    print_cells(s, cells, p);
}

void table_print_text(FILE *out, int limit, int indent, const char *text) {
    fprintf(out, "%*s", indent, "");
    print_words(out, limit, indent, indent + 4, text);
    fputc('\n', out);
}

void table_print_item(FILE *out, int start, const char *label, const char *text) {
    const int used = table_get_width(label), blanks = used < start ? start - used : used > 0;
    fprintf(out, "%s%*s", label, blanks, "");
    print_words(out, table_find_limit(out), used + blanks, start, text);
    fputc('\n', out);
}

/* Rows ---------------------------------------------------------------------------------------- */

/* A row of cells, or a text between rows. */
struct sink_line {
    char *cells[SINK_COLUMNS];
    paint paint;
    bool is_note;
    int indent;
};

static void open_table(sink *s) {
    if (s->is_open)
        return;
    for (const field *f = s->record.fields; f < s->record.fields + s->record.count; f++)
        if (f->title) {
            assert(s->count < SINK_COLUMNS);
            column *c = &s->columns[s->count++];
            const int title = table_get_width(f->title);
            *c = (column){.field = f, .width = f->width > title ? f->width : title};
        }
    s->has_colour = table_wants_colour(s->out);
    s->is_open = true;
}

/* The cells of a row, each to be freed. */
static struct sink_line make_line(sink *s, const void *row, paint p) {
    struct sink_line line = {.paint = p};
    char text[SINK_CELL];
    open_table(s);
    for (size_t i = 0; i < s->count; i++) {
        line.cells[i] = strdup(field_print(s->columns[i].field, row, text, sizeof text));
        assert(line.cells[i]);
        for (char *c = line.cells[i]; *c; c++) /* a file's name may hold a line end */
            *c = path_get_mark(*c);
    }
    return line;
}

static void free_line(struct sink_line *line) {
    for (size_t i = 0; i < SINK_COLUMNS; i++)
        free(line->cells[i]);
}

static void fit_line(sink *s, const struct sink_line *line) {
    for (size_t i = 0; i < s->count; i++)
        fit(&s->columns[i], line->cells[i]);
}

void sink_fit(sink *s, const void *row) {
    if (!s->out)
        return;
    struct sink_line line = make_line(s, row, PAINT_NONE);
    fit_line(s, &line);
    free_line(&line);
}

void sink_add(sink *s, const void *row, paint p) {
    if (s->json) {
        json_open(s->json, NULL, '{');
        record_add_json(&s->record, row, s->json);
        json_close(s->json);
    }
    if (s->csv)
        record_add_csv(&s->record, row, s->csv);
    if (!s->out)
        return;
    struct sink_line line = make_line(s, row, p);
    if (s->streams || s->is_markdown) {
        print_row(s, line.cells, p);
        free_line(&line);
        return;
    }
    fit_line(s, &line);
    *ARRAY_ADD(s->held, s->held_count, s->held_room) = line;
}

void sink_note(sink *s, int indent, const char *text) {
    if (!s->out || s->is_markdown)
        return;
    open_table(s);
    if (s->streams) {
        table_print_text(s->out, s->limit, indent, text);
        return;
    }
    struct sink_line line = {.cells = {strdup(text)}, .is_note = true, .indent = indent};
    assert(line.cells[0]);
    *ARRAY_ADD(s->held, s->held_count, s->held_room) = line;
}

void sink_end(sink *s) {
    if (!s->out)
        return;
    open_table(s);
    print_header(s);
    for (size_t i = 0; i < s->held_count; i++) {
        struct sink_line *line = &s->held[i];
        if (line->is_note)
            table_print_text(s->out, s->limit, line->indent, line->cells[0]);
        else
            print_row(s, line->cells, line->paint);
        free_line(line);
    }
    free(s->held);
    s->held = NULL;
    s->held_count = s->held_room = 0;
}
