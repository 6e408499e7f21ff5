/* pool: see pool.h.
 *
 * The leader opens a launch, works on it like everybody else, closes it and waits for those who
 * joined: a helper that is still asleep is never waited for, so small launches cost no wake-up.
 * Helpers spin for a moment before they sleep, because the next launch of a tape follows at once.
 */
#include "pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "scheduler.h"

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
    soft_worker_begin(m->worker, l);
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
            soft_worker_run(m->worker, p->image->kernel, position);
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

static void run_checked(soft_pool *p, const soft_item *item, const soft_image *image,
                        bool takes_turns, bool is_backwards) {
    const int64_t first = is_backwards ? (int64_t)p->total_groups - 1
                          : item->only ? (int64_t)item->only - 1
                                       : 0;
    atomic_store(&p->next_group, item->only ? item->only - 1 : 0);
    p->is_backwards = is_backwards;
    soft_checker_set_order(p->checker, &(soft_order){takes_turns, first, is_backwards ? -1 : 1});
    soft_checker_begin(p->checker, image->name, image->kernel, image->object, item->bound,
                       item->dynamic, item->inline_bytes);
    soft_checker_watch(p->checker, item->watched, item->watched_bytes);
    work(&p->members[0]);
    bool is_in_vain = is_backwards && p->members[0].worker->given_up;
    soft_checker_end(p->checker, is_in_vain ? NULL : &p->findings);
    p->is_backwards = false;
}

/* A launch with atomic accesses runs again, with threads that take turns at them and the last
 * threadgroup first. One that does not end then, because its threadgroups wait for earlier ones, does
 * so once more with the first one first. Its results are those of the last run. */
static void run_in_turns(soft_pool *p, const soft_item *item, const soft_image *image) {
    const soft_worker *w = p->members[0].worker;
    bool is_backwards = !item->only && p->total_groups > 1;
    if (image->has_atomics)
        soft_checker_save(p->checker, item->bound);
    run_checked(p, item, image, false, false);
    if (soft_checker_runs_again(p->checker)) {
        soft_checker_restore(p->checker);
        run_checked(p, item, image, true, is_backwards);
        if (w->given_up && is_backwards) {
            soft_checker_restore(p->checker);
            run_checked(p, item, image, true, false);
        }
    }
    soft_checker_forget(p->checker);
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
        run_in_turns(p, item, image);
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
        m->worker = soft_worker_new(e);
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
            soft_worker_free(m->worker);
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
        soft_worker_free(p->members[i].worker);
    }
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->opened);
    free(p->members);
    free(p);
}
