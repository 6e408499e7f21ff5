/* graph_cuda: parts of tapes as graphs of the driver, instantiated once and launched many times.
 *
 * A serial part is a chain; a concurrent one has all launches between two barriers side by side. A
 * launch that follows a single other one is set up while that one still runs: every thread then
 * waits, before anything else but loads of weights, until the launch before it has ended and its
 * stores can be seen (shim/ptx/start.h), so the order is that of a plain chain. In
 * front and at the end an event takes the time on the GPU. What changes between plays (a small
 * constant, a binding, a grid) changes the instantiated graph where it stands; only another order of
 * launches or other barriers make a new one.
 *
 * Graphs are kept with the tape and go with it, or with the next launch that is recorded on it. */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "harness/base/array.h"

/* What a tape keeps. */
typedef struct {
    cuda_device *device;
    CUcontext context;
    cuda_graph *graphs;
} prepared;

static void free_graph(cuda_device *c, cuda_graph *g) {
    const cuda_driver *driver = c->driver;
    if (g->made)
        driver->graph_drop(g->made);
    if (g->graph)
        driver->graph_free(g->graph);
    for (size_t i = 0; i < g->event_count; i++)
        if (g->marks[i])
            driver->event_free(g->marks[i]);
    if (g->inline_at)
        driver->memory_free(g->inline_at);
    free(g->launches);
    free(g->barriers);
    free(g->kernels);
    free(g->events);
    free(g->marks);
    free(g->inline_bytes);
    free(g->written);
    free(g);
}

static void free_prepared(void *context) {
    prepared *p = context;
    p->device->driver->context_set(p->context);
    p->device->driver->stream_wait(p->device->stream); /* a play may still be in flight */
    for (cuda_graph *g = p->graphs, *next; g; g = next) {
        next = g->next;
        free_graph(p->device, g);
    }
    free(p);
}

/* Small constants that do not fit their slots --------------------------------------------------- */

static CUdeviceptr find_inline(const cuda_graph *g, size_t i) {
    return g->inline_at ? g->inline_at + i * LAUNCH_INLINE_BYTES : 0;
}

static bool encode(cuda_device *c, cuda_graph *g, const tape *t, size_t i, cuda_launch *out,
                   err *e) {
    bool uses_inline = false;
    const launch *l = &t->launches[g->first + i];
    if (!cuda_encode(c, l, find_inline(g, i), out, &uses_inline, e))
        return false;
    if (!uses_inline)
        return true;
    if (!g->inline_at) {
        if (!cuda_ok(c->driver,
                     c->driver->memory_new(&g->inline_at, g->count * LAUNCH_INLINE_BYTES), e,
                     "give memory for the constants of '%.60s'", l->label))
            return false;
        g->inline_bytes = array_new(g->count, LAUNCH_INLINE_BYTES);
        return encode(c, g, t, i, out, e);
    }
    /* In line with the plays: those in flight still find what they were given. */
    uint8_t *there = g->inline_bytes + i * LAUNCH_INLINE_BYTES;
    if (memcmp(there, l->inline_bytes, l->inline_used) == 0 && g->made)
        return true;
    memcpy(there, l->inline_bytes, l->inline_used);
    return cuda_ok(c->driver,
                   c->driver->copy_in(find_inline(g, i), there, LAUNCH_INLINE_BYTES, c->stream), e,
                   "take the constants of '%.60s'", l->label);
}

/* Loads before the launch before has ended ----------------------------------------------------- */

static cuda_written *find_written(cuda_graph *g, const buffer *b) {
    size_t i = 0;
    while (i < g->written_count && g->written[i].buffer != b)
        i++;
    return i < g->written_count ? &g->written[i] : NULL;
}

static void add_written(cuda_graph *g, slice at, bool is_appended) {
    cuda_written *w = find_written(g, at.buffer);
    if (!w) {
        w = ARRAY_ADD(g->written, g->written_count, g->written_capacity);
        *w = (cuda_written){at.buffer, at.offset, at.offset + at.bytes, is_appended};
    }
    w->is_appended = w->is_appended && is_appended;
    w->first = at.offset < w->first ? at.offset : w->first;
    w->end = at.offset + at.bytes > w->end ? at.offset + at.bytes : w->end;
}

/* Has no launch before this one in the graph written what its kernel loads early? A row that was
 * appended is the newest one, or older than the launch right before. */
static bool can_load_early(cuda_graph *g, const launch *l) {
    const cuda_pipeline *p = l->pipeline->impl;
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *b = &l->args[i];
        if (!((p->early | p->early_rows) >> i & 1) || b->kind != BIND_BUFFER)
            continue;
        const cuda_written *w = find_written(g, b->at.buffer);
        bool is_written = w && b->at.offset < w->end && w->first < b->at.offset + b->at.bytes,
             is_old = w && w->is_appended && !(p->early >> i & 1);
        if (b->access != ACCESS_READ || (is_written && !is_old))
            return false;
    }
    return p->has_early_loads;
}

/* Launches of a graph are encoded in their order, beginning with the first. */
static bool encode_next(cuda_device *c, cuda_graph *g, const tape *t, size_t i, cuda_launch *out,
                        err *e) {
    const launch *l = &t->launches[g->first + i];
    if (i == 0)
        g->written_count = 0;
    if (!encode(c, g, t, i, out, e))
        return false;
    if (can_load_early(g, l))
        out->arguments.flags |= CUDA_EARLY;
    for (int b = 0; b < LAUNCH_BUFFERS; b++)
        if (l->args[b].kind == BIND_BUFFER && l->args[b].access & ACCESS_WRITE)
            add_written(g, l->args[b].at, l->appends >> b & 1);
    return true;
}

/* Making one ------------------------------------------------------------------------------------ */

static CUresult add_event(cuda_device *c, cuda_graph *g, const CUgraphNode *after, size_t count) {
    size_t i = g->event_count;
    CUresult result = c->driver->event_new(&g->marks[i], CU_EVENT_DEFAULT);
    g->event_count += result == CUDA_SUCCESS;
    return result == CUDA_SUCCESS
               ? c->driver->graph_add_event(&g->events[i], g->graph, after, count, g->marks[i])
               : result;
}

static CUresult add_kernel(cuda_device *c, cuda_graph *g, size_t i, const CUgraphNode *after) {
    void *params[1];
    CUDA_KERNEL_NODE_PARAMS what = cuda_describe_launch(&g->launches[i], params);
    return c->driver->graph_add_kernel(&g->kernels[i], g->graph, after, after ? 1 : 0, &what);
}

/* Launch i, set up while launch i - 1 runs. */
static CUresult add_early(cuda_device *c, cuda_graph *g, size_t i) {
    const CUgraphEdgeData edge = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                  .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    CUresult result = add_kernel(c, g, i, NULL);
    return result == CUDA_SUCCESS
               ? c->driver->graph_add_edges(g->graph, &g->kernels[i - 1], &g->kernels[i], &edge, 1)
               : result;
}

/* Each launch between events of its own, one after the other. */
static CUresult add_sampled(cuda_device *c, cuda_graph *g) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < g->count && result == CUDA_SUCCESS; i++) {
        result = add_event(c, g, i ? &g->events[2 * i - 1] : NULL, i ? 1 : 0);
        if (result == CUDA_SUCCESS)
            result = add_kernel(c, g, i, &g->events[2 * i]);
        if (result == CUDA_SUCCESS)
            result = add_event(c, g, &g->kernels[i], 1);
    }
    return result;
}

/* `level` is the first launch since the last barrier: all since then follow `before`. */
static CUresult add_all(cuda_device *c, cuda_graph *g) {
    CUresult result = add_event(c, g, NULL, 0);
    CUgraphNode before = g->events[0];
    size_t level = 0;
    for (size_t i = 0; i < g->count && result == CUDA_SUCCESS; i++) {
        if (i > 0 && g->order == ORDER_SERIAL) {
            before = g->kernels[i - 1];
            level = i;
        } else if (i > level && g->barriers[i]) {
            if (i - level == 1)
                before = g->kernels[level];
            else
                result =
                    c->driver->graph_add_empty(&before, g->graph, &g->kernels[level], i - level);
            level = i;
        }
        if (result == CUDA_SUCCESS)
            result = c->overlaps && level == i && i > 0 && before == g->kernels[i - 1]
                         ? add_early(c, g, i)
                         : add_kernel(c, g, i, &before);
    }
    if (result != CUDA_SUCCESS)
        return result;
    return g->count ? add_event(c, g, &g->kernels[level], g->count - level)
                    : add_event(c, g, &before, 1);
}

static cuda_graph *make_graph(cuda_device *c, const tape *t, size_t first, size_t count,
                              bool is_sampled, err *e) {
    cuda_graph *g = array_new(1, sizeof *g);
    g->first = first;
    g->count = count;
    g->version = t->version;
    g->order = t->order;
    g->is_sampled = is_sampled;
    size_t events = is_sampled ? 2 * count : 2;
    g->launches = array_new(count, sizeof *g->launches);
    g->barriers = array_new(count, sizeof *g->barriers);
    g->kernels = array_new(count, sizeof *g->kernels);
    g->events = array_new(events, sizeof *g->events);
    g->marks = array_new(events, sizeof *g->marks);
    bool ok = cuda_ok(c->driver, c->driver->graph_new(&g->graph, 0), e, "make a graph");
    for (size_t i = 0; ok && i < count; i++) {
        g->barriers[i] = t->launches[first + i].barrier_before;
        ok = encode_next(c, g, t, i, &g->launches[i], e);
    }
    if (ok) {
        CUresult result = is_sampled ? add_sampled(c, g) : add_all(c, g);
        if (result == CUDA_SUCCESS)
            result = c->driver->graph_instantiate(&g->made, g->graph, 0);
        ok = cuda_ok(c->driver, result, e, "make a graph of %zu launches", count);
    }
    if (ok)
        return g;
    free_graph(c, g);
    return NULL;
}

/* Keeping it as the tape is --------------------------------------------------------------------- */

static bool has_same_shape(const cuda_graph *g, const tape *t) {
    for (size_t i = 0; i < g->count; i++)
        if (g->barriers[i] != t->launches[g->first + i].barrier_before)
            return false;
    return g->order == t->order;
}

static bool update(cuda_device *c, cuda_graph *g, const tape *t, err *e) {
    for (size_t i = 0; i < g->count; i++) {
        cuda_launch now;
        if (!encode_next(c, g, t, i, &now, e))
            return false;
        if (memcmp(&now, &g->launches[i], sizeof now) == 0)
            continue;
        g->launches[i] = now;
        void *params[1];
        CUDA_KERNEL_NODE_PARAMS what = cuda_describe_launch(&g->launches[i], params);
        if (!cuda_ok(c->driver, c->driver->graph_set_kernel(g->made, g->kernels[i], &what), e,
                     "change the launch '%.60s'", t->launches[g->first + i].label))
            return false;
    }
    return true;
}

cuda_graph *cuda_find_graph(cuda_device *c, tape *t, size_t first, size_t count, bool is_sampled,
                            err *e) {
    prepared *p = t->prepared;
    if (!p) {
        p = array_new(1, sizeof *p);
        p->device = c;
        p->context = c->context;
        t->prepared = p;
        t->free_prepared = free_prepared;
    }
    cuda_graph **link = &p->graphs;
    while (*link && ((*link)->first != first || (*link)->count != count ||
                     (*link)->is_sampled != is_sampled))
        link = &(*link)->next;
    cuda_graph *found = *link;
    if (found && t->version != 0 && found->version == t->version)
        return found;
    if (found && has_same_shape(found, t) && update(c, found, t, e)) {
        found->version = t->version;
        return found;
    }
    if (found) { /* another shape, or left half changed by an error */
        *link = found->next;
        bool is_wrong = has_same_shape(found, t);
        c->driver->stream_wait(c->stream);
        free_graph(c, found);
        if (is_wrong && !c->overlaps)
            return NULL;
    }
    cuda_graph *made = make_graph(c, t, first, count, is_sampled, e);
    if (!made && c->overlaps) { /* a driver that does not take such edges after all */
        c->overlaps = false;
        made = make_graph(c, t, first, count, is_sampled, e);
        c->overlaps = !made; /* something else is wrong */
    }
    if (made) {
        made->next = p->graphs;
        p->graphs = made;
    }
    return made;
}
