#include "agx_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/agx/agx.h"
#include "harness/base/array.h"
#include "harness/base/path.h"
#include "harness/base/table.h"
#include "profile_source.h"

typedef struct {
    char file[512];
    int line;
    size_t first; /* instruction, which orders lines with as many */
    size_t instructions, spills, fills;
} line_count;

typedef struct {
    line_count *items;
    size_t count, room;
} line_list;

static line_count *find_line(line_list *l, const code_line *c, size_t first) {
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].line == c->line && (int)strlen(l->items[i].file) == c->file_length &&
            strncmp(l->items[i].file, c->file, (size_t)c->file_length) == 0)
            return &l->items[i];
    line_count *new = ARRAY_ADD(l->items, l->count, l->room);
    *new = (line_count){.line = c->line, .first = first};
    snprintf(new->file, sizeof new->file, "%.*s", c->file_length, c->file);
    return new;
}

static bool has_word(const code_line *c, const char *word) {
    const char *found = strstr(c->text, word);
    return found && found < c->text + c->text_length;
}

static line_list count_lines(const code_list *code) {
    line_list l = {.items = NULL};
    for (size_t i = 0; i < code->count; i++) {
        const code_line *c = &code->items[i];
        if (c->file_length == 0)
            continue;
        line_count *at = find_line(&l, c, i);
        at->instructions++;
        at->spills += has_word(c, " stack_store ");
        at->fills += has_word(c, " stack_load ");
    }
    return l;
}

static int compare_counts(const void *a, const void *b) {
    const line_count *x = a, *y = b;
    int order = (x->instructions < y->instructions) - (x->instructions > y->instructions);
    return order ? order : (x->first > y->first) - (x->first < y->first);
}

enum { COLUMNS = 6 };

static void print_line(table *rows, const line_count *l, size_t all, const char *source) {
    char cells[COLUMNS][256];
    const char *list[COLUMNS];
    snprintf(cells[0], sizeof cells[0], "%.200s:%d", path_get_name(l->file), l->line);
    snprintf(cells[1], sizeof cells[1], "%zu", l->instructions);
    snprintf(cells[2], sizeof cells[2], "%.1f", 100 * (double)l->instructions / (double)all);
    snprintf(cells[3], sizeof cells[3], "%zu", l->spills);
    snprintf(cells[4], sizeof cells[4], "%zu", l->fills);
    snprintf(cells[5], sizeof cells[5], "%.255s", source);
    for (int i = 0; i < COLUMNS; i++)
        list[i] = cells[i];
    table_print_row(rows, list, 0, PAINT_NONE);
}

/* Every line of each file that has a count. */
static void print_annotated(const line_list *l, code_list *code, bool with_code, table *rows,
                            source_list *sources) {
    for (size_t i = 0; i < l->count; i++) {
        const char *file = l->items[i].file;
        bool is_first = true;
        for (size_t k = 0; k < i && is_first; k++)
            is_first = strcmp(l->items[k].file, file) != 0;
        const char *text = is_first ? source_find(sources, file) : NULL;
        int n = 1;
        for (const char *at = text; at && *at; at += strcspn(at, "\n"), at += *at == '\n', n++) {
            const line_count *found = NULL;
            for (size_t k = 0; k < l->count; k++)
                if (l->items[k].line == n && strcmp(l->items[k].file, file) == 0)
                    found = &l->items[k];
            char source[256];
            snprintf(source, sizeof source, "%.*s", (int)strcspn(at, "\n"), at);
            if (found)
                print_line(rows, found, code->count, source);
            else
                printf("%-24d %s\n", n, source);
            if (with_code && found)
                code_print(code, file, n);
        }
    }
}

/* False if there are no lines. */
static bool print_shares(const char *kernel, const code_list *code) {
    size_t exact = 0, near = 0;
    for (size_t i = 0; i < code->count; i++) {
        exact += code->items[i].file_length > 0 && !code->items[i].is_near;
        near += code->items[i].is_near;
    }
    if (exact + near == 0)
        printf("\n%s, %s: Mesa does not say the lines of this kernel: see docs/agx.md\n", kernel,
               AGX_LABEL);
    else
        printf("\n%s, %s: of %zu instructions %zu have their own line, %zu that of an instruction "
               "that they serve, and %zu none\n",
               kernel, AGX_LABEL, code->count, exact, near, code->count - exact - near);
    return exact + near > 0;
}

void agx_print_lines(const char *kernel, const char *text, const agx_line_settings *s) {
    table_column columns[COLUMNS] = {{.title = "line", .width = 24},
                                     {.title = "instructions", .right = true, .width = 12},
                                     {.title = "%", .right = true, .width = 5},
                                     {.title = "spills", .right = true, .width = 6, .rank = 1},
                                     {.title = "fills", .right = true, .width = 5, .rank = 1},
                                     {.title = "source", .width = 20}};
    source_list sources = {.items = NULL};
    code_list code = code_read_agx(text);
    line_list l = count_lines(&code);
    table rows = table_new(stdout, columns, COLUMNS);
    if (print_shares(kernel, &code))
        table_print_header(&rows);
    if (s->annotate)
        print_annotated(&l, &code, s->code, &rows, &sources);
    qsort(l.items, l.count, sizeof *l.items, compare_counts);
    for (size_t i = 0; i < l.count && i < s->top && !s->annotate; i++) {
        char source[256];
        source_copy_line(&sources, l.items[i].file, l.items[i].line, source, sizeof source);
        print_line(&rows, &l.items[i], code.count, source);
        if (s->code)
            code_print(&code, l.items[i].file, l.items[i].line);
    }
    free(l.items);
    code_free(&code);
    source_free(&sources);
}
