/* signature: a kernel as a launch sees it, and whether a launch fits it. */
#include "internal.h"

#include "harness/device/launch.h"

#include <stdlib.h>
#include <string.h>

static void list_kernels(const msl_unit *u, text *out) {
    for (size_t i = 0; i < u->entry_count; i++)
        text_print(out, "%s%s", i ? ", " : "", u->entries[i]->signature.host_name);
}

const entry *entry_find(const msl_unit *u, const char *host_name, err *e) {
    for (size_t i = 0; i < u->entry_count; i++) {
        const entry *w = u->entries[i];
        if (strcmp(w->signature.host_name, host_name) != 0)
            continue;
        if (!w->problem)
            return w;
        err_set(e, EXIT_USAGE, "%s", w->problem);
        return NULL;
    }
    if (!u->entry_count) {
        err_set(e, EXIT_USAGE, "there is no kernel %.80s in %.100s, which has none", host_name,
                u->name);
        return NULL;
    }
    text names = {0};
    list_kernels(u, &names);
    err_set(e, EXIT_USAGE, "there is no kernel %.60s in %.60s; it has %.100s%s", host_name, u->name,
            names.data, names.used > 100 ? "..." : "");
    err_set_detail(e, names.data);
    free(names.data);
    return NULL;
}

const msl_signature *msl_find_kernel(const msl_unit *u, const char *host_name, err *e) {
    const entry *w = entry_find(u, host_name, e);
    return w ? &w->signature : NULL;
}

bool entry_is_param_on(const msl_unit *u, const entry *w, const msl_param *p,
                       const msl_constant_text *given, size_t count, bool *on, err *e) {
    *on = true;
    if (!p->gate[0])
        return true;
    scope s = {.unit = u, .given = given, .given_count = count};
    int64_t value;
    if (constant_evaluate_name(&s, p->gate, &value)) {
        *on = value != 0;
        return true;
    }
    if (s.missing)
        return err_set(
            e, EXIT_USAGE,
            "kernel %.80s: parameter %.60s needs the function constant %.60s (index %d), "
            "which is not given",
            w->signature.host_name, p->name, s.missing->constant.name, s.missing->constant.index);
    return err_set(e, EXIT_USAGE,
                   "kernel %.80s: parameter %.60s is switched by %.60s, whose value is unknown",
                   w->signature.host_name, p->name, p->gate);
}

/* Two parameters may share an index as long as one of them is always off. */
static bool check_indices(const msl_signature *s, err *e) {
    for (size_t i = 0; i < s->count; i++)
        for (size_t k = 0; k < i; k++)
            if (s->params[i].index >= 0 && s->params[i].kind == s->params[k].kind &&
                s->params[i].index == s->params[k].index)
                return err_set(e, EXIT_USAGE, "kernel %.80s: %.50s and %.50s are both %s %d",
                               s->host_name, s->params[k].name, s->params[i].name,
                               param_spell_kind(s->params[i].kind), s->params[i].index);
    return true;
}

bool msl_specialise(const msl_unit *u, const char *host_name, const msl_constant_text *constants,
                    size_t count, msl_signature *out, err *e) {
    const entry *w = entry_find(u, host_name, e);
    if (!w)
        return false;
    *out = w->signature;
    out->count = 0;
    for (size_t i = 0; i < w->signature.count; i++) {
        bool on;
        if (!entry_is_param_on(u, w, &w->signature.params[i], constants, count, &on, e))
            return false;
        if (on)
            out->params[out->count++] = w->signature.params[i];
    }
    return check_indices(out, e);
}

static const msl_param *find_param(const msl_signature *s, msl_kind kind, int index) {
    for (size_t i = 0; i < s->count; i++)
        if (s->params[i].kind == kind && s->params[i].index == index)
            return &s->params[i];
    return NULL;
}

/* The alignment of this parameter's address. Of a struct only the size is known. */
static uint32_t param_alignment(const msl_param *p) {
    char pointee[sizeof p->type];
    uint32_t alignment;
    type_get_pointee(p->type, pointee, sizeof pointee);
    if (type_size(pointee, &alignment) == p->value_bytes && alignment)
        return alignment;
    uint32_t low = p->value_bytes & (0 - p->value_bytes);
    return !low ? 1 : low < 4 ? low : 4;
}

static bool check_binding(const msl_signature *s, const msl_param *p, const binding *b, err *e) {
    if (b->kind == BIND_NONE)
        return err_set(e, EXIT_WRONG, "kernel %.80s: buffer %d (%.40s, %.40s) is not bound",
                       s->host_name, p->index, p->name, p->type);
    if (b->kind == BIND_BYTES) {
        bool fits =
            p->is_reference ? b->inline_bytes == p->value_bytes : b->inline_bytes >= p->value_bytes;
        if (fits || !p->value_bytes)
            return true;
        return err_set(e, EXIT_WRONG,
                       "kernel %.80s: buffer %d (%.40s, %.40s) is given %u bytes and takes %u",
                       s->host_name, p->index, p->name, p->type, b->inline_bytes, p->value_bytes);
    }
    if (p->is_const && b->access & ACCESS_WRITE)
        return err_set(
            e, EXIT_WRONG,
            "kernel %.80s: buffer %d (%.40s, %.40s) is bound for writing and is const in "
            "the kernel",
            s->host_name, p->index, p->name, p->type);
    if (p->is_reference && b->at.bytes < p->value_bytes)
        return err_set(e, EXIT_WRONG,
                       "kernel %.80s: buffer %d (%.40s, %.40s) is bound to %zu bytes and takes %u",
                       s->host_name, p->index, p->name, p->type, b->at.bytes, p->value_bytes);
    uint32_t alignment = param_alignment(p);
    if (b->at.offset % alignment)
        return err_set(
            e, EXIT_WRONG,
            "kernel %.80s: buffer %d (%.40s, %.40s) is bound at offset %zu, which is not "
            "a multiple of %u",
            s->host_name, p->index, p->name, p->type, b->at.offset, alignment);
    return true;
}

static bool check_threadgroup_memory(const msl_signature *s, const launch *l, uint32_t limit,
                                     err *e) {
    uint64_t total = 0;
    for (int i = 0; i < LAUNCH_THREADGROUPS; i++) {
        const msl_param *p = find_param(s, MSL_THREADGROUP, i);
        uint32_t bytes = l->threadgroup_bytes[i];
        if (p && !bytes)
            return err_set(e, EXIT_WRONG,
                           "kernel %.80s: threadgroup %d (%.40s, %.40s) is given no memory",
                           s->host_name, i, p->name, p->type);
        if (!p && bytes)
            return err_set(e, EXIT_WRONG,
                           "kernel %.80s: threadgroup %d is given %u bytes, but the kernel has no "
                           "such parameter",
                           s->host_name, i, bytes);
        if (p && bytes < p->value_bytes)
            return err_set(e, EXIT_WRONG,
                           "kernel %.80s: threadgroup %d (%.40s, %.40s) is given %u bytes and one "
                           "element has %u",
                           s->host_name, i, p->name, p->type, bytes, p->value_bytes);
        total += bytes;
    }
    return total <= limit ||
           err_set(e, EXIT_WRONG,
                   "kernel %.80s: the launch asks for %llu bytes of threadgroup memory, and the "
                   "device has %u",
                   s->host_name, (unsigned long long)total, limit);
}

static bool check_geometry(const msl_signature *s, const launch *l, uint32_t max_group, err *e) {
    size3 grid = l->grid, group = l->group;
    if (!grid.x || !grid.y || !grid.z)
        return err_set(e, EXIT_WRONG, "kernel %.80s: the grid is empty: %u x %u x %u", s->host_name,
                       grid.x, grid.y, grid.z);
    if (!group.x || !group.y || !group.z)
        return err_set(e, EXIT_WRONG, "kernel %.80s: the threadgroup is empty: %u x %u x %u",
                       s->host_name, group.x, group.y, group.z);
    /* Three factors of 32 bits overflow 64: look at the first two before the third. */
    uint64_t plane = (uint64_t)group.x * group.y;
    uint64_t threads = plane > UINT32_MAX ? UINT64_MAX : plane * group.z;
    if (threads > max_group)
        return err_set(e, EXIT_WRONG,
                       "kernel %.80s: a threadgroup of %u x %u x %u is larger than the %u threads "
                       "that are possible",
                       s->host_name, group.x, group.y, group.z, max_group);
    if (s->max_total_threads && threads > s->max_total_threads)
        return err_set(e, EXIT_WRONG,
                       "kernel %.80s: a threadgroup of %u x %u x %u is larger than "
                       "max_total_threads_per_threadgroup(%u) of the kernel",
                       s->host_name, group.x, group.y, group.z, s->max_total_threads);
    return true;
}

bool msl_check_launch(const msl_signature *s, const launch *l, uint32_t max_group_threads,
                      uint32_t max_threadgroup_bytes, err *e) {
    for (size_t i = 0; i < s->count; i++)
        if (s->params[i].kind == MSL_BUFFER &&
            !check_binding(s, &s->params[i], &l->args[s->params[i].index], e))
            return false;
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        if (l->args[i].kind != BIND_NONE && !find_param(s, MSL_BUFFER, i))
            return err_set(e, EXIT_WRONG,
                           "kernel %.80s: buffer %d is bound, but the kernel has no such parameter",
                           s->host_name, i);
    return check_threadgroup_memory(s, l, max_threadgroup_bytes, e) &&
           check_geometry(s, l, max_group_threads, e);
}
