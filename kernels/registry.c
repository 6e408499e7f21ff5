/* registry: the list of ops.h as an array, or what a project has in its place. */
#include "ops.h"

#include <string.h>

#define ENTRY(name) &name##_op,
static const op *const built_in[] = {OPS(ENTRY)};
enum { BUILT_IN = sizeof built_in / sizeof *built_in };

const op *const *registry = built_in;
size_t registry_count = BUILT_IN;

void registry_use(const op *const *ops, size_t count) {
    registry = ops;
    registry_count = count;
}

static const op *find_op(const op *const *ops, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(ops[i]->name, name) == 0)
            return ops[i];
    return NULL;
}

const op *registry_find_op(const char *name) {
    const op *o = find_op(registry, registry_count, name);
    return o ? o : find_op(built_in, BUILT_IN, name);
}

static const kernel *find_kernel(const op *const *ops, size_t count, const char *name,
                                 const op **owner) {
    for (size_t i = 0; i < count; i++) {
        const kernel *k = op_find_kernel(ops[i], name);
        if (k && owner)
            *owner = ops[i];
        if (k)
            return k;
    }
    return NULL;
}

const kernel *registry_find_kernel(const char *name, const op **owner) {
    const kernel *k = find_kernel(registry, registry_count, name, owner);
    return k ? k : find_kernel(built_in, BUILT_IN, name, owner);
}

static bool has_file(const op *o, const char *const *files, size_t count) {
    for (size_t k = 0; k < o->kernel_count; k++)
        for (size_t i = 0; i < count; i++)
            if (o->kernels[k].file && strcmp(o->kernels[k].file, files[i]) == 0)
                return true;
    return false;
}

size_t registry_list_sources(const char *const *files, size_t count, const char **out,
                             size_t most) {
    size_t used = 0;
    for (size_t i = 0; i < BUILT_IN; i++) {
        bool is_there = !has_file(built_in[i], files, count);
        for (size_t k = 0; k < used; k++)
            is_there = is_there || strcmp(out[k], built_in[i]->source) == 0;
        if (!is_there && used < most)
            out[used++] = built_in[i]->source;
    }
    return used;
}
