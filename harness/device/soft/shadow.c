/* shadow: see shadow.h. Two accesses race if they share a byte, at least one stores, not both are
 * atomic, different threads made them and nothing orders them. */
#if defined(__linux__)
#define _GNU_SOURCE /* MAP_NORESERVE */
#endif
#include "shadow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi.h"
#include "harness/base/array.h"

enum { LANES = SOFT_LANES, FIRST_ATOMICS = 64 };

static shadow_cell *map_cells(size_t count) {
    int flags = MAP_PRIVATE | MAP_ANON;
#if defined(MAP_NORESERVE)
    flags |= MAP_NORESERVE;
#endif
    void *at = mmap(NULL, count * sizeof(shadow_cell), PROT_READ | PROT_WRITE, flags, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static size_t count_cells(const shadow *s) {
    return s->bytes / s->unit;
}

bool shadow_open(shadow *s, uintptr_t begin, size_t bytes, unsigned unit, bool is_shared) {
    uintptr_t first = begin & ~(uintptr_t)3;
    *s = (shadow){.begin = first,
                  .bytes = (begin + bytes - first + 3) & ~(size_t)3,
                  .unit = unit,
                  .is_shared = is_shared};
    s->cells = map_cells(count_cells(s));
    s->fine = map_cells(s->bytes);
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

/* Keeps two of many accesses, as the head of shadow.h says. */
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

shadow_atomic *shadow_find_atomic(shadow *s, uintptr_t word) {
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
        shadow_atomic *a = shadow_find_atomic(s, word);
        if (t->now->how & SOFT_STORE)
            remember(s, a->store, t->now);
        else
            remember(s, a->load, t->arrived);
        c->store.atomics = 1;
    } else if (c->store.atomics) {
        const shadow_atomic *a = shadow_find_atomic(s, word);
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
