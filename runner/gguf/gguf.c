/* gguf: see gguf.h. Owns the map and finding things by name; the layout of the file is parse.c,
 * the types of values and tensors value.c and type.c. */
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
#include "parse.h"

/* Names by hash: slots hold index + 1, 0 is free; a taken slot sends on to the next. */
typedef struct {
    size_t *slots;
    size_t mask;
} name_index;

typedef struct {
    name_index values, tensors;
    bool is_mapped;
    char *name; /* for messages */
} hidden;

static size_t hash(gguf_text t) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < t.bytes; i++)
        h = (h ^ (uint8_t)t.data[i]) * 0x100000001b3u;
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u; /* the low bits alone are poor */
    return (size_t)(h >> 24);
}

static gguf_text get_key(const gguf *g, size_t i) {
    return g->values[i].key;
}

static gguf_text get_tensor_name(const gguf *g, size_t i) {
    return (gguf_text){g->tensors[i].name, strlen(g->tensors[i].name)};
}

typedef gguf_text (*name_getter)(const gguf *g, size_t i);

/* The slot that has this name, or the free one where it would be. */
static size_t *find_slot(const gguf *g, const name_index *x, name_getter get, gguf_text name) {
    size_t i = hash(name) & x->mask;
    for (; x->slots[i]; i = (i + 1) & x->mask) {
        gguf_text there = get(g, x->slots[i] - 1);
        if (there.bytes == name.bytes && memcmp(there.data, name.data, name.bytes) == 0)
            break;
    }
    return &x->slots[i];
}

static bool build_index(const gguf *g, name_index *x, name_getter get, size_t count,
                        const char *what, err *e) {
    size_t slots = 2;
    while (slots < 2 * count)
        slots *= 2;
    x->mask = slots - 1;
    x->slots = calloc(slots, sizeof *x->slots);
    if (!x->slots)
        return err_set(e, EXIT_CANNOT, "no memory for %zu names", count);
    const hidden *h = g->impl;
    for (size_t i = 0; i < count; i++) {
        size_t *slot = find_slot(g, x, get, get(g, i));
        char shown[64];
        if (*slot)
            return err_set(e, EXIT_USAGE, "%.100s: %s %s is there twice", h->name, what,
                           gguf_print_text(get(g, i), shown, sizeof shown));
        *slot = i + 1;
    }
    return true;
}

static bool fill(gguf *g, err *e) {
    hidden *h = g->impl;
    return gguf_parse(g, h->name, e) &&
           build_index(g, &h->values, get_key, g->value_count, "metadata", e) &&
           build_index(g, &h->tensors, get_tensor_name, g->tensor_count, "tensor", e);
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
    free(h->values.slots);
    free(h->tensors.slots);
    map_guard_remove(h->is_mapped ? g->map : NULL);
    if (h->is_mapped)
        munmap((void *)g->map, g->bytes);
    free(h->name);
    free(h);
    free(g);
}

const gguf_tensor *gguf_find_tensor(const gguf *g, const char *name) {
    const hidden *h = g->impl;
    size_t slot = *find_slot(g, &h->tensors, get_tensor_name, (gguf_text){name, strlen(name)});
    return slot ? &g->tensors[slot - 1] : NULL;
}

const gguf_value *gguf_find_value(const gguf *g, const char *key) {
    const hidden *h = g->impl;
    size_t slot = *find_slot(g, &h->values, get_key, (gguf_text){key, strlen(key)});
    return slot ? &g->values[slot - 1] : NULL;
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

bool gguf_get_u32(const gguf *g, const char *key, uint32_t *out, bool *found, err *e) {
    bool ok;
    const gguf_value *v = find_typed(g, key, GGUF_U32, found, &ok, e);
    if (v)
        memcpy(out, v->data, sizeof *out);
    return ok;
}

bool gguf_get_f32(const gguf *g, const char *key, float *out, bool *found, err *e) {
    bool ok;
    const gguf_value *v = find_typed(g, key, GGUF_F32, found, &ok, e);
    if (v)
        memcpy(out, v->data, sizeof *out);
    return ok;
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
