#include "diagnostic.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

static char *copy(const char *text, size_t bytes) {
    char *made = array_new(1, bytes + 1);
    memcpy(made, text, bytes);
    made[bytes] = 0;
    return made;
}

static const char *find(const char *line, const char *end, const char *what) {
    size_t n = strlen(what);
    for (const char *p = line; p + n <= end; p++)
        if (memcmp(p, what, n) == 0)
            return p;
    return NULL;
}

/* The number that ends at *end, after a ':'; *end moves to that ':'. */
static bool read_number(const char *line, const char **end, int *number) {
    const char *p = *end;
    while (p > line && isdigit((unsigned char)p[-1]))
        p--;
    if (p == *end || p == line || p[-1] != ':')
        return false;
    *number = atoi(p);
    *end = p - 1;
    return true;
}

/* "file:12:3: error: text" */
static bool read_line(const char *line, const char *end, diagnostic *d) {
    const char *mark = find(line, end, ": error: "), *text = mark ? mark + 9 : NULL;
    if (!mark && (mark = find(line, end, ": fatal error: ")))
        text = mark + 15;
    d->is_error = mark != NULL;
    if (!mark && (mark = find(line, end, ": note: ")))
        text = mark + 8;
    if (!mark || !read_number(line, &mark, &d->column) || !read_number(line, &mark, &d->line))
        return false;
    d->file = copy(line, (size_t)(mark - line));
    d->text = copy(text, (size_t)(end - text));
    return true;
}

void diagnostic_read(const char *messages, diagnostic_list *out) {
    *out = (diagnostic_list){0};
    for (const char *line = messages; line && *line;) {
        const char *end = line + strcspn(line, "\n");
        diagnostic d;
        if (read_line(line, end, &d)) {
            *ARRAY_ADD(out->items, out->count, out->room) = d;
        }
        line = end + (*end == '\n');
    }
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
