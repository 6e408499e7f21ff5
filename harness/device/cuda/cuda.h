/* cuda: what the files of the CUDA device share; nothing else includes it.
 *
 * device_cuda.c opens a GPU, knows its facts and its memory, and turns text into functions;
 * graph_cuda.c turns parts of tapes into graphs, launches them and waits for them. */
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

/* The result of the next call, unless one before it has failed. */
#define CUDA_THEN(result, call) ((result) == CUDA_SUCCESS ? (call) : (result))

/* The device of the calling thread from here on. */
static inline cuda_device *cuda_enter(const device *d) {
    cuda_device *c = d->impl;
    c->driver->context_set(c->context);
    return c;
}

/* device_cuda.c: a buffer's address, with the caller's memory copied if that is still to be done. */
bool cuda_find_address(cuda_device *c, const buffer *b, CUdeviceptr *at, err *e);

/* graph_cuda.c. Is this parameter one that shim/ptx/here.h loads with the arguments, or takes from
 * its slot? */
bool cuda_is_value(const msl_param *p);
bool cuda_submit(device *d, tape *t, size_t first, size_t count, ticket *out, err *e);
bool cuda_wait(device *d, ticket *k, play_times *times, err *e);
bool cuda_play_sampled(device *d, tape *t, play_times *total, play_times *each, err *e);
void cuda_free_plays(cuda_device *c);
