/* shadow: who touched a piece of memory last, and whether that races with who touches it now.
 *
 * Exact to the byte. A cell stands for one unit of memory (4 bytes, or 2 where the elements are 16
 * bits wide). The first access to only a part of a unit splits it into cells of a byte each. Cells
 * are 48 bytes, in memory that is only there where it was touched: 12 bytes per byte of 32-bit
 * elements, 24 per byte of 16-bit elements, 60 where bytes are stored one by one. Atomic accesses
 * are kept aside, one record per word that has any.
 *
 * What is kept of many loads of a unit is two of them: any that comes, and one of another
 * threadgroup, else of another simdgroup, else of another lane. For every store that may follow,
 * if one of the loads races with it, one of these two does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

/* An access: who, when, where in the code. All zero: none (threadgroups count from 1). */
typedef struct {
    uint32_t group : 24;  /* threadgroup */
    uint32_t fences : 6;  /* release fences the thread has passed: the low bits of their number */
    uint32_t split : 1;   /* of a cell's store: its bytes have cells of their own */
    uint32_t atomics : 1; /* of a cell's store: there are atomic accesses, kept aside */
    uint32_t thread : 10; /* index in the threadgroup */
    uint32_t epoch : 22;  /* the last threadgroup barrier passed that orders this kind of memory */
    uint32_t simd_epoch : 22;  /* the last simdgroup barrier passed, likewise */
    uint32_t more_fences : 10; /* the high bits */
    uint32_t pc : 24;          /* offset in the kernel's image */
    uint32_t how : 3;          /* SOFT_STORE, SOFT_ATOMIC */
    uint32_t bytes : 5;
} shadow_access;

typedef struct {
    shadow_access store, load[2];
} shadow_cell;

/* The atomic accesses of a word. */
typedef struct {
    uintptr_t word;
    shadow_access store[2], load[2];
    uint32_t release, release_group; /* of checked_sync.c: who released by it, and when */
} shadow_atomic;

typedef struct {
    uintptr_t begin; /* aligned to 4 */
    size_t bytes;
    unsigned unit;          /* bytes per cell: 4 or 2 */
    bool is_shared;         /* by all threadgroups of the launch: device memory */
    shadow_cell *cells;     /* one per unit */
    shadow_cell *fine;      /* one per byte, used where a unit is split */
    shadow_atomic *atomics; /* a hash table */
    size_t atomic_count, atomic_room;
} shadow;

/* Is there another order, beyond barriers, that puts `before` in front of `now`? */
typedef bool shadow_order(void *context, const shadow_access *before, const shadow_access *now,
                          bool is_shared);

/* unit: 2 or 4. False when there is no memory for it. */
bool shadow_open(shadow *s, uintptr_t begin, size_t bytes, unsigned unit, bool is_shared);
void shadow_close(shadow *s);

/* Judges an access to `bytes` bytes at an address inside and remembers it. True if it races, with
 * *other the access it races with. `arrived` is the same access with all barriers counted that the
 * thread has passed, also those that order no memory: a load is over when its thread arrives at
 * one, so a store after any barrier comes after it. */
bool shadow_judge(shadow *s, uintptr_t at, size_t bytes, const shadow_access *now,
                  const shadow_access *arrived, shadow_order *order, void *context,
                  shadow_access *other);

/* The record of a word with atomic accesses. */
shadow_atomic *shadow_find_atomic(shadow *s, uintptr_t word);

/* When a thread accesses: its threadgroup, itself, and barriers passed that order this memory, and
 * all barriers passed. */
typedef struct {
    uint32_t group, thread, epoch, simd_epoch, phase, simd_phase;
} shadow_moment;

/* Is a load of one whole unit right and nothing new? Most loads of shared memory are: what was
 * stored there is ordered before, and two lanes of this simdgroup loaded it already since the last
 * barrier. Says no when in doubt. */
static inline bool shadow_knows_load(const shadow *s, uintptr_t at, size_t bytes,
                                     const shadow_moment *m) {
    const shadow_cell *c = &s->cells[(at - s->begin) / s->unit];
    const shadow_access *a = &c->load[0], *b = &c->load[1];
    const uint32_t simd = m->thread / SOFT_LANES;
    return bytes == s->unit && (at - s->begin) % s->unit == 0 && !c->store.split &&
           !c->store.atomics && c->store.group == m->group &&
           (c->store.epoch < m->epoch || c->store.thread == m->thread ||
            (c->store.thread / SOFT_LANES == simd && c->store.simd_epoch < m->simd_epoch)) &&
           a->group == m->group && b->group == m->group && a->epoch == m->phase &&
           b->epoch == m->phase && a->simd_epoch == m->simd_phase &&
           b->simd_epoch == m->simd_phase && a->thread / SOFT_LANES == simd &&
           b->thread / SOFT_LANES == simd;
}
