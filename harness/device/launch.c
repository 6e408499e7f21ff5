#include "launch.h"

#include <assert.h>
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
