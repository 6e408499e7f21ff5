/* state: what the calls of the double share. */
#ifndef ASSAY_CUDA_DOUBLE_STATE_H
#define ASSAY_CUDA_DOUBLE_STATE_H

#include "double.h"

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

extern CUresult double_fault; /* of a kernel: it stays until the context goes */

/* queue.c: everything that is queued, done. */
void double_run_all(void);

/* graph.c: an instantiated graph as it is now, for a launch; and its end. */
CUgraphExec double_copy_graph(CUgraphExec from);
void double_run_graph(CUgraphExec g);
void double_free_graph(CUgraphExec g);

/* The calls, as driver.h has them. */
#define DECLARE(field, symbol, arguments) CUresult symbol arguments;
CUDA_CALLS(DECLARE)
CUDA_NEWER_CALLS(DECLARE)
#undef DECLARE

#endif
