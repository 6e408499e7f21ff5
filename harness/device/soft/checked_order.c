/* checked_order: what comes before what, and who touched a piece of memory last. Two accesses race if they
 * share a byte, at least one stores, not both are atomic, different threads made them and nothing orders
 * them.
 *
 * Barriers order the threads of a threadgroup or simdgroup; fences with atomics order any two threads:
 * what a thread did before a releasing fence and an atomic store comes before what another does after it
 * read that store, or an atomic update that follows it, and passed an acquiring fence.
 *
 * Both hold in any chain. Releases and acquires are nodes of a graph: an acquire leads to the
 * releases that it read, and a release to the acquires that come before it, by barriers or in its own
 * thread. Every step must order the kind of memory that is asked about, for both threads.
 *
 * A fence also gives a barrier with mem_none what it lacks: it orders the memory it names across
 * that barrier, whether it stands before or after. */
#include "arena.h"
#include "checker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "harness/base/array.h"

/* Shadows -------------------------------------------------------------------------------------- */

enum { LANES = SOFT_LANES, FIRST_ATOMICS = 64 };

static size_t count_cells(const shadow *s) {
    return s->bytes / s->unit;
}

bool shadow_open(shadow *s, uintptr_t begin, size_t bytes, unsigned unit, bool is_shared) {
    uintptr_t first = begin & ~(uintptr_t)3;
    *s = (shadow){.begin = first,
                  .bytes = (begin + bytes - first + 3) & ~(size_t)3,
                  .unit = unit,
                  .is_shared = is_shared};
    s->cells = soft_map(NULL, count_cells(s) * sizeof *s->cells);
    s->fine = soft_map(NULL, s->bytes * sizeof *s->fine);
    if (s->cells && s->fine)
        return true;
    shadow_close(s);
    return false;
}

void shadow_close(shadow *s) {
    if (s->cells)
        munmap(s->cells, count_cells(s) * sizeof *s->cells);
    if (s->fine)
        munmap(s->fine, s->bytes * sizeof *s->fine);
    free(s->atomics);
    *s = (shadow){0};
}

/* Order ---------------------------------------------------------------------------------------- */

typedef struct {
    const shadow *shadow;
    const shadow_access *now, *arrived;
    shadow_order *order;
    void *context;
    shadow_access *other;
} trial;

static unsigned simd_of(const shadow_access *a) {
    return a->thread / LANES;
}

static bool is_ordered(const shadow_access *before, const shadow_access *now) {
    if (before->group != now->group)
        return false;
    return before->thread == now->thread || before->epoch < now->epoch ||
           (simd_of(before) == simd_of(now) && before->simd_epoch < now->simd_epoch);
}

static bool races(const trial *t, const shadow_access *before) {
    if (before->group == 0 || (!t->shadow->is_shared && before->group != t->now->group) ||
        is_ordered(before, before->how & SOFT_STORE ? t->now : t->arrived) ||
        t->order(t->context, before, t->now, t->shadow->is_shared))
        return false;
    *t->other = *before;
    return true;
}

static bool one_races(const trial *t, const shadow_access two[2]) {
    return races(t, &two[0]) || races(t, &two[1]);
}

/* Keeps two of many accesses, as checker.h says of shadows. */
static void remember(const shadow *s, shadow_access two[2], const shadow_access *now) {
    shadow_access *a = &two[0], *b = &two[1];
    if (a->group == 0 || (!s->is_shared && a->group != now->group)) {
        *a = *now;
        *b = (shadow_access){0};
    } else if (a->group != now->group) {
        *b = *now;
    } else if (b->group != 0 && b->group != now->group) {
        *a = *now;
    } else if (now->epoch > a->epoch) {
        *a = *now;
        *b = (shadow_access){0};
    } else if (simd_of(a) != simd_of(now)) {
        *b = *now;
    } else if (b->group != 0 && simd_of(b) != simd_of(now)) {
        *a = *now;
    } else if (now->simd_epoch > a->simd_epoch) {
        *a = *now;
        *b = (shadow_access){0};
    } else if (a->thread == now->thread) {
        *a = *now;
    } else {
        *b = *now;
    }
}

/* Atomics -------------------------------------------------------------------------------------- */

static shadow_atomic *probe(const shadow *s, uintptr_t word) {
    size_t i = (size_t)((word >> 2) * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (s->atomic_room - 1);
    while (s->atomics[i].word && s->atomics[i].word != word)
        i = (i + 1) & (s->atomic_room - 1);
    return &s->atomics[i];
}

/* The record of a word with atomic accesses. */
static shadow_atomic *find_atomic(shadow *s, uintptr_t word) {
    if (2 * (s->atomic_count + 1) > s->atomic_room) {
        shadow_atomic *old = s->atomics;
        size_t room = s->atomic_room;
        s->atomic_room = room ? 2 * room : FIRST_ATOMICS;
        s->atomics = array_new(s->atomic_room, sizeof *s->atomics);
        for (size_t i = 0; i < room; i++)
            if (old[i].word)
                *probe(s, old[i].word) = old[i];
        free(old);
    }
    shadow_atomic *found = probe(s, word);
    s->atomic_count += found->word == 0;
    found->word = word;
    return found;
}

/* Cells ---------------------------------------------------------------------------------------- */

/* One cell and one access that is not atomic. */
static bool judge_plain(const trial *t, shadow_cell *c) {
    bool is_store = t->now->how & SOFT_STORE;
    bool found = races(t, &c->store) || (is_store && one_races(t, c->load));
    if (!is_store) {
        remember(t->shadow, c->load, t->arrived);
        return found;
    }
    const shadow_access was = c->store;
    c->store = *t->now;
    c->store.split = was.split;
    c->store.atomics = was.atomics;
    memset(c->load, 0, sizeof c->load);
    return found;
}

static bool judge_atomic(const trial *t, const shadow_cell *c) {
    return races(t, &c->store) || (t->now->how & SOFT_STORE && one_races(t, c->load));
}

static void split(shadow *s, size_t index) {
    shadow_cell *whole = &s->cells[index], *parts = &s->fine[index * s->unit];
    for (unsigned i = 0; i < s->unit; i++)
        parts[i] = *whole;
    whole->store.split = 1;
}

/* The part of an access that lies in one unit: n bytes from byte `first` of it. */
static bool judge_unit(const trial *t, size_t index, unsigned first, unsigned n) {
    shadow *s = (shadow *)(uintptr_t)t->shadow;
    shadow_cell *c = &s->cells[index];
    bool is_atomic = t->now->how & SOFT_ATOMIC, found = false;
    if (n < s->unit && !c->store.split)
        split(s, index);
    if (!c->store.split)
        found = is_atomic ? judge_atomic(t, c) : judge_plain(t, c);
    for (unsigned i = first; c->store.split && i < first + n; i++) {
        shadow_cell *part = &s->fine[index * s->unit + i];
        bool one = is_atomic ? judge_atomic(t, part) : judge_plain(t, part);
        found = found || one;
    }
    uintptr_t word = (s->begin + index * s->unit) & ~(uintptr_t)3;
    if (is_atomic) {
        shadow_atomic *a = find_atomic(s, word);
        if (t->now->how & SOFT_STORE)
            remember(s, a->store, t->now);
        else
            remember(s, a->load, t->arrived);
        c->store.atomics = 1;
    } else if (c->store.atomics) {
        const shadow_atomic *a = find_atomic(s, word);
        bool one = one_races(t, a->store) || (t->now->how & SOFT_STORE && one_races(t, a->load));
        found = found || one;
    }
    return found;
}

bool shadow_judge(shadow *s, uintptr_t at, size_t bytes, const shadow_access *now,
                  const shadow_access *arrived, shadow_order *order, void *context,
                  shadow_access *other) {
    const trial t = {s, now, arrived, order, context, other};
    bool found = false;
    for (size_t done = 0; done < bytes;) {
        size_t offset = at + done - s->begin;
        unsigned first = (unsigned)(offset % s->unit), n = s->unit - first;
        n = n < bytes - done ? n : (unsigned)(bytes - done);
        bool one = judge_unit(&t, offset / s->unit, first, n);
        found = found || one;
        done += n;
    }
    return found;
}

/* Fences and atomics --------------------------------------------------------------------------- */

enum {
    MEMORIES = 2,
    ARRIVED = 2,         /* in a sync_place: whatever memory a barrier orders */
    MOST_FENCES = 65535, /* later ones are one */
    LOOK_BACK = 16,      /* acquires that are compared with a new one */
    BITS_22 = 0x3FFFFF
};

shadow_access checker_now(const soft_checker *c, bool is_device, unsigned how, size_t bytes,
                          const void *pc) {
    uint32_t t = checker_thread(c->worker), kind = is_device ? 0 : 1;
    return (shadow_access){.group = c->group & 0xFFFFFF,
                           .fences = c->sync.fences[t] & 0x3Fu,
                           .more_fences = (c->sync.fences[t] >> 6) & 0x3FFu,
                           .thread = t & 0x3FF,
                           .epoch = c->epoch[kind][t] & 0x3FFFFF,
                           .simd_epoch = c->simd_epoch[kind][t] & 0x3FFFFF,
                           .pc = (uint32_t)((uintptr_t)pc - c->image_begin) & 0xFFFFFF,
                           .how = how & (SOFT_STORE | SOFT_ATOMIC),
                           .bytes = (unsigned)bytes & 0x1F};
}

shadow_access checker_arrived(const soft_checker *c, shadow_access now) {
    now.epoch = c->phase & 0x3FFFFF;
    now.simd_epoch = c->simd_phase[now.thread / SOFT_LANES] & 0x3FFFFF;
    return now;
}

/* The memory of a barrier or a fence, as bits: device 1, threadgroup 2. */
static void order_memory(soft_checker *c, uint32_t t, soft_u32 flags, bool whole) {
    for (int k = 0; k < MEMORIES; k++) {
        if (!(flags >> k & 1))
            continue;
        if (whole)
            c->epoch[k][t] = c->phase;
        else
            c->simd_epoch[k][t] = c->simd_phase[t / SOFT_LANES];
    }
}

void checker_barrier(soft_worker *w, soft_u32 flags, soft_u32 whole_threadgroup) {
    soft_checker *c = checker_of(w);
    uint32_t t = checker_thread(w);
    order_memory(c, t, flags | c->fenced[t], whole_threadgroup);
    c->fenced[t] = 0;
}

static sync_place get_place(const soft_checker *c, uint32_t t) {
    const uint32_t simd = c->simd_phase[t / SOFT_LANES];
    return (sync_place){
        .group = c->group & 0xFFFFFF,
        .epoch = {c->epoch[0][t] & BITS_22, c->epoch[1][t] & BITS_22, c->phase & BITS_22},
        .simd_epoch = {c->simd_epoch[0][t] & BITS_22, c->simd_epoch[1][t] & BITS_22,
                       simd & BITS_22},
        .thread = (uint16_t)t,
        .fences = c->sync.fences[t]};
}

static void add_acquire(sync_state *s, const sync_acquire *a) {
    for (size_t i = s->acquire_count, n = 0; i-- > 0 && n < LOOK_BACK; n++) {
        const sync_acquire *o = &s->acquires[i];
        if (o->at.group == a->at.group && o->at.thread == a->at.thread &&
            o->release == a->release && o->scope >= a->scope && !(a->memory & ~o->memory))
            return; /* known already */
    }
    *ARRAY_ADD(s->acquires, s->acquire_count, s->acquire_room) = *a;
}

void checker_sync(soft_worker *w, soft_u32 flags, soft_u32 order, soft_u32 scope) {
    soft_checker *c = checker_of(w);
    sync_state *s = &c->sync;
    uint32_t t = checker_thread(w);
    if (!order || !flags || scope == SOFT_SCOPE_THREAD)
        return;
    s->is_used = true;
    c->fenced[t] |= (uint8_t)(flags & 3);
    order_memory(c, t, flags, false);
    if (scope >= SOFT_SCOPE_THREADGROUP)
        order_memory(c, t, flags, true);
    while (order & SOFT_ACQUIRES && s->seen[t]) {
        sync_sight *seen = &s->sights[s->seen[t] - 1];
        add_acquire(s, &(sync_acquire){.at = get_place(c, t),
                                       .release = seen->release,
                                       .memory = (uint8_t)(flags & 3),
                                       .scope = (uint8_t)scope});
        const uint32_t next = seen->next;
        seen->next = s->free_sight;
        s->free_sight = s->seen[t];
        s->seen[t] = next;
    }
    if (order & SOFT_RELEASES) {
        s->fences[t] = (uint16_t)(s->fences[t] < MOST_FENCES ? s->fences[t] + 1 : MOST_FENCES);
        s->last[t] = (sync_release){.at = get_place(c, t),
                                    .known = (uint32_t)s->acquire_count,
                                    .memory = (uint8_t)(flags & 3),
                                    .scope = (uint8_t)scope};
    }
}

/* A thread read what a release left in a word: an acquiring fence may follow. */
static void note_sight(sync_state *s, uint32_t t, uintptr_t word, uint32_t release) {
    uint32_t i = s->seen[t];
    while (i && s->sights[i - 1].word != word)
        i = s->sights[i - 1].next;
    if (!i) {
        i = s->free_sight;
        if (i)
            s->free_sight = s->sights[i - 1].next;
        else {
            ARRAY_ADD(s->sights, s->sight_count, s->sight_room);
            i = (uint32_t)s->sight_count;
        }
        s->sights[i - 1] = (sync_sight){.word = word, .next = s->seen[t]};
        s->seen[t] = i;
    }
    s->sights[i - 1].release = release;
}

/* Adds the thread's last release to those that a reader of the word learns of; 0: it has none. */
static uint32_t add_release(sync_state *s, uint32_t t, uint32_t before) {
    const sync_release *made = s->made[t] ? &s->releases[s->made[t] - 1] : NULL;
    if (!s->last[t].scope)
        return before;
    if (before && made && made->at.fences == s->last[t].at.fences &&
        made->sequence == s->releases[before - 1].sequence)
        return before; /* it is among them already */
    sync_release r = s->last[t];
    const uint32_t index = (uint32_t)s->release_count + 1;
    r.before = before;
    r.sequence = before ? s->releases[before - 1].sequence : index;
    *ARRAY_ADD(s->releases, s->release_count, s->release_room) = r;
    return s->made[t] = index;
}

void checker_pass_word(soft_checker *c, shadow *memory, uintptr_t word, unsigned how) {
    sync_state *s = &c->sync;
    shadow_atomic *a = find_atomic(memory, word);
    const uint32_t t = checker_thread(c->worker);
    if (!memory->is_shared && a->release_group != c->group)
        a->release = 0; /* of another threadgroup's variable */
    if (a->release && checker_reads(how))
        note_sight(s, t, word, a->release);
    if (!(how & SOFT_STORE))
        return;
    a->release = add_release(s, t, how & SOFT_UPDATE ? a->release : 0);
    a->release_group = c->group;
}

/* Is an access of the threadgroup over before its thread, or another one, comes to a place? */
static bool is_over(const shadow_access *a, const sync_place *p, int kind) {
    const int k = a->how & SOFT_STORE ? kind : ARRIVED;
    const uint32_t fences = a->fences | (uint32_t)a->more_fences << 6;
    if (a->group != p->group)
        return false;
    if (a->thread == p->thread)
        return fences < p->fences || fences == MOST_FENCES;
    return a->epoch < p->epoch[k] ||
           (a->thread / SOFT_LANES == p->thread / SOFT_LANES && a->simd_epoch < p->simd_epoch[k]);
}

/* Does a place of the same threadgroup, reached later, know what was acquired at another? */
static bool passes_on(const sync_place *from, const sync_place *to, int kind) {
    return from->thread == to->thread || from->epoch[kind] < to->epoch[kind] ||
           (from->thread / SOFT_LANES == to->thread / SOFT_LANES &&
            from->simd_epoch[kind] < to->simd_epoch[kind]);
}

/* The scope that fences of two threads must have. */
static unsigned get_scope(const sync_place *a, const sync_place *b) {
    return a->group != b->group                               ? SOFT_SCOPE_DEVICE
           : a->thread / SOFT_LANES != b->thread / SOFT_LANES ? SOFT_SCOPE_THREADGROUP
                                                              : SOFT_SCOPE_SIMDGROUP;
}

/* Looks for the access before the releases that are known at a place, by the first `known` acquires;
 * those that do not know of it themselves are left on the list. */
static bool look_before(sync_state *s, const shadow_access *before, int kind, const sync_place *at,
                        size_t known) {
    for (size_t i = known; i-- > 0 && s->acquires[i].at.group == at->group;) {
        const sync_acquire *a = &s->acquires[i];
        if (!(a->memory >> kind & 1) || !passes_on(&a->at, at, kind))
            continue;
        for (uint32_t n = a->release; n; n = s->releases[n - 1].before) {
            sync_release *r = &s->releases[n - 1];
            const unsigned wanted = get_scope(&r->at, &a->at);
            if (r->at.group < before->group)
                break; /* it was made before the access */
            if (r->query == s->query || !(r->memory >> kind & 1) || r->scope < wanted ||
                a->scope < wanted)
                continue;
            if (is_over(before, &r->at, kind))
                return true;
            r->query = s->query;
            *ARRAY_ADD(s->todo, s->todo_count, s->todo_room) = n - 1;
        }
    }
    return false;
}

static bool find_order(sync_state *s, const shadow_access *before, const shadow_access *now,
                       bool is_shared) {
    const int kind = is_shared ? 0 : 1;
    sync_place at = {.group = now->group, .thread = (uint16_t)now->thread};
    at.epoch[kind] = now->epoch;
    at.simd_epoch[kind] = now->simd_epoch;
    size_t known = s->acquire_count;
    s->todo_count = 0;
    s->query++;
    while (!look_before(s, before, kind, &at, known)) {
        if (s->todo_count == 0)
            return false;
        const sync_release *r = &s->releases[s->todo[--s->todo_count]];
        at = r->at;
        known = r->known;
    }
    return true;
}

/* Fences order memory for the whole device, but a plain store reaches other threadgroups only in
 * memory that is coherent for the device (MSL 4.8). */
bool checker_is_ordered(void *context, const shadow_access *before, const shadow_access *now,
                        bool is_shared) {
    soft_checker *c = context;
    if (!c->sync.is_used || !find_order(&c->sync, before, now, is_shared))
        return false;
    c->is_stale = is_shared && c->is_incoherent && before->group != now->group &&
                  before->how == SOFT_STORE && now->how == SOFT_LOAD;
    return !c->is_stale;
}

void checker_sync_begin(soft_checker *c) {
    c->sync.is_used = false;
    c->sync.release_count = c->sync.acquire_count = 0;
}

void checker_sync_begin_group(soft_checker *c) {
    c->sync.sight_count = c->sync.free_sight = 0;
    memset(c->sync.seen, 0, sizeof c->sync.seen);
    memset(c->sync.made, 0, sizeof c->sync.made);
    memset(c->sync.last, 0, sizeof c->sync.last);
    memset(c->sync.fences, 0, sizeof c->sync.fences);
    memset(c->fenced, 0, sizeof c->fenced);
    memset(c->epoch, 0, sizeof c->epoch);
    memset(c->simd_epoch, 0, sizeof c->simd_epoch);
    memset(c->simd_phase, 0, sizeof c->simd_phase);
    c->phase = 0;
}

void checker_sync_free(soft_checker *c) {
    free(c->sync.releases);
    free(c->sync.acquires);
    free(c->sync.sights);
    free(c->sync.todo);
}
