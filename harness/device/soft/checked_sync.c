/* checked_sync: what comes before what. Barriers order the threads of a threadgroup or simdgroup;
 * fences with atomics order any two threads: what a thread did before a releasing fence and an
 * atomic store comes before what another does after it read that word atomically and passed an
 * acquiring fence.
 *
 * A fence also gives a barrier with mem_none what it lacks: it orders the memory it names across
 * that barrier, whether it stands before or after. */
#include "checker.h"
#include "harness/base/array.h"

#include <stdlib.h>
#include <string.h>

enum { MEMORIES = 2, MOST_FENCES = 65535, /* later ones are one */ MOST_STEPS = 3 };

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
    for (size_t i = s->group_sights; order & SOFT_ACQUIRES && i < s->sight_count; i++)
        s->sights[i].is_fenced = true;
    if (order & SOFT_RELEASES) {
        s->fences[t] = (uint16_t)(s->fences[t] < MOST_FENCES ? s->fences[t] + 1 : MOST_FENCES);
        s->last[t] = (sync_release){.group = c->group,
                                    .thread = (uint16_t)t,
                                    .fences = s->fences[t],
                                    .memory = (uint8_t)(flags & 3),
                                    .scope = (uint8_t)scope,
                                    .epoch = {c->epoch[0][t], c->epoch[1][t]}};
    }
}

void checker_pass_word(soft_checker *c, uintptr_t word, unsigned how) {
    sync_state *s = &c->sync;
    uint32_t t = checker_thread(c->worker);
    uint64_t now = ++s->now;
    bool reads = !(how & SOFT_STORE) || how & SOFT_UPDATE;
    if (reads) {
        size_t i = s->group_sights;
        while (i < s->sight_count && (s->sights[i].word != word || s->sights[i].thread != t))
            i++;
        if (i == s->sight_count) {
            *ARRAY_ADD(s->sights, s->sight_count, s->sight_room) =
                (sync_sight){.word = word, .thread = (uint16_t)t};
        }
        s->sights[i].group = c->group;
        s->sights[i].when = now;
        s->sights[i].is_fenced = false;
    }
    if (how & SOFT_STORE && s->last[t].group == c->group) {
        sync_release r = s->last[t];
        r.word = word;
        r.when = now;
        size_t n = s->release_count;
        sync_release *before = n ? &s->releases[n - 1] : NULL;
        if (before && before->group == r.group && before->thread == r.thread &&
            before->word == word && before->fences == r.fences)
            return; /* known already */
        *ARRAY_ADD(s->releases, s->release_count, s->release_room) = r;
    }
}

/* Where the releases of a threadgroup begin: they stand in the order of threadgroups. */
static size_t find_releases(const sync_state *s, uint32_t group) {
    size_t low = 0, high = s->release_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((s->releases[middle].group & 0xFFFFFF) < group)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Was the access made before the release, as its threadgroup sees it? */
static bool is_released(const sync_release *r, const shadow_access *a, bool is_shared) {
    int kind = is_shared ? 0 : 1;
    if (!(r->memory >> kind & 1))
        return false;
    const uint32_t fences = a->fences | (uint32_t)a->more_fences << 6;
    if (r->thread == a->thread)
        return fences < r->fences || fences == MOST_FENCES;
    return a->epoch < (r->epoch[kind] & 0x3FFFFF);
}

/* Does a threadgroup know of a release, by what it saw itself or by who told it? thread: NULL for
 * any of its threads. */
static bool knows(const sync_state *s, const sync_release *r, uint32_t group,
                  const uint16_t *thread, uint64_t until, int steps) {
    for (size_t i = s->sight_count; i-- > 0;) {
        const sync_sight *a = &s->sights[i];
        if ((a->group & 0xFFFFFF) < group)
            break; /* they stand in the order of threadgroups, too */
        if ((a->group & 0xFFFFFF) != group || !a->is_fenced || a->when > until ||
            (thread && a->thread != *thread))
            continue;
        if (a->word == r->word && r->when <= a->when)
            return true;
        if (steps == 0)
            continue;
        for (size_t k = s->release_count; k-- > 0;) {
            const sync_release *by = &s->releases[k];
            if (by->word == a->word && by->when <= a->when && by->when > r->when &&
                (by->group & 0xFFFFFF) != group &&
                knows(s, r, by->group & 0xFFFFFF, NULL, by->when, steps - 1))
                return true;
        }
    }
    return false;
}

bool checker_is_ordered(void *context, const shadow_access *before, const shadow_access *now,
                        bool is_shared) {
    const soft_checker *c = context;
    const sync_state *s = &c->sync;
    if (!s->is_used)
        return false;
    bool same = before->group == now->group;
    const uint16_t thread = (uint16_t)now->thread;
    for (size_t i = find_releases(s, before->group);
         i < s->release_count && (s->releases[i].group & 0xFFFFFF) == before->group; i++) {
        const sync_release *r = &s->releases[i];
        unsigned wanted = same ? before->thread / SOFT_LANES == now->thread / SOFT_LANES
                                     ? SOFT_SCOPE_SIMDGROUP
                                     : SOFT_SCOPE_THREADGROUP
                               : SOFT_SCOPE_DEVICE;
        if (r->scope >= wanted && is_released(r, before, is_shared) &&
            knows(s, r, now->group, same ? &thread : NULL, UINT64_MAX, same ? 0 : MOST_STEPS))
            return true;
    }
    return false;
}

void checker_sync_begin(soft_checker *c) {
    c->sync.is_used = false;
    c->sync.release_count = c->sync.sight_count = c->sync.group_sights = 0;
}

void checker_sync_begin_group(soft_checker *c) {
    c->sync.group_sights = c->sync.sight_count;
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
    free(c->sync.sights);
}
