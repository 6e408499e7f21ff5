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
 * Graphs are kept with the tape and go with it, or with the next launch that is recorded on it.
 *
 * A ticket's id is a play: the events of one launch of a graph. The time on the GPU is between two
 * events inside of the graph, so that what the CPU does meanwhile is not in it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "harness/base/array.h"
#include "harness/base/os.h"

/* What launches of a graph before the one at hand write: the hull of all parts of a buffer. */
typedef struct {
    const buffer *buffer;
    size_t first, end;
    bool is_appended; /* nothing else is written than rows of newest tokens */
} cuda_written;

/* A launch as the driver takes it. */
typedef struct {
    CUfunction function;
    uint32_t grid[3], group[3];
    uint32_t dynamic_bytes;
    cuda_arguments arguments;
} cuda_launch;

/* A part of a tape, instantiated once. */
typedef struct cuda_graph {
    struct cuda_graph *next;
    size_t first, count;
    uint64_t version; /* of the tape that `made` is known to be; 0: not known */
    play_order order;
    bool is_sampled; /* with events around each launch, one after the other */
    CUgraph graph;
    CUgraphExec made;
    cuda_launch *launches; /* as they are in `made` */
    bool *barriers;        /* as the tape had them */
    CUgraphNode *kernels, *events;
    CUevent *marks; /* its own events: (start, end), or those of each launch */
    size_t event_count;
    CUevent ends[2];       /* what the nodes of start and end record now: a play's, or its own */
    CUdeviceptr inline_at; /* 0: nothing needs it */
    uint8_t *inline_bytes; /* what is there */
    cuda_written *written; /* by the launches encoded so far */
    size_t written_count, written_capacity;
} cuda_graph;

/* Launches: function, grid, and one argument (abi.h) ------------------------------------------- */

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

/* inline_at: where the launch's small constants are in device memory; used for those that do not fit
 * their slot, *uses_inline says whether there are any. */
static bool encode_launch(cuda_device *c, const launch *l, CUdeviceptr inline_at, cuda_launch *out,
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

static CUDA_KERNEL_NODE_PARAMS describe_launch(cuda_launch *l, void *params[1]) {
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

/* Graphs ---------------------------------------------------------------------------------------- */

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
    if (!encode_launch(c, l, find_inline(g, i), out, &uses_inline, e))
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
    return CUDA_THEN(
        result, c->driver->graph_add_event(&g->events[i], g->graph, after, count, g->marks[i]));
}

static CUresult add_kernel(cuda_device *c, cuda_graph *g, size_t i, const CUgraphNode *after) {
    void *params[1];
    CUDA_KERNEL_NODE_PARAMS what = describe_launch(&g->launches[i], params);
    return c->driver->graph_add_kernel(&g->kernels[i], g->graph, after, after ? 1 : 0, &what);
}

/* Launch i, set up while launch i - 1 runs. */
static CUresult add_early(cuda_device *c, cuda_graph *g, size_t i) {
    const CUgraphEdgeData edge = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                  .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    return CUDA_THEN(
        add_kernel(c, g, i, NULL),
        c->driver->graph_add_edges(g->graph, &g->kernels[i - 1], &g->kernels[i], &edge, 1));
}

/* Each launch between events of its own, one after the other. */
static CUresult add_sampled(cuda_device *c, cuda_graph *g) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < g->count && result == CUDA_SUCCESS; i++) {
        result = add_event(c, g, i ? &g->events[2 * i - 1] : NULL, i ? 1 : 0);
        result = CUDA_THEN(result, add_kernel(c, g, i, &g->events[2 * i]));
        result = CUDA_THEN(result, add_event(c, g, &g->kernels[i], 1));
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
    *g = (cuda_graph){.first = first,
                      .count = count,
                      .version = t->version,
                      .order = t->order,
                      .is_sampled = is_sampled};
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
        result = CUDA_THEN(result, c->driver->graph_instantiate(&g->made, g->graph, 0));
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
        CUDA_KERNEL_NODE_PARAMS what = describe_launch(&g->launches[i], params);
        if (!cuda_ok(c->driver, c->driver->graph_set_kernel(g->made, g->kernels[i], &what), e,
                     "change the launch '%.60s'", t->launches[g->first + i].label))
            return false;
    }
    return true;
}

/* The part as the tape has it now: made if it is new, changed where the launches have changed. */
static cuda_graph *find_graph(cuda_device *c, tape *t, size_t first, size_t count, bool is_sampled,
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

/* Plays ----------------------------------------------------------------------------------------- */

struct cuda_play {
    CUevent start, end; /* recorded by the graph, with times */
    CUevent done;       /* recorded after the graph, to wait for */
    char name[128];     /* what is played, for messages */
    cuda_play *next;
};

static void free_play(const cuda_device *c, cuda_play *p) {
    CUevent events[] = {p->start, p->end, p->done};
    for (int i = 0; i < 3; i++)
        if (events[i])
            c->driver->event_free(events[i]);
    free(p);
}

void cuda_free_plays(cuda_device *c) {
    for (cuda_play *p = c->idle, *next; p; p = next) {
        next = p->next;
        free_play(c, p);
    }
    c->idle = NULL;
}

static cuda_play *take_play(cuda_device *c, err *e) {
    cuda_play *p = c->idle;
    if (p) {
        c->idle = p->next;
        return p;
    }
    p = array_new(1, sizeof *p);
    CUresult result = c->driver->event_new(&p->start, CU_EVENT_DEFAULT);
    result = CUDA_THEN(result, c->driver->event_new(&p->end, CU_EVENT_DEFAULT));
    result = CUDA_THEN(result, c->driver->event_new(&p->done, CU_EVENT_DISABLE_TIMING));
    if (cuda_ok(c->driver, result, e, "give events"))
        return p;
    free_play(c, p);
    return NULL;
}

static void give_play(cuda_device *c, cuda_play *p) {
    p->next = c->idle;
    c->idle = p;
}

/* What went wrong -------------------------------------------------------------------------------- */

static bool report_failure(const cuda_device *c, CUresult result, const char *name, err *e) {
    char text[120];
    cuda_describe(c->driver, result, text, sizeof text);
    switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        return err_set(e, EXIT_WRONG, "%.90s accessed memory that is not mapped: %s", name, text);
    case CUDA_ERROR_MISALIGNED_ADDRESS:
        return err_set(e, EXIT_WRONG, "%.90s made a misaligned access: %s", name, text);
    case CUDA_ERROR_LAUNCH_TIMEOUT:
        return err_set(e, EXIT_WRONG, "%.90s ran too long and was stopped: %s", name, text);
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return err_set(e, EXIT_WRONG, "%.90s crashed on the GPU: %s", name, text);
    default:
        return err_set(e, EXIT_CANNOT, "the GPU did not finish %.90s: %s", name, text);
    }
}

/* Playing --------------------------------------------------------------------------------------- */

/* The graph's two events are those of the play: one that is still in flight has its own. */
static CUresult mark_play(cuda_device *c, cuda_graph *g, cuda_play *p) {
    const CUevent ends[2] = {p->start, p->end};
    for (size_t i = 0; i < 2; i++) {
        if (g->ends[i] == ends[i])
            continue;
        CUresult result = c->driver->graph_set_event(g->made, g->events[i], ends[i]);
        if (result != CUDA_SUCCESS)
            return result;
        g->ends[i] = ends[i];
    }
    return CUDA_SUCCESS;
}

static CUresult launch_graph(cuda_device *c, const cuda_graph *g, CUevent done,
                             uint64_t *commit_at_ns) {
    *commit_at_ns = os_now_ns();
    CUresult result = c->driver->graph_launch(g->made, c->stream);
    return result == CUDA_SUCCESS ? c->driver->event_record(done, c->stream) : result;
}

bool cuda_submit(device *d, tape *t, size_t first, size_t count, ticket *out, err *e) {
    cuda_device *c = cuda_enter(d);
    cuda_graph *g = find_graph(c, t, first, count, false, e);
    cuda_play *p = g ? take_play(c, e) : NULL;
    if (!p)
        return false;
    tape_name_part(t, first, count, p->name, sizeof p->name);
    CUresult result = mark_play(c, g, p);
    if (result == CUDA_SUCCESS)
        result = launch_graph(c, g, p->done, &out->commit_at_ns);
    if (result != CUDA_SUCCESS) {
        report_failure(c, result, p->name, e);
        give_play(c, p);
        return false;
    }
    out->id = (uint64_t)(uintptr_t)p;
    return true;
}

/* Nanoseconds between two events; 0 if the driver does not tell. */
static uint64_t measure(const cuda_device *c, CUevent start, CUevent end) {
    float ms = 0;
    if (c->driver->event_elapsed(&ms, start, end) != CUDA_SUCCESS || !(ms > 0))
        return 0;
    return (uint64_t)((double)ms * 1e6 + 0.5);
}

bool cuda_wait(device *d, ticket *k, play_times *times, err *e) {
    cuda_device *c = cuda_enter(d);
    cuda_play *p = (cuda_play *)(uintptr_t)k->id;
    assert(p && "a ticket is waited for once");
    k->id = 0;
    CUresult result = c->driver->event_wait(p->done);
    uint64_t wall_ns = os_now_ns() - k->commit_at_ns;
    bool ok = result == CUDA_SUCCESS || report_failure(c, result, p->name, e);
    play_times_set(times, ok ? measure(c, p->start, p->end) : 0, wall_ns);
    give_play(c, p);
    return ok;
}

/* Samples --------------------------------------------------------------------------------------- */

bool cuda_play_sampled(device *d, tape *t, play_times *total, play_times *each, err *e) {
    cuda_device *c = cuda_enter(d);
    uint64_t begin = os_now_ns(), commit_at;
    cuda_graph *g = find_graph(c, t, 0, t->count, true, e);
    cuda_play *p = g ? take_play(c, e) : NULL;
    if (!p)
        return false;
    tape_name_part(t, 0, t->count, p->name, sizeof p->name);
    CUresult result = launch_graph(c, g, p->done, &commit_at);
    uint64_t encoded = os_now_ns();
    if (result == CUDA_SUCCESS)
        result = c->driver->event_wait(p->done);
    uint64_t wall_ns = os_now_ns() - commit_at;
    bool ok = result == CUDA_SUCCESS || report_failure(c, result, p->name, e);
    give_play(c, p);
    if (!ok)
        return false;
    *total = (play_times){.encode_ns = encoded - begin, .gpu_is_sampled = true};
    play_times_set(total, measure(c, g->marks[0], g->marks[2 * g->count - 1]), wall_ns);
    for (size_t i = 0; i < g->count; i++)
        each[i] = (play_times){.gpu_ns = measure(c, g->marks[2 * i], g->marks[2 * i + 1]),
                               .gpu_is_sampled = true};
    return true;
}
