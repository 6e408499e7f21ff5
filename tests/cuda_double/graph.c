/* graph: graphs, how they are made, changed and run. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "state.h"

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
    double_fault = ptx_run(&l);
}

void double_free_graph(CUgraphExec g) {
    for (size_t i = 0; i < g->count; i++)
        free(g->nodes[i].kernel.params);
    free(g->nodes);
    free(g);
}

/* Nodes stand in an order that keeps every dependency: they are added after what they wait for. */
void double_run_graph(CUgraphExec g) {
    for (size_t i = 0; i < g->count && !double_fault; i++)
        run_node(&g->nodes[i]);
}

CUresult cuGraphCreate(CUgraph *g, unsigned int flags) {
    (void)flags;
    *g = calloc(1, sizeof **g);
    assert(*g);
    return double_fault;
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
    return double_fault;
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
    return double_fault;
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
    return double_fault;
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
    return double_fault;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec g, CUgraphNode n,
                                        const CUDA_KERNEL_NODE_PARAMS *what) {
    return n->kind == NODE_KERNEL ? set_kernel(&g->nodes[n->index].kernel, what) : 1;
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec g, CUgraphNode n, CUevent event) {
    if (n->kind != NODE_EVENT)
        return 1;
    g->nodes[n->index].event = event;
    return double_fault;
}

CUresult cuGraphExecDestroy(CUgraphExec g) {
    double_free_graph(g);
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

CUgraphExec double_copy_graph(CUgraphExec g) {
    const struct CUgraphNode_st **from = malloc((g->count + 1) * sizeof *from);
    assert(from);
    for (size_t i = 0; i < g->count; i++)
        from[i] = &g->nodes[i];
    CUgraphExec made = copy_nodes(from, g->count);
    free(from);
    return made;
}
