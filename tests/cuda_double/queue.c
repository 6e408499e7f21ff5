/* queue: streams, copies and events. A stream is a queue; what is in it runs when something waits for
 * it, so that a caller that forgets to wait sees nothing done. What a call must have taken by the time it
 * returns (bytes of the caller, parameters of a launch) is copied then, and nothing later is. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "state.h"

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
        if (!double_fault && !double_has_memory(device, t->bytes))
            double_fault = CUDA_ERROR_ILLEGAL_ADDRESS;
        if (!double_fault)
            memcpy(t->to, t->data, t->bytes);
        break;
    }
    case TASK_FILL:
        for (size_t i = 0; !double_fault && i < t->bytes; i += 2)
            memcpy((char *)t->to + i, &t->word, 2);
        break;
    case TASK_GRAPH:
        double_run_graph(t->graph);
        double_free_graph(t->graph);
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

void double_run_all(void) {
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
            return double_fault;
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
    return double_fault;
}

CUresult cuCtxSynchronize(void) {
    double_run_all();
    return double_fault;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
    task *t = queue(s, TASK_COPY_IN);
    t->to = (void *)(uintptr_t)to;
    t->data = malloc(bytes + 1);
    assert(t->data);
    memcpy(t->data, from, bytes);
    t->bytes = bytes;
    return double_fault;
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
    task *t = queue(s, TASK_COPY_OUT);
    t->to = to;
    t->data = (void *)(uintptr_t)from;
    t->bytes = bytes;
    return double_fault;
}

CUresult cuMemsetD16Async(CUdeviceptr at, unsigned short word, size_t count, CUstream s) {
    if (at % 2 || !double_has_memory((void *)(uintptr_t)at, 2 * count))
        return 1;
    task *t = queue(s, TASK_FILL);
    t->to = (void *)(uintptr_t)at;
    t->bytes = 2 * count;
    t->word = word;
    return double_fault;
}

/* Events ---------------------------------------------------------------------------------------- */

CUresult cuEventCreate(CUevent *e, unsigned int flags) {
    (void)flags;
    *e = calloc(1, sizeof **e);
    assert(*e);
    return double_fault;
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
    return double_fault;
}

CUresult cuEventSynchronize(CUevent e) {
    if (e->pending)
        run_stream(e->stream, e);
    return double_fault;
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned int flags) {
    (void)flags;
    if (e->pending)
        queue(s, TASK_AWAIT)->event = e;
    return double_fault;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    if (!start->at_ns || !end->at_ns)
        return 400;
    *ms = (float)((double)end->at_ns - (double)start->at_ns) * 1e-6f;
    return double_fault;
}

CUresult cuGraphLaunch(CUgraphExec g, CUstream s) {
    queue(s, TASK_GRAPH)->graph = double_copy_graph(g);
    return double_fault;
}
