/* checked: see checked.h. Launches, threadgroups, barriers, and the lives of variables. */
#if defined(__linux__)
#define _GNU_SOURCE /* dladdr */
#endif
#include "checker.h"
#include "harness/base/array.h"

#include <assert.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A meeting that all lanes must come to: a simdgroup barrier, or a function of matrices. */
static void on_meet(soft_worker *w, soft_u32 party, soft_u32 width, const void *pc) {
    soft_checker *c = checker_of(w);
    const soft_simdgroup *g = w->running;
    if (width == SOFT_MEET_ANY)
        return;
    bool is_barrier = width == SOFT_MEET_BARRIER;
    if (is_barrier || width == SOFT_MEET_PRODUCT)
        c->simd_phase[g->index]++;
    for (uint32_t i = 0; i < SOFT_LANES && width == SOFT_MEET_PRODUCT; i++)
        for (int k = 0; k < 2; k++)
            c->simd_epoch[k][g->index * SOFT_LANES + i] = c->simd_phase[g->index];
    soft_u32 wanted = is_barrier ? g->present : ~0u;
    if (!(wanted & ~(party | g->ended)))
        return;
    checker_tell(c, is_barrier ? FINDING_BARRIER : FINDING_DIVERGED, pc, NULL,
                 "simdgroup %s reached by %d of %d lanes: the others returned, are elsewhere or do "
                 "not exist",
                 is_barrier ? "barrier" : "matrix function", __builtin_popcount(party),
                 __builtin_popcount(wanted));
}

/* One barrier in the text may be many: its function may be called from several places. */
static uint64_t hash_calls(const soft_checker *c, uintptr_t fp) {
    uint64_t hash = 0;
    uintptr_t at;
    for (int i = 0; i < CHECKER_FRAMES && checker_next_frame(c, &fp, &at); i++)
        if (checker_is_kernel(c, at))
            hash = (hash ^ at) * UINT64_C(0x9E3779B97F4A7C15);
    return hash;
}

static void on_park(soft_worker *w, const void *pc) {
    soft_checker *c = checker_of(w);
    uint32_t t = checker_thread(w);
    c->parked_at[t] = pc;
    c->parked_by[t] = hash_calls(c, (uintptr_t)__builtin_frame_address(0));
}

static void on_leave(soft_worker *w, const void *pc) {
    checker_of(w)->left_at[checker_thread(w)] = pc;
}

/* Threads that take turns ---------------------------------------------------------------------- */

enum {
    MOST_TURNS = 1 << 20,   /* of a launch; then threads hand over more seldom */
    SELDOM = 64,            /* accesses of a thread */
    MORE_ATOMICS = 1 << 16, /* than in the first run are not an endless loop yet */
    MOST_SAVED_BYTES = 256 << 20
};

/* A lane that has not had its turn goes on; when all have, the next simdgroup. This lane comes back
 * also when another one returns or stops at a meeting, which is not its turn yet. */
static void hand_over(soft_checker *c, soft_worker *w) {
    soft_simdgroup *g = w->running;
    turn_state *t = &c->turns[g->index];
    const uint64_t pass = t->pass;
    const soft_u32 lane = g->current;
    t->had |= 1u << lane;
    while (t->pass == pass) {
        const soft_u32 others = g->todo & ~t->had;
        g->current = (soft_u32)__builtin_ctz(others ? others : g->todo);
        if (!others) {
            t->had = 0;
            t->pass++;
        }
        SOFT_SWITCH(&g->lane[lane], others ? &g->lane[g->current] : &w->scheduler);
    }
}

static void on_turn(soft_worker *w, const void *pc) {
    soft_checker *c = checker_of(w);
    c->atomics++;
    c->group_atomics++;
    if (!c->order.takes_turns)
        return;
    if (c->group_atomics > c->atomics_limit) {
        checker_tell(c, FINDING_ENDLESS, pc, NULL,
                     "still running after %llu atomic accesses of the threadgroup: an endless loop",
                     (unsigned long long)c->atomics_limit);
        w->given_up = 1;
        SOFT_SWITCH(&w->running->lane[w->running->current], &w->scheduler);
    }
    if (c->atomics < MOST_TURNS || c->atomics % SELDOM == 0)
        hand_over(c, w);
}

void soft_checker_set_order(soft_checker *c, const soft_order *order) {
    c->order = *order;
    if (!order->takes_turns) {
        c->told_count = 0;
        c->most_atomics = 0;
        return;
    }
    /* Each access may let every other thread's compare-and-exchange, or attempt to take a lock, fail
     * once. */
    const soft_u32 *n = c->worker->launch->group_nominal;
    c->atomics_limit = 4 * c->most_atomics * n[0] * n[1] * n[2] + MORE_ATOMICS;
}

static bool save_memory(soft_checker *c, void *at, size_t bytes) {
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        return false;
    memcpy(copy, at, bytes);
    c->saved_memory[c->saved_count++] = (saved_memory){at, bytes, copy};
    return true;
}

void soft_checker_save(soft_checker *c, const soft_bound bound[SOFT_BUFFERS]) {
    size_t bytes = 0;
    for (int i = 0; i < SOFT_BUFFERS; i++)
        if (bound[i].is_bound && bound[i].can_write)
            bytes += bound[i].bytes;
    bool ok = bytes <= MOST_SAVED_BYTES;
    for (int i = 0; i < SOFT_BUFFERS && ok; i++) {
        const soft_bound *b = &bound[i];
        if (b->is_bound && b->can_write)
            ok = save_memory(c, b->real, b->bytes) &&
                 (!b->written || save_memory(c, b->written, b->bytes));
    }
    if (!ok)
        soft_checker_forget(c);
}

void soft_checker_restore(const soft_checker *c) {
    for (int i = 0; i < c->saved_count; i++)
        memcpy(c->saved_memory[i].at, c->saved_memory[i].copy, c->saved_memory[i].bytes);
}

bool soft_checker_runs_again(const soft_checker *c) {
    return c->saved_count > 0 && c->atomics > 0 && !c->order.takes_turns && !c->worker->given_up;
}

void soft_checker_forget(soft_checker *c) {
    while (c->saved_count > 0)
        free(c->saved_memory[--c->saved_count].copy);
}

/* Launches ------------------------------------------------------------------------------------- */

soft_checker *soft_checker_new(soft_worker *w, bool is_traced, err *e) {
    soft_checker *c = array_new(1, sizeof *c);
    bool ok = checker_open_private(c) &&
              shadow_open(&c->threadgroup_shadow, (uintptr_t)w->threadgroup_memory,
                          sizeof w->threadgroup_memory, 4, false);
    c->rescue = soft_rescue_new(w, checker_rescue, c, e);
    if (!ok || !c->rescue) {
        soft_checker_free(c);
        return NULL;
    }
    const char *given = getenv("ASSAY_LOOP_SECONDS");
    double seconds = given ? atof(given) : 0;
    c->seconds = seconds > 0 && seconds < 1e6 ? seconds : (double)DEFAULT_SECONDS;
    c->worker = w;
    c->hooks.trace = c->hooks.pending = is_traced;
    c->hooks.access = checker_access;
    c->hooks.mishap = checker_mishap;
    c->hooks.reserve = checker_reserve;
    c->hooks.unset_variable = checker_unset;
    c->hooks.end = checker_end_variable;
    c->hooks.meet = on_meet;
    c->hooks.park = on_park;
    c->hooks.fence = checker_barrier;
    c->hooks.sync = checker_sync;
    c->hooks.leave = on_leave;
    c->hooks.turn = on_turn;
    w->checks = &c->hooks;
    return c;
}

void soft_checker_free(soft_checker *c) {
    if (!c)
        return;
    if (c->worker)
        c->worker->checks = NULL;
    soft_rescue_free(c->rescue);
    shadow_close(&c->threadgroup_shadow);
    soft_checker_forget(c);
    checker_sync_free(c);
    checker_close_private(c);
    free(c);
}

static void find_image(soft_checker *c, const soft_kernel *k) {
    Dl_info info;
    c->image_begin = c->image_end = 0;
    c->nothing = (uintptr_t)k->nothing;
    c->tables = c->table = k->tables;
    if (dladdr((const void *)(uintptr_t)k->fiber, &info) == 0)
        return;
    c->image_begin = (uintptr_t)info.dli_fbase;
    c->image_end = c->image_begin + ((uintptr_t)1 << 24); /* far larger than any kernel's object */
}

void soft_checker_begin(soft_checker *c, const char *kernel, const soft_kernel *k,
                        const char *object, const soft_bound bound[SOFT_BUFFERS],
                        const soft_dynamic dynamic[SOFT_DYNAMIC], const void *inline_begin) {
    c->kernel = kernel;
    c->object = object;
    find_image(c, k);
    memcpy(c->bound, bound, sizeof c->bound);
    memcpy(c->dynamic, dynamic, sizeof c->dynamic);
    memset(c->hooks.miscast, 0, sizeof c->hooks.miscast);
    c->hooks.inline_begin = (uintptr_t)inline_begin;
    c->variable_count = 0;
    c->group_first = c->group;
    checker_open_regions(c);
    checker_sync_begin(c);
    c->looks = 0;
    c->atomics = 0;
    soft_rescue_begin(c->rescue, c->seconds);
}

void soft_checker_watch(soft_checker *c, uintptr_t at, size_t bytes) {
    c->watched = at;
    c->watched_bytes = bytes;
    c->is_stored = false;
}

void soft_checker_end(soft_checker *c, finding_list *out) {
    soft_rescue_end(c->rescue);
    checker_tell_index(c, SOFT_LOAD);
    checker_settle_stores(c);
    /* The values that remain are those of the last run. */
    const report *last = c->is_stored && !soft_checker_runs_again(c) ? &c->last_store : NULL;
    report *r = last ? checker_add_report(c, last->what, last->pc, last->buffer) : NULL;
    if (r)
        *r = *last;
    checker_put_back(c);
    checker_end_private(c);
    checker_finish_reports(c, out);
    checker_close_regions(c);
}

void soft_checker_begin_group(soft_checks *hooks) {
    soft_checker *c = (soft_checker *)(void *)hooks;
    c->group++;
    c->group_atomics = 0;
    memset(c->turns, 0, sizeof c->turns);
    soft_rescue_advance(c->rescue);
    if (c->hooks.trace)
        checker_forget_exceptions();
    memset(c->left_at, 0, sizeof c->left_at);
    for (int i = 0; i < c->variable_count; i++)
        memset((void *)c->variables[i].begin, 0xFF, c->variables[i].bytes);
    checker_empty_rooms(c);
    checker_sync_begin_group(c);
}

void soft_checker_add_variable(soft_checks *hooks, void *at, size_t bytes, const char *name,
                               uint32_t element_bytes) {
    soft_checker *c = (soft_checker *)(void *)hooks;
    assert(c->variable_count < MAX_VARIABLES);
    variable *v = &c->variables[c->variable_count++];
    *v = (variable){.begin = (uintptr_t)at, .bytes = bytes, .element_bytes = element_bytes};
    snprintf(v->name, sizeof v->name, "%s", name);
}

void soft_checker_add_dynamic(soft_checks *hooks, int index, void *at, size_t bytes) {
    const soft_dynamic d = ((soft_checker *)(void *)hooks)->dynamic[index];
    soft_checker_add_variable(hooks, at, bytes, d.name, d.element_bytes ? d.element_bytes : 1);
}

/* A thread that is not there: the line of its return statement, and NULL if it had none. */
static const void *find_return(const soft_checker *c, uint32_t *thread) {
    const soft_worker *w = c->worker;
    for (uint32_t t = 0; t < w->group_total; t++) {
        const soft_simdgroup *g = &w->group[t / SOFT_LANES];
        if (!((g->parked | g->ended) >> t % SOFT_LANES & 1) && c->left_at[t]) {
            *thread = t;
            return c->left_at[t];
        }
    }
    return NULL;
}

/* A tensor operation of several simdgroups is one that all of them reach. */
static void check_tensor_runs(soft_checker *c) {
    soft_worker *w = c->worker;
    uint32_t groups = (w->group_total + SOFT_LANES - 1) / SOFT_LANES, least = w->tensor_runs[0];
    uint32_t most = least, missing = 0;
    for (uint32_t i = 1; i < groups; i++) {
        missing = w->tensor_runs[i] < least ? i : missing;
        least = w->tensor_runs[i] < least ? w->tensor_runs[i] : least;
        most = w->tensor_runs[i] > most ? w->tensor_runs[i] : most;
    }
    if (least < most)
        checker_tell(c, FINDING_BARRIER, w->tensor_site + 1, NULL,
                     "simdgroup %u does not reach a tensor operation of all simdgroups of the "
                     "threadgroup",
                     missing);
    memset(w->tensor_runs, 0, sizeof w->tensor_runs);
}

void soft_checker_end_group(soft_checks *hooks) {
    soft_checker *c = (soft_checker *)(void *)hooks;
    check_tensor_runs(c);
    if (c->group_atomics > c->most_atomics && !c->order.takes_turns)
        c->most_atomics = c->group_atomics;
}

/* Every thread has returned or parked, and some have parked: all must have, and at one barrier. */
void soft_checker_end_phase(soft_checks *hooks) {
    soft_checker *c = (soft_checker *)(void *)hooks;
    const soft_worker *w = c->worker;
    check_tensor_runs(c);
    uint32_t parked = 0, ended = 0, first = 0, elsewhere = 0;
    for (uint32_t t = 0; t < w->group_total; t++) {
        const soft_simdgroup *g = &w->group[t / SOFT_LANES];
        ended += g->ended >> t % SOFT_LANES & 1;
        if (!(g->parked >> t % SOFT_LANES & 1))
            continue;
        first = parked++ ? first : t;
        if (c->parked_at[t] != c->parked_at[first] || c->parked_by[t] != c->parked_by[first])
            elsewhere = t;
    }
    c->phase++;
    if (parked + ended == w->group_total && !elsewhere)
        return;
    uint32_t gone = 0;
    const void *left = elsewhere ? NULL : find_return(c, &gone);
    const void *barrier = c->parked_at[first];
    const uint32_t all = w->group_total - ended;
    report *r =
        elsewhere ? checker_tell(c, FINDING_BARRIER, barrier, NULL,
                                 "threads of one threadgroup wait at different barriers")
        : left    ? checker_tell(c, FINDING_BARRIER, left, NULL,
                                 "return before a barrier, which %u of %u threads of the threadgroup "
                                    "reach",
                                 parked, all)
                  : checker_tell(c, FINDING_BARRIER, barrier, NULL,
                                 "barrier reached by %u of %u threads of the threadgroup: the others "
                                    "have returned",
                                 parked, all);
    if (!r)
        return;
    const unsigned short *p = w->thread_position[left ? gone : elsewhere ? elsewhere : first];
    for (int i = 0; i < 3; i++)
        r->row.thread[i] = p[i];
    r->barrier = left ? barrier : elsewhere ? c->parked_at[elsewhere] : NULL;
}
