/* cuda: what the files of the CUDA device share; nothing else includes it.
 *
 * device_cuda.c opens a GPU and knows its facts, buffer_cuda.c its memory, pipeline_cuda.c turns
 * text into functions, launch_cuda.c a launch into what the driver takes, graph_cuda.c parts of
 * tapes into graphs, play_cuda.c launches and waits for them. */
#pragma once

#include "abi.h"
#include "driver.h"
#include "harness/device/tape.h"
#include "ptx.h"

typedef struct cuda_play cuda_play;

enum { CUDA_LANDING_BYTES = 1 << 20 }; /* logits of any vocabulary; larger copies go directly */

typedef struct {
    const cuda_driver *driver;
    CUdevice device;
    CUcontext context;
    CUstream stream;  /* plays and copies to the device, in the order they were asked for */
    CUstream copies;  /* copies from the device: they need not wait for plays in flight */
    CUevent uploaded; /* the last copy to the device */
    void *landing;    /* pinned memory of CUDA_LANDING_BYTES, for copies from the device */
    ptx_compiler *compiler;
    bool overlaps;        /* a launch may be set up while the one before it still runs */
    uint32_t most_shared; /* bytes of shared memory of a threadgroup */
    finding_list findings;
    cuda_play *idle; /* events that nothing waits for */
} cuda_device;

typedef struct {
    CUdeviceptr at;
    const void *source; /* no-copy: memory of the caller, copied when it is first used */
    size_t source_bytes;
} cuda_buffer;

/* A kernel that needs more registers than a full threadgroup has for each thread is loaded twice:
 * once at full speed, once with few enough registers for any threadgroup. */
typedef struct {
    CUmodule module[2];
    CUfunction function[2];
    uint32_t most_threads[2];
    bool has_early_loads; /* it waits for launches before it on its own */
    uint32_t early;       /* the buffers that it loads before that, a bit each */
    uint32_t early_rows;  /* caches of which it loads rows before the newest one before that */
    uint32_t bulk_bytes; /* shared memory that bulk copies fill, beyond Metal's (shim/ptx/cuda.h) */
    uint32_t cluster;    /* threadgroups of a cluster: a launch has a multiple of them */
} cuda_pipeline;

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

/* The device of the calling thread from here on. */
static inline cuda_device *cuda_enter(const device *d) {
    cuda_device *c = d->impl;
    c->driver->context_set(c->context);
    return c;
}

/* buffer_cuda.c */
bool cuda_new_buffer(buffer *b, size_t allocation_bytes, const void *no_copy, err *e);
void cuda_free_buffer(buffer *b);
bool cuda_copy(buffer *b, size_t allocation_offset, void *host, size_t bytes, bool to_device,
               err *e);
bool cuda_fill(buffer *b, size_t allocation_offset, size_t bytes, uint16_t pattern, err *e);
/* Its address, with the caller's memory copied if that is still to be done. */
bool cuda_find_address(cuda_device *c, const buffer *b, CUdeviceptr *at, err *e);

/* pipeline_cuda.c */
bool cuda_new_pipeline(pipeline *p, const msl_unit *unit, const constant_value *constants,
                       size_t count, err *e);
void cuda_free_pipeline(pipeline *p);

/* launch_cuda.c. Is this parameter one that shim/ptx/here.h loads with the arguments, or takes from
 * its slot? */
bool cuda_is_value(const msl_param *p);
/* inline_at: where the launch's small constants are in device memory; used for those
 * that do not fit their slot, *uses_inline says whether there are any. */
bool cuda_encode(cuda_device *c, const launch *l, CUdeviceptr inline_at, cuda_launch *out,
                 bool *uses_inline, err *e);
CUDA_KERNEL_NODE_PARAMS cuda_describe_launch(cuda_launch *l, void *params[1]);

/* graph_cuda.c: a part of a tape, instantiated once. */
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

/* The part as the tape has it now: made if it is new, changed where the launches have changed. */
cuda_graph *cuda_find_graph(cuda_device *c, tape *t, size_t first, size_t count, bool is_sampled,
                            err *e);

/* play_cuda.c */
bool cuda_submit(device *d, tape *t, size_t first, size_t count, ticket *out, err *e);
bool cuda_wait(device *d, ticket *k, play_times *times, err *e);
bool cuda_can_sample(device *d);
bool cuda_play_sampled(device *d, tape *t, play_times *total, play_times *each, err *e);
void cuda_free_plays(cuda_device *c);
