#include "bench_base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"

/* The only kernel of an op that the other version of the op does not have; else NULL. */
static const kernel *find_only(const op *o, const op *other) {
    const kernel *only = NULL;
    size_t count = 0;
    for (size_t i = 0; i < o->kernel_count; i++)
        if (!op_find_kernel(other, o->kernels[i].name)) {
            only = &o->kernels[i];
            count++;
        }
    return count == 1 ? only : NULL;
}

static const kernel *find_kernel(const bench_base *b, const kernel_case *ours, const op **from) {
    const kernel *found = NULL;
    for (size_t i = 0; i < b->op_count && !found; i++)
        if ((found = op_find_kernel(b->ops[i], ours->kernel->name)))
            *from = b->ops[i];
    for (size_t i = 0; i < b->op_count && !found; i++)
        if (strcmp(b->ops[i]->name, ours->op->name) == 0 &&
            find_only(ours->op, b->ops[i]) == ours->kernel) {
            found = find_only(b->ops[i], ours->op);
            *from = b->ops[i];
        }
    return found;
}

/* Without descriptions of its own: the file is there and has the kernel. */
static bool has_kernel(library *lib, const kernel *k) {
    char path[PATH_MAX];
    if (!library_find_path(lib, k->file, path, sizeof path, NULL) || access(path, F_OK) != 0)
        return false;
    const msl_unit *u = library_find_unit(lib, k->file, NULL);
    return !u || msl_find_kernel(u, k->name, NULL); /* what cannot be read is reported later */
}

bool bench_base_find(const bench_base *b, library *lib, const kernel_case *ours, kernel_case *out,
                     err *e) {
    const op *from = ours->op;
    if (b->error.code != EXIT_OK) {
        *e = b->error;
        return false;
    }
    const kernel *k = b->ops                          ? find_kernel(b, ours, &from)
                      : has_kernel(lib, ours->kernel) ? ours->kernel
                                                      : NULL;
    if (!k)
        return err_set(e, EXIT_USAGE, "%.80s is not in the base", ours->kernel->name);
    if (strcmp(from->dims, ours->op->dims) != 0)
        return err_set(e, EXIT_USAGE, "the sizes of the base's %.60s are %.60s, not %.60s", k->name,
                       from->dims, ours->op->dims);
    *out = case_new(from, k, &ours->shape, ours->inputs);
    memcpy(out->name, ours->name, sizeof out->name); /* the inputs follow from it */
    return true;
}

/* Buffers --------------------------------------------------------------------------------------- */

static bool is_same_place(const binding *a, const binding *b) {
    return a->kind == b->kind && a->access == b->access && a->type == b->type &&
           (a->kind != BIND_BUFFER ||
            (a->at.bytes == b->at.bytes && a->at.buffer->bytes == b->at.buffer->bytes &&
             a->at.offset == b->at.offset));
}

static bool are_same_contents(const slice *a, const slice *b, bool *same, err *e) {
    char *x = array_new(a->bytes + 1, 1), *y = array_new(a->bytes + 1, 1);
    bool ok = buffer_download(a->buffer, a->offset, x, a->bytes, e) &&
              buffer_download(b->buffer, b->offset, y, a->bytes, e);
    *same = ok && memcmp(x, y, a->bytes) == 0;
    free(x);
    free(y);
    return ok;
}

bool bench_base_share_buffers(const tape *ours, tape *base, err *e) {
    bool same = ours->count == base->count;
    for (size_t i = 0; same && i < ours->count; i++)
        for (int j = 0; same && j < LAUNCH_BUFFERS; j++) {
            const binding *a = &ours->launches[i].args[j], *b = &base->launches[i].args[j];
            same = is_same_place(a, b);
            if (same && a->kind == BIND_BUFFER && !are_same_contents(&a->at, &b->at, &same, e))
                return false;
        }
    for (size_t i = 0; same && i < ours->count; i++)
        for (int j = 0; j < LAUNCH_BUFFERS; j++)
            if (ours->launches[i].args[j].kind == BIND_BUFFER)
                base->launches[i].args[j].at = ours->launches[i].args[j].at;
    return true;
}
