#include "launch.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device.h"

param param_u32(uint32_t value) {
    return (param){.bits = value};
}

param param_f32(float value) {
    param p = {.bits = 0};
    memcpy(&p.bits, &value, sizeof p.bits);
    return p;
}

param param_at(slice at) {
    assert(at.buffer && at.bytes == 4);
    return (param){.at = at};
}

slice slice_whole(buffer *b) {
    return (slice){b, 0, b->bytes};
}

slice slice_part(buffer *b, size_t offset, size_t bytes) {
    assert(offset <= b->bytes && bytes <= b->bytes - offset);
    return (slice){b, offset, bytes};
}

void launch_bind(launch *l, int index, slice at, access_mode access, elem type) {
    assert(index >= 0 && index < LAUNCH_BUFFERS && at.buffer && access != ACCESS_NONE);
    assert(at.offset <= at.buffer->bytes && at.bytes <= at.buffer->bytes - at.offset);
    l->args[index] = (binding){.kind = BIND_BUFFER, .access = access, .type = type, .at = at};
}

void launch_set_bytes(launch *l, int index, const void *data, size_t bytes) {
    assert(index >= 0 && index < LAUNCH_BUFFERS && bytes > 0);
    size_t at = ((size_t)l->inline_used + 15) / 16 * 16; /* the alignment of every MSL type */
    assert(at + bytes <= LAUNCH_INLINE_BYTES);
    memcpy(l->inline_bytes + at, data, bytes);
    l->inline_used = (uint16_t)(at + bytes);
    l->args[index] = (binding){.kind = BIND_BYTES,
                               .access = ACCESS_READ,
                               .type = ELEM_U8,
                               .inline_at = (uint16_t)at,
                               .inline_bytes = (uint16_t)bytes};
}

void launch_set_u32(launch *l, int index, uint32_t value) {
    launch_set_bytes(l, index, &value, sizeof value);
}

void launch_set_f32(launch *l, int index, float value) {
    launch_set_bytes(l, index, &value, sizeof value);
    l->args[index].type = ELEM_F32;
}

void launch_set_param(launch *l, int index, param p, elem type) {
    assert(elem_get_bytes(type) == 4);
    if (p.at.buffer) {
        launch_bind(l, index, p.at, ACCESS_READ, type);
        return;
    }
    launch_set_bytes(l, index, &p.bits, sizeof p.bits);
    l->args[index].type = type;
}

void launch_set_groups(launch *l, size3 groups, size3 group) {
    l->grid = groups;
    l->group = group;
    l->grid_is_threads = false;
}

void launch_set_threads(launch *l, size3 threads, size3 group) {
    l->grid = threads;
    l->group = group;
    l->grid_is_threads = true;
}

void launch_set_threads_rounded(launch *l, uint32_t count, uint32_t group) {
    uint32_t groups = count / group + (count % group != 0);
    launch_set_groups(l, (size3){groups, 1, 1}, (size3){group, 1, 1});
}

static uint32_t count_groups(const launch *l, uint32_t grid, uint32_t group) {
    if (!l->grid_is_threads)
        return grid;
    return group == 0 ? 0 : grid / group + (grid % group != 0);
}

size3 launch_get_groups(const launch *l) {
    return (size3){count_groups(l, l->grid.x, l->group.x), count_groups(l, l->grid.y, l->group.y),
                   count_groups(l, l->grid.z, l->group.z)};
}

uint32_t oracle_u32(const oracle_io *io, int index) {
    assert(io->in[index] && io->bytes[index] >= 4);
    uint32_t value;
    memcpy(&value, io->in[index], sizeof value);
    return value;
}

float oracle_f32(const oracle_io *io, int index) {
    assert(io->in[index] && io->bytes[index] >= 4);
    float value;
    memcpy(&value, io->in[index], sizeof value);
    return value;
}

/* Does it fit its kernel? ---------------------------------------------------------------------- */

static const msl_param *find_param(const msl_signature *s, msl_kind kind, int index) {
    for (size_t i = 0; i < s->count; i++)
        if (s->params[i].kind == kind && s->params[i].index == index)
            return &s->params[i];
    return NULL;
}

#define REFUSE(...) err_set(e, EXIT_WRONG, "kernel %.80s: " __VA_ARGS__)

/* "kernel NAME: buffer 3 (x, const float *) ..." */
static bool refuse(const msl_signature *s, const msl_param *p, err *e, const char *format, ...) {
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return REFUSE("%s %d (%.40s, %.40s) %s", s->host_name,
                  p->kind == MSL_BUFFER ? "buffer" : "threadgroup", p->index, p->name, p->type,
                  text);
}

static bool check_binding(const msl_signature *s, const msl_param *p, const binding *b, err *e) {
    const uint32_t alignment = msl_get_alignment(p);
    if (b->kind == BIND_NONE)
        return refuse(s, p, e, "is not bound");
    if (b->kind == BIND_BYTES) {
        bool fits =
            p->is_reference ? b->inline_bytes == p->value_bytes : b->inline_bytes >= p->value_bytes;
        return fits || !p->value_bytes ||
               refuse(s, p, e, "is given %u bytes and takes %u", b->inline_bytes, p->value_bytes);
    }
    if (p->is_const && b->access & ACCESS_WRITE)
        return refuse(s, p, e, "is bound for writing and is const in the kernel");
    if (p->is_reference && b->at.bytes < p->value_bytes)
        return refuse(s, p, e, "is bound to %zu bytes and takes %u", b->at.bytes, p->value_bytes);
    return b->at.offset % alignment == 0 ||
           refuse(s, p, e, "is bound at offset %zu, which is not a multiple of %u", b->at.offset,
                  alignment);
}

static bool check_threadgroup_memory(const msl_signature *s, const launch *l, uint32_t limit,
                                     err *e) {
    uint64_t total = 0;
    for (int i = 0; i < LAUNCH_THREADGROUPS; i++) {
        const msl_param *p = find_param(s, MSL_THREADGROUP, i);
        uint32_t bytes = l->threadgroup_bytes[i];
        if (p && !bytes)
            return refuse(s, p, e, "is given no memory");
        if (!p && bytes)
            return REFUSE("threadgroup %d is given %u bytes, but the kernel has no such parameter",
                          s->host_name, i, bytes);
        if (p && bytes < p->value_bytes)
            return refuse(s, p, e, "is given %u bytes and one element has %u", bytes,
                          p->value_bytes);
        total += bytes;
    }
    return total <= limit ||
           REFUSE("the launch asks for %llu bytes of threadgroup memory, and the device has %u",
                  s->host_name, (unsigned long long)total, limit);
}

static bool check_geometry(const msl_signature *s, const launch *l, uint32_t max_group, err *e) {
    size3 grid = l->grid, group = l->group;
    if (!grid.x || !grid.y || !grid.z)
        return REFUSE("the grid is empty: %u x %u x %u", s->host_name, grid.x, grid.y, grid.z);
    if (!group.x || !group.y || !group.z)
        return REFUSE("the threadgroup is empty: %u x %u x %u", s->host_name, group.x, group.y,
                      group.z);
    /* Three factors of 32 bits overflow 64: look at the first two before the third. */
    uint64_t plane = (uint64_t)group.x * group.y;
    uint64_t threads = plane > UINT32_MAX ? UINT64_MAX : plane * group.z;
    if (threads > max_group)
        return REFUSE(
            "a threadgroup of %u x %u x %u is larger than the %u threads that are possible",
            s->host_name, group.x, group.y, group.z, max_group);
    if (s->max_total_threads && threads > s->max_total_threads)
        return REFUSE("a threadgroup of %u x %u x %u is larger than "
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
            return REFUSE("buffer %d is bound, but the kernel has no such parameter", s->host_name,
                          i);
    return check_threadgroup_memory(s, l, max_threadgroup_bytes, e) &&
           check_geometry(s, l, max_group_threads, e);
}
