/* driver: the calls of NVIDIA's driver: the device, its memory and modules; graphs, how they are made, changed
 * and run; streams, copies and events. A stream is a queue; what is in it runs when something waits for it, so
 * that a caller that forgets to wait sees nothing done. What a call must have taken by the time it returns
 * (bytes of the caller, parameters of a launch) is copied then, and nothing later is. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "double.h"
#include "harness/base/os.h"

/* The calls, as driver.h has them. */
#define DECLARE(field, symbol, arguments) CUresult symbol arguments;
CUDA_CALLS(DECLARE)
CUDA_NEWER_CALLS(DECLARE)
#undef DECLARE

enum {
    USUAL_SHARED_BYTES = 49152, /* of a block, static and dynamic */
    MOST_SHARED_BYTES = 232448, /* at most, where MAX_DYNAMIC_BYTES is set */
    MAX_DYNAMIC_BYTES = 8,      /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
};

/* Everything that a call here can be given. */
typedef struct memory {
    struct memory *next;
    uint8_t *at;
    size_t bytes;
} memory;

struct CUmod_st {
    ptx_program *program;
};
struct CUfunc_st {
    CUmodule module;
    size_t max_dynamic_bytes;
};
struct CUevent_st {
    uint64_t at_ns;
    unsigned pending; /* records in queues */
    CUstream stream;  /* of the last one */
};

typedef enum { NODE_KERNEL, NODE_EVENT, NODE_EMPTY } node_kind;

typedef struct {
    ptx_program *program;
    uint32_t grid[3], block[3], dynamic_bytes;
    uint8_t *params;
} kernel;

struct CUgraphNode_st {
    node_kind kind;
    kernel kernel;
    CUevent event;
    CUgraphNode *after;
    size_t after_count, index;
};
struct CUgraph_st {
    CUgraphNode *nodes;
    size_t count;
};
struct CUgraphExec_st {
    struct CUgraphNode_st *nodes;
    size_t count;
};

typedef enum {
    TASK_COPY_IN,
    TASK_COPY_OUT,
    TASK_FILL,
    TASK_GRAPH,
    TASK_RECORD,
    TASK_AWAIT
} task_kind;

typedef struct task {
    struct task *next;
    task_kind kind;
    void *to, *data;
    size_t bytes;
    uint16_t word;
    CUevent event;
    CUgraphExec graph;
} task;

struct CUstream_st {
    task *first, **last;
};

static memory *memories;
static CUresult fault; /* of a kernel: it stays until the context goes */
static int references;

static void run_all(void);

/* Memory ---------------------------------------------------------------------------------------- */

bool double_has_memory(const void *at, size_t bytes) {
    for (memory *m = memories; m; m = m->next)
        if ((const uint8_t *)at >= m->at && bytes <= m->bytes &&
            (size_t)((const uint8_t *)at - m->at) <= m->bytes - bytes)
            return true;
    return false;
}

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes) {
    memory *m = calloc(1, sizeof *m);
    void *room = NULL;
    assert(m);
    if (fault || bytes == 0 || posix_memalign(&room, 512, bytes + 512) != 0) {
        free(m);
        return fault ? fault : CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(room, 0x5A, bytes);
    *m = (memory){memories, room, bytes};
    memories = m;
    *at = (CUdeviceptr)(uintptr_t)room;
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned int flags) {
    (void)flags;
    *at = malloc(bytes);
    return *at ? fault : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *at) {
    free(at);
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr at) {
    run_all();
    for (memory **m = &memories; *m; m = &(*m)->next)
        if ((*m)->at == (uint8_t *)(uintptr_t)at) {
            memory *gone = *m;
            *m = gone->next;
            free(gone->at);
            free(gone);
            return fault;
        }
    return 1;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    *available = *total = (size_t)4 << 30;
    return CUDA_SUCCESS;
}

/* Modules --------------------------------------------------------------------------------------- */

CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned int count, int *options,
                            void **values) {
    char log[256] = "";
    ptx_program *p = ptx_parse(image, log, sizeof log);
    char *to = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            to = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            size = (size_t)(uintptr_t)values[i];
    }
    if (!p) {
        if (to && size)
            snprintf(to, size, "%s", log);
        return CUDA_ERROR_INVALID_PTX;
    }
    *m = calloc(1, sizeof **m);
    assert(*m);
    (*m)->program = p;
    return fault;
}

/* Functions are as small as modules, and live as long. */
static struct CUfunc_st *functions[65536];
static size_t function_count;

CUresult cuModuleUnload(CUmodule m) {
    run_all();
    for (size_t i = 0; i < function_count; i++)
        if (functions[i] && functions[i]->module == m) {
            free(functions[i]);
            functions[i] = NULL;
        }
    ptx_free(m->program);
    free(m);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
    if (strcmp(name, m->program->entry) != 0)
        return 500;
    *f = calloc(1, sizeof **f);
    assert(*f && function_count < sizeof functions / sizeof *functions);
    (*f)->module = m;
    size_t used = m->program->shared_bytes;
    (*f)->max_dynamic_bytes = used < USUAL_SHARED_BYTES ? USUAL_SHARED_BYTES - used : 0;
    functions[function_count++] = *f;
    return fault;
}

CUresult cuFuncGetAttribute(int *value, int what, CUfunction f) {
    *value = what == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
             : what == MAX_DYNAMIC_BYTES                     ? (int)f->max_dynamic_bytes
                                         : (int)f->module->program->shared_bytes;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, int what, int value) {
    if (what != MAX_DYNAMIC_BYTES || value < 0 ||
        f->module->program->shared_bytes + (size_t)value > MOST_SHARED_BYTES)
        return 1;
    f->max_dynamic_bytes = (size_t)value;
    return fault;
}

/* The device ------------------------------------------------------------------------------------ */

CUresult cuInit(unsigned int flags) {
    (void)flags;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult what, const char **name) {
    *name = what == CUDA_ERROR_ILLEGAL_ADDRESS       ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : what == CUDA_ERROR_MISALIGNED_ADDRESS  ? "CUDA_ERROR_MISALIGNED_ADDRESS"
            : what == CUDA_ERROR_LAUNCH_TIMEOUT      ? "CUDA_ERROR_LAUNCH_TIMEOUT"
            : what == CUDA_ERROR_LAUNCH_FAILED       ? "CUDA_ERROR_LAUNCH_FAILED"
            : what == CUDA_ERROR_INVALID_PTX         ? "CUDA_ERROR_INVALID_PTX"
            : what == CUDA_ERROR_OUT_OF_MEMORY       ? "CUDA_ERROR_OUT_OF_MEMORY"
            : what == CUDA_ERROR_ILLEGAL_INSTRUCTION ? "CUDA_ERROR_ILLEGAL_INSTRUCTION"
                                                     : "CUDA_ERROR_INVALID_VALUE";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult what, const char **text) {
    (void)what;
    *text = "as the double has it";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *d, int index) {
    *d = index;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice d) {
    (void)d;
    snprintf(name, (size_t)size, "CUDA double");
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice d) {
    (void)d;
    *bytes = (size_t)4 << 30;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int what, CUdevice d) {
    (void)d;
    *value = what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
             : what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
             : what == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK    ? 1024
             : what == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE            ? 1 << 20
             : what == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 6
             : what == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR ? 233472
             : what == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN    ? 232448
                                                                    : 1;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
    (void)d;
    references++;
    *c = (CUcontext)&references;
    return fault;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
    (void)d;
    if (--references == 0)
        fault = CUDA_SUCCESS;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext c) {
    (void)c;
    return fault;
}

/* Graphs ---------------------------------------------------------------------------------------- */

static void run_node(const struct CUgraphNode_st *n) {
    if (n->kind == NODE_EVENT)
        n->event->at_ns = os_now_ns();
    if (n->kind != NODE_KERNEL)
        return;
    ptx_launch l = {.program = n->kernel.program,
                    .dynamic_bytes = n->kernel.dynamic_bytes,
                    .params = n->kernel.params};
    memcpy(l.grid, n->kernel.grid, sizeof l.grid);
    memcpy(l.block, n->kernel.block, sizeof l.block);
    fault = ptx_run(&l);
}

static void free_graph(CUgraphExec g) {
    for (size_t i = 0; i < g->count; i++)
        free(g->nodes[i].kernel.params);
    free(g->nodes);
    free(g);
}

/* Nodes stand in an order that keeps every dependency: they are added after what they wait for. */
static void run_graph(CUgraphExec g) {
    for (size_t i = 0; i < g->count && !fault; i++)
        run_node(&g->nodes[i]);
}

CUresult cuGraphCreate(CUgraph *g, unsigned int flags) {
    (void)flags;
    *g = calloc(1, sizeof **g);
    assert(*g);
    return fault;
}

static bool is_node(const struct CUgraph_st *g, const struct CUgraphNode_st *n) {
    return n && n->index < g->count && g->nodes[n->index] == n;
}

static CUresult add_node(CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t count,
                         node_kind kind) {
    for (size_t i = 0; i < count; i++)
        if (!is_node(g, after[i]))
            return 1;
    CUgraphNode n = calloc(1, sizeof *n);
    g->nodes = realloc(g->nodes, (g->count + 1) * sizeof *g->nodes);
    assert(n && g->nodes);
    n->kind = kind;
    n->index = g->count;
    n->after = malloc((count + 1) * sizeof *n->after);
    assert(n->after);
    if (count)
        memcpy(n->after, after, count * sizeof *after);
    n->after_count = count;
    g->nodes[g->count++] = n;
    *out = n;
    return fault;
}

static CUresult set_kernel(kernel *k, const CUDA_KERNEL_NODE_PARAMS *w) {
    const ptx_program *p = w->func->module->program;
    uint32_t threads = w->blockDimX * w->blockDimY * w->blockDimZ;
    bool is_right = w->gridDimX && w->gridDimY && w->gridDimZ && threads && threads <= 1024 &&
                    w->gridDimY <= 65535 && w->gridDimZ <= 65535 && w->gridDimX <= INT32_MAX &&
                    p->shared_bytes <= USUAL_SHARED_BYTES &&
                    w->sharedMemBytes <= w->func->max_dynamic_bytes;
    if (!is_right)
        return 1;
    uint8_t *params = NULL;
    if (posix_memalign((void **)&params, 256, p->param_bytes + 256) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(params, w->kernelParams[0], p->param_bytes);
    free(k->params);
    *k = (kernel){.program = w->func->module->program,
                  .grid = {w->gridDimX, w->gridDimY, w->gridDimZ},
                  .block = {w->blockDimX, w->blockDimY, w->blockDimZ},
                  .dynamic_bytes = w->sharedMemBytes,
                  .params = params};
    return fault;
}

CUresult cuGraphAddKernelNode(CUgraphNode *n, CUgraph g, const CUgraphNode *after, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS *what) {
    CUresult result = add_node(n, g, after, count, NODE_KERNEL);
    return result ? result : set_kernel(&(*n)->kernel, what);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *n, CUgraph g, const CUgraphNode *after,
                                   size_t count, CUevent event) {
    CUresult result = add_node(n, g, after, count, NODE_EVENT);
    if (!result)
        (*n)->event = event;
    return result;
}

CUresult cuGraphAddEmptyNode(CUgraphNode *n, CUgraph g, const CUgraphNode *after, size_t count) {
    return add_node(n, g, after, count, NODE_EMPTY);
}

/* Between kernels only, and only edges of the kind that the device makes. */
CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *data, size_t count) {
    for (size_t i = 0; i < count; i++) {
        CUgraphNode n = to[i];
        if (!is_node(g, from[i]) || !is_node(g, n) || from[i]->index >= n->index ||
            from[i]->kind != NODE_KERNEL || n->kind != NODE_KERNEL ||
            data[i].from_port != CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
            data[i].type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
            return 1;
        n->after = realloc(n->after, (n->after_count + 1) * sizeof *n->after);
        assert(n->after);
        n->after[n->after_count++] = from[i];
    }
    return fault;
}

static CUgraphExec copy_nodes(const struct CUgraphNode_st *const *from, size_t count) {
    CUgraphExec made = calloc(1, sizeof *made);
    assert(made);
    made->nodes = calloc(count + 1, sizeof *made->nodes);
    assert(made->nodes);
    made->count = count;
    for (size_t i = 0; i < count; i++) {
        made->nodes[i] = *from[i];
        if (from[i]->kind != NODE_KERNEL)
            continue;
        size_t bytes = from[i]->kernel.program->param_bytes;
        made->nodes[i].kernel.params = malloc(bytes + 256);
        assert(made->nodes[i].kernel.params);
        memcpy(made->nodes[i].kernel.params, from[i]->kernel.params, bytes);
    }
    return made;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph g, unsigned long long flags) {
    (void)flags;
    *made = copy_nodes((const struct CUgraphNode_st *const *)g->nodes, g->count);
    return fault;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec g, CUgraphNode n,
                                        const CUDA_KERNEL_NODE_PARAMS *what) {
    return n->kind == NODE_KERNEL ? set_kernel(&g->nodes[n->index].kernel, what) : 1;
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec g, CUgraphNode n, CUevent event) {
    if (n->kind != NODE_EVENT)
        return 1;
    g->nodes[n->index].event = event;
    return fault;
}

CUresult cuGraphExecDestroy(CUgraphExec g) {
    free_graph(g);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph g) {
    for (size_t i = 0; i < g->count; i++) {
        free(g->nodes[i]->kernel.params);
        free(g->nodes[i]->after);
        free(g->nodes[i]);
    }
    free(g->nodes);
    free(g);
    return CUDA_SUCCESS;
}

static CUgraphExec copy_graph(CUgraphExec g) {
    const struct CUgraphNode_st **from = malloc((g->count + 1) * sizeof *from);
    assert(from);
    for (size_t i = 0; i < g->count; i++)
        from[i] = &g->nodes[i];
    CUgraphExec made = copy_nodes(from, g->count);
    free(from);
    return made;
}

/* Queues ---------------------------------------------------------------------------------------- */

enum { STREAMS = 64 };
static CUstream streams[STREAMS];

static void record(CUevent e) {
    e->at_ns = os_now_ns();
    e->pending--;
}

static void run_stream(CUstream s, CUevent until);

static void run_task(task *t) {
    switch (t->kind) {
    case TASK_COPY_IN:
    case TASK_COPY_OUT: {
        const void *device = t->kind == TASK_COPY_IN ? t->to : t->data;
        if (!fault && !double_has_memory(device, t->bytes))
            fault = CUDA_ERROR_ILLEGAL_ADDRESS;
        if (!fault)
            memcpy(t->to, t->data, t->bytes);
        break;
    }
    case TASK_FILL:
        for (size_t i = 0; !fault && i < t->bytes; i += 2)
            memcpy((char *)t->to + i, &t->word, 2);
        break;
    case TASK_GRAPH:
        run_graph(t->graph);
        free_graph(t->graph);
        break;
    case TASK_RECORD:
        record(t->event);
        break;
    default:
        if (t->event->pending)
            run_stream(t->event->stream, t->event);
        break;
    }
    if (t->kind == TASK_COPY_IN)
        free(t->data);
    free(t);
}

/* until: an event whose record is enough; NULL: everything. */
static void run_stream(CUstream s, CUevent until) {
    while (s->first && !(until && !until->pending)) {
        task *t = s->first;
        s->first = t->next;
        if (!s->first)
            s->last = &s->first;
        run_task(t);
    }
}

static void run_all(void) {
    for (int i = 0; i < STREAMS; i++)
        if (streams[i])
            run_stream(streams[i], NULL);
}

static task *queue(CUstream s, task_kind kind) {
    task *t = calloc(1, sizeof *t);
    assert(t);
    t->kind = kind;
    *s->last = t;
    s->last = &t->next;
    return t;
}

CUresult cuStreamCreate(CUstream *s, unsigned int flags) {
    (void)flags;
    *s = calloc(1, sizeof **s);
    assert(*s);
    (*s)->last = &(*s)->first;
    for (int i = 0; i < STREAMS; i++)
        if (!streams[i]) {
            streams[i] = *s;
            return fault;
        }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamDestroy_v2(CUstream s) {
    run_stream(s, NULL);
    for (int i = 0; i < STREAMS; i++)
        if (streams[i] == s)
            streams[i] = NULL;
    free(s);
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream s) {
    run_stream(s, NULL);
    return fault;
}

CUresult cuCtxSynchronize(void) {
    run_all();
    return fault;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
    task *t = queue(s, TASK_COPY_IN);
    t->to = (void *)(uintptr_t)to;
    t->data = malloc(bytes + 1);
    assert(t->data);
    memcpy(t->data, from, bytes);
    t->bytes = bytes;
    return fault;
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
    task *t = queue(s, TASK_COPY_OUT);
    t->to = to;
    t->data = (void *)(uintptr_t)from;
    t->bytes = bytes;
    return fault;
}

CUresult cuMemsetD16Async(CUdeviceptr at, unsigned short word, size_t count, CUstream s) {
    if (at % 2 || !double_has_memory((void *)(uintptr_t)at, 2 * count))
        return 1;
    task *t = queue(s, TASK_FILL);
    t->to = (void *)(uintptr_t)at;
    t->bytes = 2 * count;
    t->word = word;
    return fault;
}

/* Events ---------------------------------------------------------------------------------------- */

CUresult cuEventCreate(CUevent *e, unsigned int flags) {
    (void)flags;
    *e = calloc(1, sizeof **e);
    assert(*e);
    return fault;
}

CUresult cuEventDestroy_v2(CUevent e) {
    if (e->pending)
        run_stream(e->stream, e);
    free(e);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent e, CUstream s) {
    queue(s, TASK_RECORD)->event = e;
    e->pending++;
    e->stream = s;
    return fault;
}

CUresult cuEventSynchronize(CUevent e) {
    if (e->pending)
        run_stream(e->stream, e);
    return fault;
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned int flags) {
    (void)flags;
    if (e->pending)
        queue(s, TASK_AWAIT)->event = e;
    return fault;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    if (!start->at_ns || !end->at_ns)
        return 400;
    *ms = (float)((double)end->at_ns - (double)start->at_ns) * 1e-6f;
    return fault;
}

CUresult cuGraphLaunch(CUgraphExec g, CUstream s) {
    queue(s, TASK_GRAPH)->graph = copy_graph(g);
    return fault;
}
