/* registry: the list of ops.h as an array. */
#include "ops.h"

#include <string.h>

#define ENTRY(name) &name##_op,
const op *const registry[] = {OPS(ENTRY)};
const size_t registry_count = sizeof registry / sizeof registry[0];

const op *registry_find_op(const char *name) {
    for (size_t i = 0; i < registry_count; i++)
        if (strcmp(registry[i]->name, name) == 0)
            return registry[i];
    return NULL;
}

const kernel *registry_find_kernel(const char *name, const op **owner) {
    for (size_t i = 0; i < registry_count; i++) {
        const kernel *k = op_find_kernel(registry[i], name);
        if (k) {
            if (owner)
                *owner = registry[i];
            return k;
        }
    }
    return NULL;
}
