/* same_code: compares what the loader would put in memory.
 *
 * Only ELF objects are understood; others never count as the same. */
#include "same_code.h"

#include "engine.h"

#if defined(__linux__)
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"

typedef struct {
    char *data;
    size_t bytes;
    Elf64_Ehdr head;
} object;

static bool has_range(const object *o, uint64_t begin, uint64_t bytes) {
    return begin <= o->bytes && bytes <= o->bytes - begin;
}

static bool open_object(const pipeline *p, object *o) {
    const soft_loaded *loaded = p->impl;
    o->data = os_read_file(loaded->object, &o->bytes, NULL);
    if (!o->data || o->bytes < sizeof o->head)
        return false;
    memcpy(&o->head, o->data, sizeof o->head);
    return memcmp(o->head.e_ident, ELFMAG, SELFMAG) == 0 &&
           o->head.e_ident[EI_CLASS] == ELFCLASS64 && o->head.e_shentsize == sizeof(Elf64_Shdr) &&
           has_range(o, o->head.e_shoff, (uint64_t)o->head.e_shnum * sizeof(Elf64_Shdr));
}

/* The next section that is loaded; notes only name the build. */
static bool next_section(const object *o, size_t *i, Elf64_Shdr *out) {
    for (; *i < o->head.e_shnum; (*i)++) {
        memcpy(out, o->data + o->head.e_shoff + *i * sizeof *out, sizeof *out);
        if ((out->sh_flags & SHF_ALLOC) && out->sh_type != SHT_NOTE) {
            (*i)++;
            return true;
        }
    }
    return false;
}

static bool is_same_section(const object *a, const Elf64_Shdr *x, const object *b,
                            const Elf64_Shdr *y) {
    if (x->sh_type != y->sh_type || x->sh_flags != y->sh_flags || x->sh_addr != y->sh_addr ||
        x->sh_size != y->sh_size)
        return false;
    return x->sh_type == SHT_NOBITS ||
           (has_range(a, x->sh_offset, x->sh_size) && has_range(b, y->sh_offset, y->sh_size) &&
            memcmp(a->data + x->sh_offset, b->data + y->sh_offset, x->sh_size) == 0);
}

static bool is_same_object(const object *a, const object *b) {
    Elf64_Shdr x, y;
    size_t i = 0, k = 0, seen = 0;
    for (;;) {
        bool has_x = next_section(a, &i, &x), has_y = next_section(b, &k, &y);
        if (!has_x || !has_y)
            return has_x == has_y && seen > 0;
        if (!is_same_section(a, &x, b, &y))
            return false;
        seen++;
    }
}

bool soft_is_same_code(const pipeline *a, const pipeline *b) {
    object x = {0}, y = {0};
    bool is_same = open_object(a, &x) && open_object(b, &y) && is_same_object(&x, &y);
    free(x.data);
    free(y.data);
    return is_same;
}
#else
bool soft_is_same_code(const pipeline *a, const pipeline *b) {
    (void)a;
    (void)b;
    return false;
}
#endif
