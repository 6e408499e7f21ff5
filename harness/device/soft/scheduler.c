/* scheduler: fibers, simdgroups and threadgroup memory of one worker. The protocol is in abi.h;
 * its fast path is inlined in kernels (shim/cpu/meet.h); here is the rest.
 *
 * Simdgroups run one after the other on the same 32 stacks, which stay in the cache; only one that
 * parks at a threadgroup barrier, or hands over at an atomic access (checked mode's second order of
 * threads), keeps its stacks, and the next one gets others. */
#include "scheduler.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checked.h"
#include "counted.h"

/* Stacks that all end at the same offset of a page would fight for the same cache sets. */
enum { STACK_STAGGER = 9 * 64 };

enum { SMALL_GAP = 256 }; /* where there are so many variables that the room would not do */

/* Thread positions of the last group size, and how many sets of stacks have their guard pages. */
typedef struct {
    unsigned short position[SOFT_MAX_THREADS][4];
    soft_u32 position_of[3];
    soft_u32 guarded_sets;
    /* of simdgroups that handed over: what their lanes have posted and not fetched yet */
    unsigned char in[SOFT_MAX_GROUPS][SOFT_LANES * SOFT_EXCHANGE_BYTES];
    unsigned char out[SOFT_MAX_GROUPS][SOFT_LANES * SOFT_EXCHANGE_BYTES];
    void *mapping;
    size_t mapping_bytes;
} worker_extra;

static worker_extra *get_extra(soft_worker *w) {
    return (worker_extra *)w->device;
}

static char *get_stack(soft_worker *w, soft_u32 set, soft_u32 lane) {
    return (char *)w + SOFT_STACKS_AT +
           ((size_t)set * SOFT_LANES + lane) * (size_t)SOFT_STACK_BYTES;
}

/* A kernel that overruns its stack must fault, not write into its neighbour's. */
static void guard_stacks(soft_worker *w, soft_u32 set) {
    worker_extra *x = get_extra(w);
    if (set < x->guarded_sets)
        return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (; x->guarded_sets <= set; x->guarded_sets++)
        for (soft_u32 lane = 0; lane < SOFT_LANES; lane++)
            mprotect(get_stack(w, x->guarded_sets, lane), page, PROT_NONE);
}

/* Which of two lanes that stopped comes first in the structure of the program? 0: they are at the same
 * place. */
static int compare_paths(const soft_simdgroup *g, soft_u32 a, soft_u32 b) {
    if (g->path[SOFT_PATH_SUM][a] == g->path[SOFT_PATH_SUM][b])
        return 0;
    soft_u32 i = SOFT_PATH_WORDS;
    while (i < SOFT_PATH_WORDS + SOFT_PATH - 1 && g->path[i][a] == g->path[i][b])
        i++;
    return g->path[i][a] < g->path[i][b] ? -1 : 1;
}

/* The end of a round in which lanes stopped at different meetings: chooses the one with the smallest
 * path. Returns the first lane that posts its value again. */
static soft_u32 choose(soft_worker *w) {
    soft_simdgroup *g = w->running;
    soft_u32 party = 0, least = 0;
    for (soft_u32 i = 0; i < SOFT_LANES; i++) {
        if (!(g->live >> i & 1))
            continue;
        const int order = party ? compare_paths(g, i, least) : -1;
        least = order < 0 ? i : least;
        party = order < 0 ? 1u << i : party | (soft_u32)(order == 0) << i;
    }
    g->party = g->todo = party;
    return g->current = (soft_u32)__builtin_ctz(party);
}

/* The end of a round whose last lane has returned or parked: goes on with others, or back to the
 * scheduler if there are none. */
static void settle(soft_worker *w) {
    soft_simdgroup *g = w->running;
    soft_context *from = &g->lane[g->current];
    soft_context *to = g->live ? &g->lane[choose(w)] : &w->scheduler;
    SOFT_SWITCH(from, to);
}

/* Reserves threadgroup memory. Beyond what Metal gives, the launch goes on in our extra room and is
 * refused afterwards with the number; beyond that room, variables share the last of it. In checked
 * mode variables stand apart, so that running out of one is not running into the next. */
static void *reserve(soft_worker *w, soft_u64 bytes, soft_u64 align) {
    assert(bytes <= MSL_THREADGROUP_BYTES);
    soft_u64 used = (w->memory_used + align - 1) / align * align + bytes;
    if (used > MSL_THREADGROUP_BYTES && used - MSL_THREADGROUP_BYTES > w->over)
        w->over = (soft_u32)(used - MSL_THREADGROUP_BYTES);
    soft_u64 at = (w->memory_top + align - 1) / align * align;
    if (at + bytes > SOFT_THREADGROUP_ROOM)
        at = (SOFT_THREADGROUP_ROOM - bytes) / align * align;
    w->memory_used = (soft_u32)used;
    const bool is_wide = at < SOFT_THREADGROUP_ROOM / 2;
    const soft_u32 gap = !w->checks ? 0 : is_wide ? SOFT_THREADGROUP_GAP : SMALL_GAP;
    w->memory_top = (soft_u32)(at + bytes) + gap;
    void *place = w->threadgroup_memory + at;
    memset(place, 0xFF, (size_t)bytes);
    return place;
}

static void *place(soft_worker *w, soft_u32 slot, soft_u64 bytes, soft_u64 align, const char *name,
                   soft_u32 element_bytes) {
    assert(slot < MSL_STATIC_SLOTS);
    void *at = w->slot[slot] = reserve(w, bytes, align);
    if (w->checks)
        soft_checker_add_variable(w->checks, at, (size_t)bytes, name, element_bytes);
    return at;
}

soft_worker *soft_worker_new(err *e) {
    size_t all = 2 * SOFT_REGION_BYTES;
    int flags = MAP_PRIVATE | MAP_ANON;
#if defined(MAP_NORESERVE)
    flags |= MAP_NORESERVE;
#endif
    char *mapping = mmap(NULL, all, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (mapping == MAP_FAILED)
        return err_null(e, EXIT_CANNOT,
                        "the software device cannot reserve %zu MiB of address space", all >> 20);
    uintptr_t at = ((uintptr_t)mapping + SOFT_REGION_BYTES - 1) & ~(SOFT_REGION_BYTES - 1);
    soft_worker *w = (soft_worker *)at;
    worker_extra *x = (worker_extra *)(at + SOFT_STACKS_AT / 2);
    assert(sizeof *w <= SOFT_STACKS_AT / 2 && sizeof *x <= SOFT_STACKS_AT / 2);
    x->mapping = mapping;
    x->mapping_bytes = all;
    w->device = x;
    w->settle = settle;
    w->choose = choose;
    w->place = place;
    w->thread_position = (const unsigned short(*)[4])x->position;
    return w;
}

void soft_worker_free(soft_worker *w) {
    if (w)
        munmap(get_extra(w)->mapping, get_extra(w)->mapping_bytes);
}

void soft_worker_begin(soft_worker *w, const soft_launch *l) {
    w->launch = l;
    memset(w->slot, 0, sizeof w->slot);
    w->memory_used = w->memory_top = w->over = w->given_up = 0;
    for (int i = 0; i < SOFT_DYNAMIC; i++) {
        w->dynamic[i] = l->dynamic_bytes[i] ? reserve(w, l->dynamic_bytes[i], 16) : NULL;
        if (w->checks && w->dynamic[i])
            soft_checker_add_dynamic(w->checks, i, w->dynamic[i], l->dynamic_bytes[i]);
    }
}

/* Sets the actual size of the threadgroup: at the edge of dispatchThreads it is what is left. */
static void shape_group(soft_worker *w, const soft_u32 position[3]) {
    const soft_launch *l = w->launch;
    worker_extra *x = get_extra(w);
    soft_u32 total = 1;
    bool same = true;
    for (int i = 0; i < 3; i++) {
        soft_u32 left = l->grid_threads[i] - position[i] * l->group_nominal[i];
        w->group_position[i] = position[i];
        w->group_threads[i] = left < l->group_nominal[i] ? left : l->group_nominal[i];
        total *= w->group_threads[i];
        same = same && w->group_threads[i] == x->position_of[i];
    }
    w->group_total = total;
    if (same)
        return;
    memcpy(x->position_of, w->group_threads, sizeof x->position_of);
    for (soft_u32 i = 0; i < total; i++) {
        soft_u32 row = i / w->group_threads[0];
        x->position[i][0] = (unsigned short)(i % w->group_threads[0]);
        x->position[i][1] = (unsigned short)(row % w->group_threads[1]);
        x->position[i][2] = (unsigned short)(row / w->group_threads[1]);
    }
}

static void go_on(soft_worker *w, soft_simdgroup *g) {
    worker_extra *x = get_extra(w);
    w->running = g;
    SOFT_SWITCH(&w->scheduler, &g->lane[g->current]);
    if (w->counts)
        soft_counter_pause(w);
    if (g->todo) {
        memcpy(x->in[g->index], w->in, sizeof w->in);
        memcpy(x->out[g->index], w->out, sizeof w->out);
    }
}

/* Every simdgroup that handed over goes on until it does so again. False: none has. */
static bool take_turns(soft_worker *w, soft_u32 groups) {
    const worker_extra *x = get_extra(w);
    bool any = false;
    for (soft_u32 i = 0; i < groups && !w->given_up; i++) {
        if (!w->group[i].todo)
            continue;
        any = true;
        memcpy(w->in, x->in[i], sizeof w->in);
        memcpy(w->out, x->out[i], sizeof w->out);
        go_on(w, &w->group[i]);
    }
    return any && !w->given_up;
}

static void resume(soft_worker *w, soft_simdgroup *g, soft_u32 lanes) {
    g->live = g->todo = lanes;
    g->parked = g->party = 0;
    g->first = 0;
    g->differs = 0;
    g->current = (soft_u32)__builtin_ctz(lanes);
    go_on(w, g);
}

static void start(soft_worker *w, const soft_kernel *k, soft_u32 index, soft_u32 set) {
    soft_simdgroup *g = &w->group[index];
    g->index = index;
    g->ended = 0;
    for (soft_u32 i = 0; i < SOFT_LANES; i++) {
        g->path[SOFT_PATH_SUM][i] = 1;
        g->path[SOFT_PATH_END][i] = (soft_u64)(uintptr_t)&g->path[SOFT_PATH_WORDS][i];
    }
    guard_stacks(w, set);
    soft_u32 left = w->group_total - index * SOFT_LANES;
    soft_u32 count = left < SOFT_LANES ? left : SOFT_LANES;
    for (soft_u32 lane = 0; lane < count; lane++) {
        char *top = get_stack(w, set, lane) + SOFT_STACK_BYTES - 64 - lane * STACK_STAGGER;
#if defined(__x86_64__)
        top -= 8; /* as if a call had pushed a return address */
#endif
        g->lane[lane] = (soft_context){top, (void *)(uintptr_t)k->fiber, NULL, NULL};
    }
    soft_u32 lanes = ~0u >> (SOFT_LANES - count);
    g->fresh = g->present = lanes;
    resume(w, g, lanes);
}

void soft_worker_run(soft_worker *w, const soft_kernel *k, const soft_u32 position[3]) {
    shape_group(w, position);
    /* What the last threadgroup left there is not this one's to read. */
    if (w->checks)
        soft_checker_begin_group(w->checks);
    else
        memset(w->threadgroup_memory, 0xFF,
               w->memory_top < SOFT_THREADGROUP_ROOM ? w->memory_top : SOFT_THREADGROUP_ROOM);
    if (w->counts)
        soft_counter_begin_group(w);
    const soft_u32 groups = (w->group_total + SOFT_LANES - 1) / SOFT_LANES;
    soft_u32 set = 0;
    for (soft_u32 i = 0; i < groups && !w->given_up; i++) {
        start(w, k, i, set);
        set += (w->group[i].parked | w->group[i].todo) != 0;
    }
    for (bool waiting = set > 0; waiting && !w->given_up;) {
        while (take_turns(w, groups))
            continue;
        soft_u32 parked = 0;
        for (soft_u32 i = 0; i < groups; i++)
            parked |= w->group[i].parked;
        if (!parked || w->given_up)
            break;
        if (w->checks)
            soft_checker_end_phase(w->checks);
        if (w->counts)
            soft_counter_end_phase(w);
        waiting = false;
        for (soft_u32 i = 0; i < groups && !w->given_up; i++) {
            soft_simdgroup *g = &w->group[i];
            if (g->parked)
                resume(w, g, g->parked);
            waiting = waiting || g->parked || g->todo;
        }
    }
    if (w->checks)
        soft_checker_end_group(w->checks);
}
