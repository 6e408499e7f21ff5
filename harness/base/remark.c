#include "remark.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "macro_place.h"

void remark_add(remark_list *list, remark_kind kind, const char *file, int line, int column,
                const char *rule, const char *format, ...) {
    remark *r = ARRAY_ADD(list->items, list->count, list->room);
    *r = (remark){.kind = kind, .file = strdup(file), .line = line, .column = column, .rule = rule};
    assert(r->file);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->text, sizeof r->text, format, arguments);
    va_end(arguments);
    macro_place p;
    if (macro_place_cut(r->file, &p)) {
        size_t used = strlen(r->text);
        macro_place_spell(&p, r->file, r->text + used, sizeof r->text - used);
    }
}

static bool is_silenced(const remark *r, const char *text) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "NOLINT(%s)", r->rule);
    for (int line = 1; line < r->line && *text; line++) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    const char *found = strstr(text, wanted);
    return found && found < text + strcspn(text, "\n");
}

void remark_drop_silenced(remark_list *list, const char *file, const char *text) {
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        remark *r = &list->items[i];
        if (r->kind == REMARK_WARNING && strcmp(r->file, file) == 0 && is_silenced(r, text))
            free(r->file);
        else
            list->items[kept++] = *r;
    }
    list->count = kept;
}

static int compare(const void *a, const void *b) {
    const remark *x = a, *y = b;
    int files = strcmp(x->file, y->file);
    if (files)
        return files;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    int rules = strcmp(x->rule, y->rule);
    return rules ? rules : strcmp(x->text, y->text);
}

void remark_sort(remark_list *list) {
    size_t kept = 0;
    if (list->count > 0)
        qsort(list->items, list->count, sizeof *list->items, compare);
    for (size_t i = 0; i < list->count; i++) {
        if (kept > 0 && compare(&list->items[kept - 1], &list->items[i]) == 0)
            free(list->items[i].file);
        else
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

size_t remark_count(const remark_list *list, remark_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += list->items[i].kind == kind;
    return count;
}

void remark_free(remark_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].file);
    free(list->items);
    *list = (remark_list){0};
}
