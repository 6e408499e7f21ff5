/* count_read: see count_read.h. */
#include "count_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "count_ir.h"
#include "harness/base/array.h"
#include "harness/base/os.h"

/* The table lies somewhere in the file. Another text that begins like it has no number, or is ours. */
static const char *find_table(const char *data, size_t bytes, unsigned long *count) {
    const size_t n = strlen(SITES_HEAD);
    for (const char *p = data, *end = data + bytes; p + n < end; p++) {
        p = memchr(p, SITES_HEAD[0], (size_t)(end - p) - n);
        if (!p)
            return NULL;
        if (memcmp(p, SITES_HEAD, n) == 0 && sscanf(p + n, "%lu", count) == 1)
            return p;
    }
    return NULL;
}

/* One line of the table: for each row of its site one of the list. Rows are in the order of sites. */
static void add_rows(const char *line, const counted_row *rows, size_t count, size_t *next,
                     count_list *out) {
    count_row r = {.space = SPACE_DEVICE};
    unsigned long site;
    char kind;
    uint32_t *w = r.work;
    if (sscanf(line, "%lu %c %d %u %u %u %u %u %199[^\n]", &site, &kind, &r.line, &w[0], &w[1],
               &w[2], &w[3], &w[4], r.file) != 9)
        return;
    r.kind = (place_kind)kind;
    if (kind == PLACE_ARRAY) {
        *ARRAY_ADD(out->rows, out->count, out->room) = r;
        return;
    }
    while (*next < count && rows[*next].site < site)
        ++*next;
    for (size_t i = *next; i < count && rows[i].site == site; i++) {
        if (rows[i].space >= SPACES)
            continue;
        r.space = (count_space)rows[i].space;
        memcpy(r.n, rows[i].n, sizeof r.n);
        *ARRAY_ADD(out->rows, out->count, out->room) = r;
    }
}

bool count_read(const char *object, const counted_row *rows, size_t count, count_list *out,
                err *e) {
    size_t bytes, next = 0;
    unsigned long sites;
    char *data = os_read_file(object, &bytes, e);
    const char *table = data ? find_table(data, bytes, &sites) : NULL;
    if (data && !table)
        err_set(e, EXIT_CANNOT, "%.200s has no table of its sites; `assay cache --clear`", object);
    for (const char *p = table ? strchr(table, '\n') : NULL; p && p[1]; p = strchr(p + 1, '\n'))
        add_rows(p + 1, rows, count, &next, out);
    free(data);
    return table != NULL;
}
