/* pool: see pool.h.
 *
 * The leader opens a launch, works on it like everybody else, closes it and waits for those who
 * joined: a helper that is still asleep is never waited for, so small launches cost no wake-up.
 * Helpers spin for a moment before they sleep, because the next launch of a tape follows at once.
 *
 * Each runs one threadgroup at a time, its GPU threads as fibers. The protocol is in abi.h; its fast path
 * is inlined in kernels (shim/cpu/meet.h); here is the rest. Simdgroups run one after the other on the same
 * 32 stacks, which stay in the cache; only one that parks at a threadgroup barrier, or hands over at an
 * atomic access (checked mode's second order of threads), keeps its stacks, and the next one gets others. */
#include "pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena.h"
#include "checked.h"
#include "counted.h"
#include "harness/base/array.h"
#include "harness/base/os.h"

/* One threadgroup: fibers, simdgroups, threadgroup memory -------------------------------------- */

/* Stacks that all end at the same offset of a page would fight for the same cache sets. */
enum { STACK_STAGGER = 9 * 64 };

enum { SMALL_GAP = 256 }; /* once half of the room is used */

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
        soft_checker_add_variable(w, at, (size_t)bytes, name, element_bytes);
    return at;
}

static soft_worker *worker_new(err *e) {
    size_t all = 2 * SOFT_REGION_BYTES;
    char *mapping = soft_map(NULL, all);
    if (!mapping)
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

static void worker_free(soft_worker *w) {
    if (w)
        munmap(get_extra(w)->mapping, get_extra(w)->mapping_bytes);
}

/* Once a launch and worker: places dynamic threadgroup memory, forgets the static one. */
static void worker_begin(soft_worker *w, const soft_launch *l) {
    w->launch = l;
    memset(w->slot, 0, sizeof w->slot);
    w->memory_used = w->memory_top = w->over = w->given_up = 0;
    for (int i = 0; i < SOFT_DYNAMIC; i++) {
        w->dynamic[i] = l->dynamic_bytes[i] ? reserve(w, l->dynamic_bytes[i], 16) : NULL;
        if (w->checks && w->dynamic[i])
            soft_checker_add_dynamic(w, i, w->dynamic[i], l->dynamic_bytes[i]);
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
        soft_counter_fold(w);
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

/* Runs the threadgroup at a position of the grid to its end. */
static void worker_run(soft_worker *w, const soft_kernel *k, const soft_u32 position[3]) {
    shape_group(w, position);
    /* What the last threadgroup left there is not this one's to read. */
    if (w->checks)
        soft_checker_begin_group(w);
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
            soft_checker_end_phase(w);
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
        soft_checker_end_group(w);
}

/* Threads -------------------------------------------------------------------------------------- */

enum { SPIN_NS = 50000, GRABS_LEFT = 4 };

typedef struct {
    soft_pool *pool;
    soft_worker *worker;
    pthread_t thread;
} member;

struct soft_pool {
    member *members; /* member 0 is the leader, which is whoever calls soft_pool_run */
    int count;
    bool cpu_clock;

    pthread_mutex_t lock;
    pthread_cond_t opened;

    /* The launch that is open to helpers. */
    atomic_uint_fast64_t turn; /* counts launches opened */
    atomic_bool open;
    atomic_int joined, asleep;
    atomic_bool stop;
    atomic_uint_fast64_t next_group, worked_ns; /* worked_ns: CPU time of all */
    uint64_t total_groups;
    const soft_item *item;
    const soft_image *image;
    soft_checker *checker; /* checked mode */
    bool is_backwards;     /* it runs the last threadgroup first */
    soft_counter *counter; /* counting */
    const counted_row *counts;
    size_t count_rows;
    finding_list findings;

    atomic_uint over; /* threadgroup bytes beyond the limit, over all workers */
};

static void relax(void) {
#if defined(__aarch64__)
    __asm__ volatile("yield");
#else
    __asm__ volatile("pause");
#endif
}

/* Switches flushing of denormals on or off for the calling thread, as a GPU does it: those of f32,
 * not those of f16 (aarch64 has a bit for each, x86-64 never flushes f16). */
static void set_flushing(bool on) {
#if defined(__aarch64__)
    const uint64_t flush = 1u << 24; /* FPCR.FZ */
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    control = on ? control | flush : control & ~flush;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#else
    const uint32_t flush = 1u << 15 | 1u << 6; /* results (FTZ) and operands (DAZ) */
    uint32_t control;
    __asm__ volatile("stmxcsr %0" : "=m"(control));
    control = on ? control | flush : control & ~flush;
    __asm__ volatile("ldmxcsr %0" : : "m"(control));
#endif
}

/* Takes some of the threadgroups that are left: many at first, so that workers seldom disturb each
 * other, and one at a time at the end, so that they finish together. False: none is left. */
static bool grab_groups(soft_pool *p, uint64_t *first, uint64_t *end) {
    uint64_t next = atomic_load(&p->next_group);
    do {
        if (next >= p->total_groups)
            return false;
        uint64_t count = (p->total_groups - next) / ((uint64_t)p->count * GRABS_LEFT);
        *first = next;
        *end = next + count + (count == 0);
    } while (!atomic_compare_exchange_weak(&p->next_group, &next, *end));
    return true;
}

/* Takes threadgroups of the open launch until none is left. */
static void take_groups(member *m) {
    soft_pool *p = m->pool;
    const soft_launch *l = &p->item->launch;
    worker_begin(m->worker, l);
    uint64_t i, end;
    while (grab_groups(p, &i, &end))
        for (; i < end && !m->worker->given_up; i++) {
            if (p->item->every > 1 && i % p->item->every != 0)
                continue;
            const uint64_t n = p->is_backwards ? p->total_groups - 1 - i : i;
            uint64_t row = n / l->grid_groups[0];
            const soft_u32 position[3] = {(soft_u32)(n % l->grid_groups[0]),
                                          (soft_u32)(row % l->grid_groups[1]),
                                          (soft_u32)(row / l->grid_groups[1])};
            worker_run(m->worker, p->image->kernel, position);
        }
}

static void work(member *m) {
    soft_pool *p = m->pool;
    bool flush = p->item->flush;
    uint64_t start = p->cpu_clock ? os_thread_ns() : 0;
    if (flush)
        set_flushing(true);
    take_groups(m);
    if (flush)
        set_flushing(false);
    if (p->cpu_clock)
        atomic_fetch_add(&p->worked_ns, os_thread_ns() - start);
    unsigned over = atomic_load(&p->over);
    while (m->worker->over > over &&
           !atomic_compare_exchange_weak(&p->over, &over, m->worker->over))
        continue;
}

/* Joins the open launch, if one still is. */
static void help(member *m) {
    soft_pool *p = m->pool;
    atomic_fetch_add(&p->joined, 1);
    if (atomic_load(&p->open))
        work(m);
    atomic_fetch_sub(&p->joined, 1);
}

static void *run_helper(void *argument) {
    member *m = argument;
    soft_pool *p = m->pool;
    uint64_t seen = 0;
    while (!atomic_load(&p->stop)) {
        uint64_t since = os_now_ns();
        int spins = 0;
        while (atomic_load(&p->turn) == seen && !atomic_load(&p->stop)) {
            relax();
            if (++spins % 64 != 0 || os_now_ns() - since < SPIN_NS)
                continue;
            pthread_mutex_lock(&p->lock);
            atomic_fetch_add(&p->asleep, 1);
            while (atomic_load(&p->turn) == seen && !atomic_load(&p->stop))
                pthread_cond_wait(&p->opened, &p->lock);
            atomic_fetch_sub(&p->asleep, 1);
            pthread_mutex_unlock(&p->lock);
        }
        seen = atomic_load(&p->turn);
        help(m);
    }
    return NULL;
}

/* As checked mode asks for it. */
static void run_checked(void *context, bool is_backwards) {
    soft_pool *p = context;
    atomic_store(&p->next_group, p->item->only ? p->item->only - 1 : 0);
    p->is_backwards = is_backwards;
    work(&p->members[0]);
    p->is_backwards = false;
}

static void run_item(soft_pool *p, const soft_item *item, const soft_image *image,
                     char problem[256]) {
    const soft_launch *l = &item->launch;
    p->item = item;
    p->image = image;
    p->total_groups = (uint64_t)l->grid_groups[0] * l->grid_groups[1] * l->grid_groups[2];
    if (item->only)
        p->total_groups = item->only;
    atomic_store(&p->next_group, item->only ? item->only - 1 : 0);
    atomic_store(&p->over, 0);
    atomic_store(&p->worked_ns, 0);
    bool share = p->count > 1 && p->total_groups > 1 && !item->only;
    if (share) {
        atomic_store(&p->open, true);
        atomic_fetch_add(&p->turn, 1);
        if (atomic_load(&p->asleep) > 0) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_broadcast(&p->opened);
            pthread_mutex_unlock(&p->lock);
        }
    }
    if (p->counter && !soft_counter_begin(p->counter, image->sites, item->bound))
        snprintf(problem, 256, "kernel '%.80s' was not compiled to be counted", image->name);
    if (p->checker)
        soft_checker_run(p->checker, item, image, p->total_groups, run_checked, p, &p->findings);
    else
        work(&p->members[0]);
    if (p->counter)
        p->counts = soft_counter_end(p->counter, &p->count_rows);
    if (share) {
        atomic_store(&p->open, false);
        while (atomic_load(&p->joined) > 0)
            relax();
    }
    unsigned over = atomic_load(&p->over);
    if (over && !problem[0])
        snprintf(problem, 256,
                 "kernel '%.80s' needs %u bytes of threadgroup memory; a threadgroup has %d",
                 image->name, over + MSL_THREADGROUP_BYTES, MSL_THREADGROUP_BYTES);
}

/* CPU time per thread, of as many threads as there is work for. */
static uint64_t get_share(soft_pool *p) {
    uint64_t groups = p->item->only ? 1 : p->total_groups;
    uint64_t threads = groups < (uint64_t)p->count ? groups : (uint64_t)p->count;
    return atomic_load(&p->worked_ns) / (threads ? threads : 1);
}

uint64_t soft_pool_run(soft_pool *p, const soft_item *items, size_t count, const soft_image *images,
                       volatile int *running, char problem[256]) {
    uint64_t start = os_now_ns(), worked = 0;
    problem[0] = 0;
    for (size_t i = 0; i < count && !problem[0]; i++) {
        *running = (int)i;
        run_item(p, &items[i], &images[items[i].image], problem);
        worked += get_share(p);
    }
    return p->cpu_clock ? worked : os_now_ns() - start;
}

soft_pool *soft_pool_new(int threads, pool_mode mode, bool cpu_clock, err *e) {
    soft_pool *p = array_new(1, sizeof *p);
    p->cpu_clock = cpu_clock;
    assert(threads > 0);
    p->members = array_new((size_t)threads, sizeof *p->members);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->opened, NULL);
    for (int i = 0; i < threads; i++) {
        member *m = &p->members[i];
        m->pool = p;
        m->worker = worker_new(e);
        bool ok = m->worker != NULL;
        if (ok && mode == POOL_COUNTED)
            p->counter = soft_counter_new(m->worker);
        else if (ok && mode != POOL_FAST)
            ok = (p->checker = soft_checker_new(m->worker, mode == POOL_TRACED, e)) != NULL;
        if (ok && i > 0 && pthread_create(&m->thread, NULL, run_helper, m) != 0)
            ok = err_set(e, EXIT_CANNOT, "the software device cannot start thread %d of %d", i + 1,
                         threads);
        if (!ok) {
            soft_checker_free(p->checker);
            p->checker = NULL;
            worker_free(m->worker);
            soft_pool_free(p);
            return NULL;
        }
        p->count = i + 1;
    }
    return p;
}

finding_list *soft_pool_get_findings(soft_pool *p) {
    return &p->findings;
}

const counted_row *soft_pool_get_counts(const soft_pool *p, size_t *count, uint32_t *bytes) {
    *count = p->count_rows;
    *bytes = p->members[0].worker->memory_used;
    return p->counts;
}

bool soft_pool_has_fiber(const soft_pool *p, uintptr_t sp) {
    for (int i = 0; i < p->count; i++)
        if (sp - (uintptr_t)p->members[i].worker - SOFT_STACKS_AT <
            SOFT_REGION_BYTES - SOFT_STACKS_AT)
            return true;
    return false;
}

void soft_pool_signal_helpers(const soft_pool *p, int number) {
    for (int i = 1; i < p->count; i++)
        pthread_kill(p->members[i].thread, number);
}

void soft_pool_free(soft_pool *p) {
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->stop, true);
    pthread_cond_broadcast(&p->opened);
    pthread_mutex_unlock(&p->lock);
    soft_checker_free(p->checker);
    soft_counter_free(p->counter);
    finding_free(&p->findings);
    for (int i = 0; i < p->count; i++) {
        if (i > 0)
            pthread_join(p->members[i].thread, NULL);
        worker_free(p->members[i].worker);
    }
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->opened);
    free(p->members);
    free(p);
}
