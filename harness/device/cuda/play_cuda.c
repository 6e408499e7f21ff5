/* play_cuda: launches graphs, waits for them, and says what became of them.
 *
 * A ticket's id is a play: the events of one launch of a graph. The time on the GPU is between two
 * events inside of the graph, so that what the CPU does meanwhile is not in it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda.h"
#include "harness/base/os.h"

struct cuda_play {
    CUevent start, end; /* recorded by the graph, with times */
    CUevent done;       /* recorded after the graph, to wait for */
    char name[96];      /* what is played, for messages */
    cuda_play *next;
};

/* Plays ----------------------------------------------------------------------------------------- */

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
    p = calloc(1, sizeof *p);
    assert(p);
    CUresult result = c->driver->event_new(&p->start, CU_EVENT_DEFAULT);
    if (result == CUDA_SUCCESS)
        result = c->driver->event_new(&p->end, CU_EVENT_DEFAULT);
    if (result == CUDA_SUCCESS)
        result = c->driver->event_new(&p->done, CU_EVENT_DISABLE_TIMING);
    if (cuda_ok(c->driver, result, e, "give events"))
        return p;
    free_play(c, p);
    return NULL;
}

static void give_play(cuda_device *c, cuda_play *p) {
    p->next = c->idle;
    c->idle = p;
}

static void name_play(cuda_play *p, const tape *t, size_t first, size_t count) {
    const char *part = count ? tape_get_part(t, first) : "";
    if (count <= 1)
        snprintf(p->name, sizeof p->name, "%s", count ? t->launches[first].label : "nothing");
    else
        snprintf(p->name, sizeof p->name, "%.20s%s%.40s and %zu more", part, *part ? ": " : "",
                 t->launches[first].label, count - 1);
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
    cuda_graph *g = cuda_find_graph(c, t, first, count, false, e);
    cuda_play *p = g ? take_play(c, e) : NULL;
    if (!p)
        return false;
    name_play(p, t, first, count);
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

static void read_times(uint64_t gpu_ns, uint64_t wall_ns, play_times *times) {
    times->wall_ns = wall_ns;
    times->gpu_is_wall = gpu_ns == 0 || gpu_ns > wall_ns;
    times->gpu_ns = times->gpu_is_wall ? wall_ns : gpu_ns;
}

bool cuda_wait(device *d, ticket *k, play_times *times, err *e) {
    cuda_device *c = cuda_enter(d);
    cuda_play *p = (cuda_play *)(uintptr_t)k->id;
    assert(p && "a ticket is waited for once");
    k->id = 0;
    CUresult result = c->driver->event_wait(p->done);
    uint64_t wall_ns = os_now_ns() - k->commit_at_ns;
    bool ok = result == CUDA_SUCCESS || report_failure(c, result, p->name, e);
    read_times(ok ? measure(c, p->start, p->end) : 0, wall_ns, times);
    give_play(c, p);
    return ok;
}

/* Samples --------------------------------------------------------------------------------------- */

bool cuda_can_sample(device *d) {
    (void)d;
    return true;
}

bool cuda_play_sampled(device *d, tape *t, play_times *total, play_times *each, err *e) {
    cuda_device *c = cuda_enter(d);
    uint64_t begin = os_now_ns(), commit_at;
    cuda_graph *g = cuda_find_graph(c, t, 0, t->count, true, e);
    cuda_play *p = g ? take_play(c, e) : NULL;
    if (!p)
        return false;
    name_play(p, t, 0, t->count);
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
    read_times(measure(c, g->marks[0], g->marks[2 * g->count - 1]), wall_ns, total);
    for (size_t i = 0; i < g->count; i++)
        each[i] = (play_times){.gpu_ns = measure(c, g->marks[2 * i], g->marks[2 * i + 1]),
                               .gpu_is_sampled = true};
    return true;
}
