#include "diagnostic.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

bool diagnostic_cut_number(char *text, int *number) {
    char *colon = strrchr(text, ':');
    if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
        return false;
    *number = atoi(colon + 1);
    *colon = 0;
    return true;
}

/* "file:12:3: error: text" */
static bool read_line(char *line, diagnostic *d) {
    static const char *const marks[] = {": error: ", ": fatal error: ", ": note: "};
    char *at = NULL;
    size_t i = 0;
    while (i < 3 && !(at = strstr(line, marks[i])))
        i++;
    if (!at)
        return false;
    *at = 0;
    d->is_error = i < 2;
    if (!diagnostic_cut_number(line, &d->column) || !diagnostic_cut_number(line, &d->line))
        return false;
    d->file = strdup(line);
    d->text = strdup(at + strlen(marks[i]));
    assert(d->file && d->text);
    return true;
}

void diagnostic_read(const char *messages, diagnostic_list *out) {
    char *all = strdup(messages ? messages : ""), *rest = NULL;
    assert(all);
    *out = (diagnostic_list){0};
    for (char *line = strtok_r(all, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        diagnostic d;
        if (read_line(line, &d))
            *ARRAY_ADD(out->items, out->count, out->room) = d;
    }
    free(all);
}

void diagnostic_free(diagnostic_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].file);
        free(list->items[i].text);
    }
    free(list->items);
    *list = (diagnostic_list){0};
}

size_t diagnostic_end_notes(const diagnostic_list *list, size_t i) {
    size_t end = i + 1;
    while (end < list->count && !list->items[end].is_error)
        end++;
    return end;
}
