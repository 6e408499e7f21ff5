/* launch_cuda: a launch as the driver takes it: function, grid, and one argument (abi.h). */
#include <string.h>

#include "cuda.h"

enum { THREADGROUP_UNIT = 16 }; /* threadgroup memory is given out in such pieces */

bool cuda_is_value(const msl_param *p) {
    uint32_t n = p->value_bytes;
    return p->is_reference && p->is_const && (n == 1 || n == 2 || n == 4 || n == CUDA_VALUE_BYTES);
}

static bool encode_buffer(cuda_device *c, const launch *l, const msl_param *p,
                          CUdeviceptr inline_at, cuda_arguments *out, bool *uses_inline, err *e) {
    const binding *b = &l->args[p->index];
    CUdeviceptr at = 0;
    if (b->kind == BIND_BUFFER) {
        if (!cuda_find_address(c, b->at.buffer, &at, e))
            return false;
        at += b->at.buffer->base + b->at.offset;
    } else if (b->kind == BIND_BYTES && cuda_is_value(p)) {
        memcpy(&out->slot[p->index], l->inline_bytes + b->inline_at, p->value_bytes);
        out->values |= 1u << p->index;
        return true;
    } else if (b->kind == BIND_BYTES) {
        *uses_inline = true;
        at = inline_at + b->inline_at;
    }
    memcpy(&out->slot[p->index], &at, sizeof at);
    return true;
}

static void encode_memory(const launch *l, cuda_launch *out) {
    const cuda_pipeline *own = l->pipeline->impl;
    uint32_t used = own->bulk_bytes;
    for (int i = 0; i < LAUNCH_THREADGROUPS; i++) {
        out->arguments.dynamic_at[i] = used;
        used +=
            (l->threadgroup_bytes[i] + THREADGROUP_UNIT - 1) / THREADGROUP_UNIT * THREADGROUP_UNIT;
    }
    out->dynamic_bytes = used;
}

static bool encode_grid(const launch *l, cuda_launch *out, err *e) {
    const size3 groups = launch_get_groups(l);
    const uint32_t grid[3] = {l->grid.x, l->grid.y, l->grid.z};
    const uint32_t count[3] = {groups.x, groups.y, groups.z};
    const uint32_t group[3] = {l->group.x, l->group.y, l->group.z};
    cuda_arguments *a = &out->arguments;
    for (int i = 0; i < 3; i++) {
        a->grid_groups[i] = out->grid[i] = count[i];
        out->group[i] = group[i];
        a->grid_threads[i] = l->grid_is_threads ? grid[i] : count[i] * group[i];
        if (l->grid_is_threads && grid[i] % group[i] != 0)
            a->flags |= CUDA_EDGES;
    }
    const cuda_pipeline *own = l->pipeline->impl;
    if (count[0] % own->cluster != 0)
        return err_set(e, EXIT_CANNOT,
                       "kernel '%.80s' is launched with %u threadgroups along x; on this device "
                       "that must be a multiple of %u",
                       l->pipeline->kernel, count[0], own->cluster);
    if (count[1] <= CUDA_MOST_GROUPS && count[2] <= CUDA_MOST_GROUPS)
        return true;
    uint64_t all = (uint64_t)count[0] * count[1];
    if (all > INT32_MAX || all * count[2] > INT32_MAX)
        return err_set(e, EXIT_CANNOT,
                       "kernel '%.60s' is launched with %u x %u x %u threadgroups, more than an "
                       "NVIDIA GPU counts",
                       l->pipeline->kernel, count[0], count[1], count[2]);
    a->flags |= CUDA_LINEAR;
    out->grid[0] = (uint32_t)(all * count[2]);
    out->grid[1] = out->grid[2] = 1;
    return true;
}

static bool choose_function(const launch *l, cuda_launch *out, err *e) {
    const pipeline *p = l->pipeline;
    const cuda_pipeline *own = p->impl;
    uint32_t most = p->device->facts.max_threadgroup_bytes;
    uint32_t need = p->threadgroup_bytes + out->dynamic_bytes - own->bulk_bytes;
    if (need > most)
        return err_set(e, EXIT_WRONG,
                       "kernel '%.80s' needs %u bytes of threadgroup memory; there are %u",
                       p->kernel, need, most);
    uint32_t threads = out->group[0] * out->group[1] * out->group[2];
    int which = threads > own->most_threads[0] && own->function[1] ? 1 : 0;
    out->function = own->function[which];
    return threads <= own->most_threads[which] ||
           err_set(e, EXIT_CANNOT, "kernel '%.80s' can have %u threads per threadgroup, not %u",
                   p->kernel, own->most_threads[which], threads);
}

bool cuda_encode(cuda_device *c, const launch *l, CUdeviceptr inline_at, cuda_launch *out,
                 bool *uses_inline, err *e) {
    memset(out, 0, sizeof *out); /* with its padding: launches are compared as bytes */
    const msl_signature *s = &l->pipeline->signature;
    for (size_t i = 0; i < s->count; i++)
        if (s->params[i].kind == MSL_BUFFER &&
            !encode_buffer(c, l, &s->params[i], inline_at, &out->arguments, uses_inline, e))
            return false;
    encode_memory(l, out);
    return encode_grid(l, out, e) && choose_function(l, out, e);
}

CUDA_KERNEL_NODE_PARAMS cuda_describe_launch(cuda_launch *l, void *params[1]) {
    params[0] = &l->arguments;
    return (CUDA_KERNEL_NODE_PARAMS){.func = l->function,
                                     .gridDimX = l->grid[0],
                                     .gridDimY = l->grid[1],
                                     .gridDimZ = l->grid[2],
                                     .blockDimX = l->group[0],
                                     .blockDimY = l->group[1],
                                     .blockDimZ = l->group[2],
                                     .sharedMemBytes = l->dynamic_bytes,
                                     .kernelParams = params};
}
