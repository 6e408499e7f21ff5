#include "describe_parts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static description *all;

description *describe_find_owner(const kernel *k) {
    description *d = all;
    while (d && !(k >= d->kernels && k < d->kernels + DESCRIBE_KERNELS))
        d = d->before;
    assert(d);
    return d;
}

void describe_keep(description *d) {
    d->before = all;
    all = d;
}

void describe_set_dims(description *d, const uint32_t *sizes) {
    for (size_t i = 0; i < d->dim_count; i++)
        d->symbols[i].whole = sizes[i];
}

bool describe_find_file(const description *d, const described_argument *a, char *path, size_t size,
                        err *e) {
    int folder = (int)(d->file - d->path);
    size_t used = 0;
    if (a->from[0] != '/')
        used = (size_t)snprintf(path, size, "%.*s", folder, d->path);
    for (const char *p = a->from; *p && used + 24 < size; p++) {
        if (*p != '{') {
            path[used++] = *p;
            continue;
        }
        size_t length = strcspn(p + 1, "}"), i = 0;
        while (i < d->dim_count &&
               (strlen(d->dims[i]) != length || strncmp(d->dims[i], p + 1, length) != 0))
            i++;
        if (i == d->dim_count || p[1 + length] != '}')
            return describe_refuse(d, a->line, e, "'%.*s' in the name of a file is not one of dims",
                                   length < 40 ? (int)length : 40, p + 1);
        used += (size_t)snprintf(path + used, size - used, "%lld", (long long)d->symbols[i].whole);
        p += length + 1;
    }
    path[used] = 0;
    return used + 24 < size ||
           describe_refuse(d, a->line, e, "the path of the file of '%.40s' is too long", a->name);
}
