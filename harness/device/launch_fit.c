#include "launch_fit.h"

static const msl_param *find_param(const msl_signature *s, msl_kind kind, int index) {
    for (size_t i = 0; i < s->count; i++)
        if (s->params[i].kind == kind && s->params[i].index == index)
            return &s->params[i];
    return NULL;
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
    uint32_t alignment = msl_get_alignment(p);
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

bool launch_check_fit(const launch *l, const msl_signature *s, uint32_t max_group_threads,
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
