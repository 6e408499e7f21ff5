#include "describe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "describe_parts.h"

char *describe_translate(const char *path, const char *text, err *e) {
    const char *slash = strrchr(path, '/');
    description *d = calloc(1, sizeof *d);
    char *copy = strdup(text), *made = NULL;
    size_t bytes = 0;
    assert(d && copy);
    d->path = path;
    d->file = slash ? slash + 1 : path;
    FILE *out = open_memstream(&made, &bytes);
    assert(out);
    bool ok = describe_read(d, copy, e) && describe_write(d, out, e);
    fclose(out);
    free(copy);
    free(d);
    if (ok)
        return made;
    free(made);
    return NULL;
}
