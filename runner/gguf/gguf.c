/* gguf: see gguf.h. Owns the map and finding things by name; the layout of the file is parse.c,
 * the types of values and of tensors type.c. */
#include "gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/map_guard.h"
#include "text_set.h"

typedef struct {
    text_set values, tensors; /* their names, numbered in the order of the file */
    bool is_mapped;
    char *name; /* for messages */
} hidden;

/* Adds the next name; one that is there already is refused. */
static bool add_name(const gguf *g, text_set *names, gguf_text name, const char *what, err *e) {
    const hidden *h = g->impl;
    char shown[64];
    uint32_t next = names->count;
    return text_set_add(names, name) == next ||
           err_set(e, EXIT_USAGE, "%.100s: %s %s is there twice", h->name, what,
                   gguf_print_text(name, shown, sizeof shown));
}

static bool fill(gguf *g, err *e) {
    hidden *h = g->impl;
    if (!gguf_parse(g, h->name, e))
        return false;
    for (size_t i = 0; i < g->value_count; i++)
        if (!add_name(g, &h->values, g->values[i].key, "metadata", e))
            return false;
    for (size_t i = 0; i < g->tensor_count; i++)
        if (!add_name(g, &h->tensors, gguf_to_text(g->tensors[i].name), "tensor", e))
            return false;
    return true;
}

static gguf *new_empty(const char *name, err *e) {
    gguf *g = calloc(1, sizeof *g);
    hidden *h = calloc(1, sizeof *h);
    char *copy = malloc(strlen(name) + 1);
    if (!g || !h || !copy) {
        err_set(e, EXIT_CANNOT, "no memory to read %.100s", name);
        free(g);
        free(h);
        free(copy);
        return NULL;
    }
    h->name = strcpy(copy, name);
    g->impl = h;
    return g;
}

gguf *gguf_read(const void *data, size_t bytes, const char *name, err *e) {
    gguf *g = new_empty(name, e);
    if (!g)
        return NULL;
    g->map = data;
    g->bytes = bytes;
    if (!fill(g, e)) {
        gguf_free(g);
        return NULL;
    }
    return g;
}

/* A pipe would have us wait for its other end: it is opened without waiting, and refused. */
static bool map_file(gguf *g, const char *path, err *e) {
    hidden *h = g->impl;
    struct stat s;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &s) != 0) {
        err_set(e, EXIT_USAGE, "cannot read the model %.160s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (!S_ISREG(s.st_mode) || s.st_size <= 0) {
        const char *why = S_ISDIR(s.st_mode)    ? "a folder; name a .gguf file in it"
                          : !S_ISREG(s.st_mode) ? "not a file"
                                                : "an empty file";
        close(fd);
        return err_set(e, EXIT_USAGE, "the model %.160s is %s", path, why);
    }
    /* Shared: a GPU takes such pages in place, without a copy. */
    void *map = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_SHARED, fd, 0);
    int why = errno;
    if (map != MAP_FAILED)
        map_guard_add(map, (size_t)s.st_size, path, fd);
    close(fd);
    if (map == MAP_FAILED)
        return err_set(e, EXIT_CANNOT, "cannot map the model %.160s: %s", path, strerror(why));
    g->map = map;
    g->bytes = (size_t)s.st_size;
    h->is_mapped = true;
    return true;
}

gguf *gguf_open(const char *path, err *e) {
    gguf *g = new_empty(path, e);
    if (!g)
        return NULL;
    if (strlen(path) >= sizeof g->path)
        err_set(e, EXIT_USAGE, "the path %.100s... is longer than %zu bytes", path,
                sizeof g->path - 1);
    else if (map_file(g, strcpy(g->path, path), e) && fill(g, e))
        return g;
    gguf_free(g);
    return NULL;
}

void gguf_free(gguf *g) {
    if (!g)
        return;
    hidden *h = g->impl;
    for (size_t i = 0; i < g->value_count; i++)
        free((void *)g->values[i].texts);
    free(g->values);
    free(g->tensors);
    text_set_free(&h->values);
    text_set_free(&h->tensors);
    map_guard_remove(h->is_mapped ? g->map : NULL);
    if (h->is_mapped)
        munmap((void *)g->map, g->bytes);
    free(h->name);
    free(h);
    free(g);
}

const gguf_tensor *gguf_find_tensor(const gguf *g, const char *name) {
    uint32_t i = text_set_find(&((const hidden *)g->impl)->tensors, gguf_to_text(name));
    return i == TEXT_NONE ? NULL : &g->tensors[i];
}

const gguf_value *gguf_find_value(const gguf *g, const char *key) {
    uint32_t i = text_set_find(&((const hidden *)g->impl)->values, gguf_to_text(key));
    return i == TEXT_NONE ? NULL : &g->values[i];
}

/* --- single values --- */

/* NULL where there is none of this type; then *ok says whether that is fine. */
static const gguf_value *find_typed(const gguf *g, const char *key, gguf_value_type type,
                                    bool *found, bool *ok, err *e) {
    const hidden *h = g->impl;
    const gguf_value *v = gguf_find_value(g, key);
    if (found)
        *found = v != NULL;
    *ok = v ? v->type == type : found != NULL;
    if (!v && !found)
        err_set(e, EXIT_USAGE, "%.100s: metadata %.60s is missing", h->name, key);
    else if (v && !*ok)
        err_set(e, EXIT_USAGE, "%.100s: metadata %.60s is of type %s where %s is needed", h->name,
                key, gguf_get_value_type_name(v->type), gguf_get_value_type_name(type));
    return *ok ? v : NULL;
}

/* A number of 4 bytes. */
static bool get_word(const gguf *g, const char *key, gguf_value_type type, void *out, bool *found,
                     err *e) {
    bool ok;
    const gguf_value *v = find_typed(g, key, type, found, &ok, e);
    if (v)
        memcpy(out, v->data, 4);
    return ok;
}

bool gguf_get_u32(const gguf *g, const char *key, uint32_t *out, bool *found, err *e) {
    return get_word(g, key, GGUF_U32, out, found, e);
}

bool gguf_get_f32(const gguf *g, const char *key, float *out, bool *found, err *e) {
    return get_word(g, key, GGUF_F32, out, found, e);
}

bool gguf_get_bool(const gguf *g, const char *key, bool *out, bool *found, err *e) {
    bool ok;
    const gguf_value *v = find_typed(g, key, GGUF_BOOL, found, &ok, e);
    if (v)
        *out = *v->data != 0;
    return ok;
}

bool gguf_get_text(const gguf *g, const char *key, gguf_text *out, bool *found, err *e) {
    bool ok;
    const gguf_value *v = find_typed(g, key, GGUF_STRING, found, &ok, e);
    if (v)
        *out = v->texts[0];
    return ok;
}
