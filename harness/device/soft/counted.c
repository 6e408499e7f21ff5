/* counted: see counted.h.
 *
 * Lanes run one after the other, each until the next meeting; what each of them did at each site is kept
 * until all have stopped, and then folded: the n-th time of a site in all lanes is one instruction of the
 * simdgroup. Sites are folded in the order in which the first lane came to them, all first times before
 * all second times, which is about the order in which a GPU goes through a loop. */
#include "counted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "count_ir.h"
#include "counted_memory.h"
#include "harness/base/array.h"

/* Accesses of a lane between two meetings that are kept; all sites together have less than 1 GB. */
enum { FIRST_ROOM = 64, MOST_ROOM = 1 << 20, MOST_SITES = 1 << 20 };
#define MOST_BYTES (UINT64_C(1) << 30)

typedef struct {
    char kind;
    uint32_t bytes;  /* of an access; of a block: its instructions */
    uint32_t shared; /* bytes of an access to threadgroup memory */
    uint32_t most;   /* while it is folded; of a block 0 */
    uint64_t n[SPACES][COUNT_FIELDS];
} site;

struct soft_counter {
    soft_counts hooks; /* first: the kernel's own */
    soft_worker *worker;
    counted_memory *memory;
    site *sites;
    size_t count;
    uint64_t kept_bytes;
    uint32_t barrier;               /* the site that was reached last */
    uint64_t work[SOFT_MAX_GROUPS]; /* instructions of each simdgroup since the last barrier */
    uint64_t simdgroups, lanes;     /* that the launch had so far */
    counted_row *rows;
    size_t row_count, row_room;
};

static soft_counter *counter_of(soft_worker *w) {
    return (soft_counter *)(void *)w->counts;
}

/* Where an access goes; SPACES: into the device's own memory, or to a value that comes with the launch. */
static count_space find_space(const soft_counter *c, uint64_t at) {
    const soft_worker *w = c->worker;
    uint64_t inside = at - (uint64_t)(uintptr_t)w;
    if (inside < SOFT_REGION_BYTES) {
        uint64_t shared = at - (uint64_t)(uintptr_t)w->threadgroup_memory;
        return inside >= SOFT_STACKS_AT                ? SPACE_PRIVATE
               : shared < sizeof w->threadgroup_memory ? SPACE_THREADGROUP
                                                       : SPACES;
    }
    count_space space;
    if (counted_memory_find(c->memory, at, &space))
        return space;
    const uint64_t in_launch = at - (uint64_t)(uintptr_t)w->launch;
    return in_launch < sizeof *w->launch ? SPACES : SPACE_CONSTANT; /* a table of the kernel */
}

/* Bytes from each lane to the next, if they are the same for all lanes at all times. */
static void note_stride(const simd_access *a, uint64_t *n) {
    const uint64_t step = a->lanes > 1 ? a->at[1] - a->at[0] : 0;
    bool is_same = a->lanes > 1;
    for (int i = 1; i < a->lanes && is_same; i++)
        is_same = a->at[i] - a->at[i - 1] == step;
    const bool is_first = n[COUNT_TIMES] == 1;
    if (a->lanes > 1)
        n[COUNT_STRIDE] = is_same && (is_first || n[COUNT_STRIDE] == step) ? step : COUNT_MIXED;
}

static void fold_access(soft_counter *c, site *s, const soft_site *kept, uint32_t n) {
    simd_access a = {
        .bytes = s->bytes, .is_load = s->kind == PLACE_LOAD, .is_atomic = s->kind == PLACE_ATOMIC};
    for (int lane = 0; lane < SOFT_LANES; lane++)
        if (kept->times[lane] > n) {
            a.lane[a.lanes] = (uint8_t)lane;
            a.at[a.lanes++] = kept->at[(size_t)lane * kept->room + n];
        }
    count_space space = find_space(c, a.at[0]);
    if (space == SPACE_THREADGROUP)
        a.bytes = s->shared;
    if (space == SPACES || a.bytes == 0 ||
        (a.is_load && counted_memory_is_had(c->memory, a.at[0], (uint32_t)(s - c->sites), a.lanes)))
        return;
    uint64_t *sum = s->n[space];
    sum[COUNT_TIMES]++;
    sum[COUNT_LANES] += (uint64_t)a.lanes;
    sum[COUNT_BYTES] += (uint64_t)a.lanes * a.bytes;
    note_stride(&a, sum);
    if (space == SPACE_THREADGROUP)
        counted_memory_threadgroup(&a, sum);
    else if (space != SPACE_PRIVATE)
        counted_memory_device(c->memory, &a, sum);
}

/* More accesses than there is room for: the lanes are known, not where they went. */
static void fold_unseen(site *s, const soft_site *kept) {
    for (int lane = 0; lane < SOFT_LANES; lane++)
        if (kept->times[lane] > kept->room) {
            uint64_t more = kept->times[lane] - kept->room;
            s->n[SPACE_DEVICE][COUNT_UNSEEN] += more;
            s->n[SPACE_DEVICE][COUNT_LANES] += more;
            s->n[SPACE_DEVICE][COUNT_BYTES] += more * s->bytes;
        }
}

static void fold_block(soft_counter *c, site *s, const soft_site *kept) {
    uint32_t most = 0;
    for (int lane = 0; lane < SOFT_LANES; lane++) {
        most = kept->times[lane] > most ? kept->times[lane] : most;
        s->n[0][COUNT_LANES] += kept->times[lane];
    }
    s->n[0][COUNT_TIMES] += most;
    c->work[c->worker->running->index] += (uint64_t)most * s->bytes;
    if (s->kind == PLACE_BARRIER)
        c->barrier = (uint32_t)(s - c->sites);
}

/* How often a lane came to the site at most, of the times that are kept; the larger of that and `most`. */
static uint32_t find_most(site *s, const soft_site *kept, uint32_t most) {
    s->most = 0;
    for (int lane = 0; lane < SOFT_LANES; lane++)
        s->most = kept->times[lane] > s->most ? kept->times[lane] : s->most;
    s->most = s->most < kept->room ? s->most : kept->room;
    return s->most > most ? s->most : most;
}

static void fold(soft_worker *w) {
    soft_counter *c = counter_of(w);
    const soft_counts *h = &c->hooks;
    uint32_t most = 0;
    counted_memory_begin_simdgroup(c->memory, w->running->index);
    for (soft_u32 i = 0; i < h->used_count; i++) {
        const soft_u32 at = h->used[i];
        const soft_site *kept = &h->sites[at];
        if (c->sites[at].kind == PLACE_LOAD || c->sites[at].kind == PLACE_STORE ||
            c->sites[at].kind == PLACE_ATOMIC)
            most = find_most(&c->sites[at], kept, most);
        else
            fold_block(c, &c->sites[at], kept);
    }
    for (uint32_t n = 0; n < most; n++)
        for (soft_u32 i = 0; i < h->used_count; i++) {
            const soft_site *kept = &h->sites[h->used[i]];
            if (n < c->sites[h->used[i]].most)
                fold_access(c, &c->sites[h->used[i]], kept, n);
        }
    for (soft_u32 i = 0; i < h->used_count; i++) {
        soft_site *kept = &h->sites[h->used[i]];
        if (kept->at)
            fold_unseen(&c->sites[h->used[i]], kept);
        memset(kept->times, 0, sizeof kept->times);
        kept->is_used = 0;
    }
    c->hooks.used_count = 0;
    c->hooks.last = 0;
}

static soft_u32 grow(soft_worker *w, soft_u32 at, soft_u32 n) {
    soft_counter *c = counter_of(w);
    soft_site *s = &c->hooks.sites[at];
    uint32_t room = s->room ? 2 * s->room : FIRST_ROOM;
    uint64_t more = (uint64_t)(room - s->room) * SOFT_LANES * sizeof *s->at;
    if (n >= MOST_ROOM || c->kept_bytes + more > MOST_BYTES)
        return 0;
    soft_u64 *moved = array_new((size_t)room * SOFT_LANES, sizeof *moved);
    for (size_t lane = 0; lane < SOFT_LANES && s->at; lane++)
        memcpy(moved + lane * room, s->at + lane * s->room, s->room * sizeof *moved);
    free(s->at);
    s->at = moved;
    s->room = room;
    c->kept_bytes += more;
    return 1;
}

/* Launches ------------------------------------------------------------------------------------- */

soft_counter *soft_counter_new(soft_worker *w) {
    soft_counter *c = array_new(1, sizeof *c);
    c->worker = w;
    c->memory = counted_memory_new();
    c->hooks.fold = fold;
    c->hooks.grow = grow;
    w->counts = &c->hooks;
    return c;
}

static void forget_sites(soft_counter *c) {
    for (size_t i = 0; i < c->count; i++)
        free(c->hooks.sites[i].at);
    free(c->hooks.sites);
    free(c->hooks.used);
    free(c->sites);
    c->hooks.sites = NULL;
    c->hooks.used = NULL;
    c->sites = NULL;
    c->count = 0;
    c->kept_bytes = 0;
}

void soft_counter_free(soft_counter *c) {
    if (!c)
        return;
    c->worker->counts = NULL;
    forget_sites(c);
    counted_memory_free(c->memory);
    free(c->rows);
    free(c);
}

/* What the engine must know of the sites; the program reads the rest. */
static bool read_sites(soft_counter *c, const char *text) {
    unsigned long count = 0;
    if (!text || sscanf(text, SITES_HEAD "%lu", &count) != 1 || count > MOST_SITES)
        return false;
    c->count = count;
    c->sites = array_new(count + 1, sizeof *c->sites);
    c->hooks.sites = array_new(count + 1, sizeof *c->hooks.sites);
    c->hooks.used = array_new(count + 1, sizeof *c->hooks.used);
    for (text = strchr(text, '\n'); text && text[1]; text = strchr(text + 1, '\n')) {
        unsigned long at;
        unsigned work[WORKS];
        char kind;
        if (sscanf(text + 1, "%lu %c %*d %u %u %u %u %u", &at, &kind, &work[0], &work[1], &work[2],
                   &work[3], &work[4]) != 7 ||
            at >= count)
            continue;
        if (kind == PLACE_ARRAY)
            continue;
        c->sites[at].kind = kind;
        c->sites[at].bytes += kind == PLACE_BLOCK ? work[WORK_ALL] : work[0];
        c->sites[at].shared = work[1];
    }
    return true;
}

bool soft_counter_begin(soft_counter *c, const char *sites, const soft_bound bound[SOFT_BUFFERS]) {
    forget_sites(c);
    counted_memory_begin(c->memory);
    c->hooks.used_count = c->hooks.last = 0;
    memset(c->work, 0, sizeof c->work);
    c->simdgroups = c->lanes = 0;
    for (int i = 0; i < SOFT_BUFFERS; i++)
        if (bound[i].is_bound && bound[i].bytes)
            counted_memory_add(c->memory, (uint64_t)(uintptr_t)bound[i].begin,
                               bound[i].is_once ? bound[i].element_bytes : bound[i].bytes,
                               bound[i].is_value      ? SPACES
                               : bound[i].is_constant ? SPACE_CONSTANT
                                                      : SPACE_DEVICE,
                               bound[i].is_once);
    return read_sites(c, sites);
}

/* Simdgroups that did not need a constant have loaded it too. */
static void add_idle_loads(soft_counter *c) {
    counted_once once;
    for (int i = 0; counted_memory_get_once(c->memory, i, &once); i++) {
        const uint64_t idle = c->simdgroups - once.simdgroups, lanes = c->lanes - once.lanes;
        const uint64_t bytes = c->sites[once.site].bytes;
        uint64_t *n = c->sites[once.site].n[SPACE_CONSTANT];
        n[COUNT_TIMES] += idle;
        n[COUNT_SECTORS] += idle;
        n[COUNT_LINES] += idle;
        n[COUNT_LANES] += lanes;
        n[COUNT_BYTES] += lanes * bytes;
        n[COUNT_USED] += idle * bytes;
        n[COUNT_NEW_SIMD] += idle * bytes;
    }
}

const counted_row *soft_counter_end(soft_counter *c, size_t *count) {
    c->row_count = 0;
    add_idle_loads(c);
    for (size_t i = 0; i < c->count; i++)
        for (uint32_t k = 0; k < SPACES; k++) {
            const uint64_t *n = c->sites[i].n[k];
            if (!n[COUNT_LANES])
                continue;
            counted_row *r = ARRAY_ADD(c->rows, c->row_count, c->row_room);
            *r = (counted_row){.site = (uint32_t)i, .space = k};
            memcpy(r->n, n, sizeof r->n);
        }
    *count = c->row_count;
    return c->rows;
}

void soft_counter_begin_group(soft_worker *w) {
    soft_counter *c = counter_of(w);
    counted_memory_begin_group(c->memory);
    c->simdgroups += (w->group_total + SOFT_LANES - 1) / SOFT_LANES;
    c->lanes += w->group_total;
}

void soft_counter_pause(soft_worker *w) {
    fold(w);
}

void soft_counter_end_phase(soft_worker *w) {
    soft_counter *c = counter_of(w);
    const uint32_t groups = (w->group_total + SOFT_LANES - 1) / SOFT_LANES;
    uint64_t most = 0, sum = 0, *n = c->sites[c->barrier].n[0];
    for (uint32_t i = 0; i < groups; i++) {
        most = c->work[i] > most ? c->work[i] : most;
        sum += c->work[i];
        c->work[i] = 0;
    }
    n[COUNT_WORK_MOST] += most;
    n[COUNT_WORK_MEAN] += sum / groups;
}
