/* gguf: see gguf.h. Owns the map, the layout of the file, and finding things by name; the types of
 * values and of tensors are in type.c.
 *
 * There is one way to come by bytes, `take`, and it compares with what is left of the file. Arrays
 * grow with the records that were really there, so a count that lies allocates nothing. */
#include "gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/map_guard.h"
#include "harness/base/size.h"

/* --- texts: open addressing with linear probing --- */

enum { FIRST_SLOTS = 1024 };

void text_set_free(text_set *s) {
    for (size_t i = 0; i < s->copy_count; i++)
        free(s->copies[i]);
    free(s->copies);
    free(s->items);
    free(s->slots);
    *s = (text_set){0};
}

/* FNV-1a, with its high bits folded in because slots are chosen by the low ones. */
static uint64_t hash_text(gguf_text text) {
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < text.bytes; i++)
        h = (h ^ (unsigned char)text.data[i]) * 0x100000001B3u;
    return h ^ h >> 32;
}

static bool is_same(gguf_text a, gguf_text b) {
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

/* The slot that holds the text, or the empty one where it belongs. */
static size_t find_slot(const text_set *s, gguf_text text) {
    size_t mask = s->slot_count - 1, i = (size_t)hash_text(text) & mask;
    while (s->slots[i] != TEXT_NONE && !is_same(s->items[s->slots[i]], text))
        i = (i + 1) & mask;
    return i;
}

static void grow_slots(text_set *s) {
    s->slot_count = s->slot_count ? 2 * s->slot_count : FIRST_SLOTS;
    free(s->slots);
    s->slots = array_new(s->slot_count, sizeof *s->slots);
    memset(s->slots, 0xFF, s->slot_count * sizeof *s->slots);
    for (uint32_t i = 0; i < s->count; i++)
        s->slots[find_slot(s, s->items[i])] = i;
}

uint32_t text_set_find(const text_set *s, gguf_text text) {
    return s->slot_count ? s->slots[find_slot(s, text)] : TEXT_NONE;
}

uint32_t text_set_add(text_set *s, gguf_text text) {
    if (2 * (size_t)s->count >= s->slot_count)
        grow_slots(s);
    size_t slot = find_slot(s, text);
    if (s->slots[slot] != TEXT_NONE)
        return s->slots[slot];
    s->items = array_grow(s->items, s->count, &s->capacity, sizeof *s->items);
    s->items[s->count] = text;
    return s->slots[slot] = s->count++;
}

uint32_t text_set_add_copy(text_set *s, gguf_text text) {
    uint32_t known = text_set_find(s, text);
    if (known != TEXT_NONE)
        return known;
    s->copies = array_grow(s->copies, s->copy_count, &s->copy_capacity, sizeof *s->copies);
    char *copy = array_new(1, text.bytes + 1);
    if (text.bytes > 0)
        memcpy(copy, text.data, text.bytes);
    s->copies[s->copy_count++] = copy;
    return text_set_add(s, (gguf_text){copy, text.bytes});
}

/* --- the layout of the file --- */

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF files are little-endian and are read as they lie: this host is not"
#endif

enum { DEFAULT_ALIGNMENT = 32, MIN_ALIGNMENT = 8, MAX_ALIGNMENT = 1 << 20 };
enum { MIN_VALUE_BYTES = 14, MIN_TENSOR_BYTES = 24 }; /* of a record in the file */

typedef struct {
    const uint8_t *data;
    size_t bytes, at;
    const char *name; /* of the file, for messages */
    char what[96];    /* that is being read, for messages */
    err *e;
} reader;

static bool refuse(const reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(const reader *r, const char *format, ...) {
    char text[160];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    size_t length = strlen(r->name),
           shown = 80; /* the end of a path says more than its beginning */
    bool is_long = length > shown;
    return err_set(r->e, EXIT_USAGE, "%s%s: %s", is_long ? "..." : "",
                   is_long ? r->name + length - shown : r->name, text);
}

static const uint8_t *take(reader *r, uint64_t bytes) {
    if (bytes > r->bytes - r->at) {
        refuse(r, "it ends at byte %zu, inside %s; the file is cut off or damaged", r->bytes,
               r->what);
        return NULL;
    }
    const uint8_t *data = r->data + r->at;
    r->at += (size_t)bytes;
    return data;
}

static bool take_number(reader *r, void *out, size_t bytes) {
    const uint8_t *p = take(r, bytes);
    if (p)
        memcpy(out, p, bytes);
    return p != NULL;
}

static bool take_text(reader *r, gguf_text *out) {
    uint64_t bytes;
    if (!take_number(r, &bytes, sizeof bytes))
        return false;
    const uint8_t *p = take(r, bytes);
    if (p)
        *out = (gguf_text){(const char *)p, (size_t)bytes};
    return p != NULL;
}

/* The items with room for one more after `count` of them; NULL: no memory, and they are unchanged. */
static void *grow(const reader *r, void *items, size_t count, size_t item_bytes) {
    if (count & (count - 1)) /* room was made for the next power of two */
        return items;
    void *more = realloc(items, size_multiply(count ? 2 * count : 1, item_bytes));
    if (!more)
        refuse(r, "no memory for its %zu records", count);
    return more;
}

/* --- values --- */

static bool take_value_type(reader *r, const char *key, gguf_value_type *out) {
    uint32_t id;
    if (!take_number(r, &id, sizeof id))
        return false;
    if (id >= GGUF_VALUE_TYPES)
        return refuse(r, "%s has the unknown type %u", key, id);
    *out = (gguf_value_type)id;
    return true;
}

/* Walks over the strings first: what is allocated is then known to be in the file. */
static bool take_texts(reader *r, gguf_value *v) {
    size_t start = r->at;
    gguf_text text;
    for (size_t i = 0; i < v->count; i++)
        if (!take_text(r, &text))
            return false;
    gguf_text *texts = v->count ? malloc(size_multiply(v->count, sizeof *texts)) : NULL;
    if (v->count && !texts)
        return refuse(r, "no memory for %zu texts", v->count);
    r->at = start;
    for (size_t i = 0; i < v->count; i++)
        take_text(r, &texts[i]);
    v->texts = texts;
    return true;
}

static bool take_elements(reader *r, uint64_t count, gguf_value *v) {
    size_t each = gguf_get_value_bytes(v->element), least = v->element == GGUF_STRING ? 8 : each;
    if (count > (r->bytes - r->at) / least)
        return refuse(r, "%s claims %llu elements, more than the rest of the file holds", r->what,
                      (unsigned long long)count);
    v->count = (size_t)count;
    v->data = r->data + r->at;
    if (v->element == GGUF_STRING ? !take_texts(r, v) : !take(r, v->count * each))
        return false;
    v->bytes = (size_t)(r->data + r->at - v->data);
    return true;
}

static bool take_value(reader *r, size_t index, uint64_t of, gguf_value *v) {
    char key[48];
    snprintf(r->what, sizeof r->what, "the key of metadata %zu of %llu", index + 1,
             (unsigned long long)of);
    *v = (gguf_value){.count = 1};
    if (!take_text(r, &v->key))
        return false;
    if (v->key.bytes == 0)
        return refuse(r, "the key of metadata %zu is empty", index + 1);
    snprintf(r->what, sizeof r->what, "metadata %s", gguf_print_text(v->key, key, sizeof key));
    if (!take_value_type(r, key, &v->type))
        return false;
    v->element = v->type;
    if (v->type != GGUF_ARRAY)
        return take_elements(r, 1, v);
    uint64_t count;
    if (!take_value_type(r, key, &v->element) || !take_number(r, &count, sizeof count))
        return false;
    if (v->element == GGUF_ARRAY)
        return refuse(r, "%s is an array of arrays, which is not supported", key);
    return take_elements(r, count, v);
}

static bool take_values(reader *r, gguf *g, uint64_t count) {
    for (size_t i = 0; i < count; i++) {
        gguf_value *more = grow(r, g->values, i, sizeof *more);
        if (!more)
            return false;
        g->values = more;
        if (!take_value(r, i, count, &more[i]))
            return false;
        g->value_count = i + 1;
    }
    return true;
}

/* Looked for among all the values: the first counts, and a second is refused later. */
static bool find_alignment(const reader *r, gguf *g) {
    g->alignment = DEFAULT_ALIGNMENT;
    for (size_t i = 0; i < g->value_count; i++) {
        const gguf_value *v = &g->values[i];
        if (!gguf_text_equals(v->key, "general.alignment"))
            continue;
        if (v->type != GGUF_U32)
            return refuse(r, "general.alignment is of type %s where u32 is needed",
                          gguf_get_value_type_name(v->type));
        memcpy(&g->alignment, v->data, sizeof g->alignment);
        if (g->alignment < MIN_ALIGNMENT || g->alignment > MAX_ALIGNMENT ||
            (g->alignment & (g->alignment - 1)))
            return refuse(r, "general.alignment is %u, not a power of two from %d to %d",
                          g->alignment, MIN_ALIGNMENT, MAX_ALIGNMENT);
        return true;
    }
    return true;
}

/* --- tensors --- */

static bool take_name(reader *r, size_t index, uint64_t of, gguf_tensor *t) {
    gguf_text name;
    char shown[48];
    snprintf(r->what, sizeof r->what, "the name of tensor %zu of %llu", index + 1,
             (unsigned long long)of);
    if (!take_text(r, &name))
        return false;
    if (name.bytes >= sizeof t->name)
        return refuse(r, "the name of tensor %zu, %s, has %zu bytes; at most %d are allowed",
                      index + 1, gguf_print_text(name, shown, sizeof shown), name.bytes,
                      GGUF_NAME_BYTES - 1);
    if (memchr(name.data, 0, name.bytes))
        return refuse(r, "the name of tensor %zu, %s, contains a NUL byte", index + 1,
                      gguf_print_text(name, shown, sizeof shown));
    memcpy(t->name, name.data, name.bytes);
    return true;
}

static bool take_dims(reader *r, const char *name, gguf_tensor *t) {
    if (!take_number(r, &t->dims, sizeof t->dims))
        return false;
    if (t->dims < 1 || t->dims > GGUF_DIMS)
        return refuse(r, "tensor %s has %u dimensions, not 1 to %d", name, t->dims, GGUF_DIMS);
    t->elements = 1;
    for (size_t i = 0; i < GGUF_DIMS; i++) {
        t->dim[i] = 1;
        if (i >= t->dims)
            continue;
        if (!take_number(r, &t->dim[i], sizeof t->dim[i]))
            return false;
        if (t->dim[i] < 1 || t->dim[i] > INT64_MAX)
            return refuse(r, "dimension %zu of tensor %s is %llu", i, name,
                          (unsigned long long)t->dim[i]);
        if (t->elements > INT64_MAX / t->dim[i])
            return refuse(r, "tensor %s has more than 2^63 elements", name);
        t->elements *= t->dim[i];
    }
    return true;
}

static bool take_type(reader *r, const char *name, gguf_tensor *t) {
    uint32_t id;
    if (!take_number(r, &id, sizeof id))
        return false;
    t->type = gguf_find_type(id);
    if (!t->type)
        return refuse(r, "tensor %s has the unknown type %d", name, (int)id);
    if (t->dim[0] % t->type->values != 0)
        return refuse(r, "rows of tensor %s have %llu values, not whole blocks of %zu (%s)", name,
                      (unsigned long long)t->dim[0], t->type->values, t->type->name);
    uint64_t blocks = t->elements / t->type->values;
    if (blocks > SIZE_MAX / t->type->bytes)
        return refuse(r, "tensor %s has more bytes than fit in memory", name);
    t->bytes = (size_t)blocks * t->type->bytes;
    return true;
}

static bool take_tensor(reader *r, size_t index, uint64_t of, gguf_tensor *t) {
    char name[48];
    uint64_t offset;
    *t = (gguf_tensor){.dims = 0};
    if (!take_name(r, index, of, t))
        return false;
    gguf_print_text(gguf_to_text(t->name), name, sizeof name);
    snprintf(r->what, sizeof r->what, "the description of tensor %s", name);
    if (!take_dims(r, name, t) || !take_type(r, name, t) || !take_number(r, &offset, sizeof offset))
        return false;
    if (offset > SIZE_MAX)
        return refuse(r, "tensor %s starts at %llu, beyond memory", name,
                      (unsigned long long)offset);
    t->offset = (size_t)offset;
    return true;
}

static bool take_tensors(reader *r, gguf *g, uint64_t count) {
    for (size_t i = 0; i < count; i++) {
        gguf_tensor *more = grow(r, g->tensors, i, sizeof *more);
        if (!more)
            return false;
        g->tensors = more;
        if (!take_tensor(r, i, count, &more[i]))
            return false;
        g->tensor_count = i + 1;
    }
    return true;
}

/* Offsets in the table count from data_at, and each tensor follows the one before it. What has been
 * placed lies in the file, so the sums are small. */
static bool place_tensors(const reader *r, gguf *g) {
    uint64_t data_at = gguf_round_up(r->at, g->alignment), next = 0;
    if (data_at > r->bytes)
        return refuse(r, "it ends at byte %zu, before the tensors' bytes; the file is cut off",
                      r->bytes);
    g->data_at = (size_t)data_at;
    for (size_t i = 0; i < g->tensor_count; i++) {
        gguf_tensor *t = &g->tensors[i];
        char name[48];
        gguf_print_text(gguf_to_text(t->name), name, sizeof name);
        if (t->offset != next)
            return refuse(r,
                          "tensor %s starts at %zu of the data, not at %llu after the one "
                          "before it",
                          name, t->offset, (unsigned long long)next);
        uint64_t left = g->bytes - g->data_at;
        if (next > left || t->bytes > left - next)
            return refuse(r,
                          "tensor %s needs %zu bytes from byte %llu on, but the file ends at "
                          "%zu; it is cut off",
                          name, t->bytes, (unsigned long long)(data_at + next), g->bytes);
        next = gguf_round_up(next + t->bytes, g->alignment);
        t->offset += g->data_at;
        t->data = g->map + t->offset;
    }
    return true;
}

/* --- all of it --- */

static bool take_counts(reader *r, gguf *g, uint64_t *tensors, uint64_t *values) {
    strcpy(r->what, "its header");
    if (r->bytes >= 4 && memcmp(r->data, "GGUF", 4) != 0)
        return refuse(r, "not a GGUF file: it does not begin with 'GGUF'");
    if (!take(r, 4) || !take_number(r, &g->version, sizeof g->version))
        return false;
    if (g->version && (g->version & 0xffff) == 0)
        return refuse(r, "a big-endian GGUF file; only little-endian ones are read");
    if (g->version != 2 && g->version != 3)
        return refuse(r, "GGUF version %u; only versions 2 and 3 are read", g->version);
    if (!take_number(r, tensors, sizeof *tensors) || !take_number(r, values, sizeof *values))
        return false;
    uint64_t left = r->bytes - r->at;
    if (*values > left / MIN_VALUE_BYTES)
        return refuse(r, "it claims %llu metadata values, more than the file has room for",
                      (unsigned long long)*values);
    if (*tensors > left / MIN_TENSOR_BYTES)
        return refuse(r, "it claims %llu tensors, more than the file has room for",
                      (unsigned long long)*tensors);
    return true;
}

/* g has its map and bytes; the rest is filled from them. On failure what was filled is still g's to
 * free. */
static bool parse(gguf *g, const char *name, err *e) {
    reader r = {.data = g->map, .bytes = g->bytes, .name = name, .e = e};
    uint64_t tensors = 0, values = 0;
    if (!take_counts(&r, g, &tensors, &values) || !take_values(&r, g, values) ||
        !find_alignment(&r, g) || !take_tensors(&r, g, tensors))
        return false;
    if (tensors > 0)
        return place_tensors(&r, g);
    g->data_at = r.at; /* nothing is padded where nothing follows */
    return true;
}

/* --- a file --- */

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
    if (!parse(g, h->name, e))
        return false;
    for (size_t i = 0; i < g->value_count; i++)
        if (!add_name(g, &h->values, g->values[i].key, "metadata", e))
            return false;
    for (size_t i = 0; i < g->tensor_count; i++)
        if (!add_name(g, &h->tensors, gguf_to_text(g->tensors[i].name), "tensor", e))
            return false;
    return true;
}

static gguf *new_empty(const char *name) {
    gguf *g = array_new(1, sizeof *g);
    hidden *h = g->impl = array_new(1, sizeof *h);
    h->name = strcpy(array_new(strlen(name) + 1, 1), name);
    return g;
}

gguf *gguf_read(const void *data, size_t bytes, const char *name, err *e) {
    gguf *g = new_empty(name);
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
    gguf *g = new_empty(path);
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
