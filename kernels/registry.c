/* registry: the list of ops.h as an array, or what a project has in its place. */
#include "ops.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

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

bool registry_add_made_of(char text[MADE_OF], const library *lib, const char *const *files,
                          size_t count, err *e) {
    const char *sources[BUILT_IN];
    size_t used = 0;
    for (size_t i = 0; i < BUILT_IN; i++) {
        bool is_there = !has_file(built_in[i], files, count);
        for (size_t k = 0; k < used; k++)
            is_there = is_there || strcmp(sources[k], built_in[i]->source) == 0;
        if (!is_there)
            sources[used++] = built_in[i]->source;
    }
    return made_of_add(text, lib, "description", sources, used, e);
}

bool registry_add_used(char text[MADE_OF], const library *lib, err *e) {
    const char **files = array_new(library_count_files(lib), sizeof *files);
    size_t count = library_list_used(lib, files);
    bool ok =
        made_of_add(text, lib, "kernel", files, count, e) &&
        registry_add_made_of(text, lib, files, count, e) &&
        made_of_add_one(text, lib, "device", device_get_facts(library_get_device(lib))->api, e);
    free(files);
    return ok;
}
