/* checked_access: is this access right? Device, threadgroup and private memory, each by its rules.
 */
#include "checker.h"

#include <stdio.h>
#include <string.h>

/* Races ---------------------------------------------------------------------------------------- */

/* The second store of two is about to happen. What it stores is seen before the next access. */
static void open_store_race(soft_checker *c, const report *r, uintptr_t at, size_t bytes) {
    store_race *s = &c->store_race;
    s->is_open = true;
    s->at = at;
    s->bytes = bytes < ACCESS_BYTES ? bytes : ACCESS_BYTES;
    s->row = *r;
    memcpy(s->first, (const void *)at, s->bytes);
    c->hooks.pending = 1;
}

void checker_settle_stores(soft_checker *c) {
    store_race *s = &c->store_race;
    if (!s->is_open)
        return;
    s->is_open = false;
    bool same = memcmp(s->first, (const void *)s->at, s->bytes) == 0;
    if (same)
        s->row.what = s->row.row.what = FINDING_SAME_STORE;
    report *r = checker_add_report(c, s->row.what, s->row.pc, s->row.buffer);
    if (r)
        *r = s->row;
}

static void race_with(soft_checker *c, const shadow_access *other, const device_region *d,
                      const variable *v, uintptr_t at, size_t bytes, unsigned how, const void *pc) {
    report row, *r = &row;
    bool in_group = other->group == (c->group & 0xFFFFFF);
    bool both_store = how & other->how & SOFT_STORE && !((how | other->how) & SOFT_ATOMIC);
    /* A bit-field shares its memory with others, whose values a store brings back: stores of other
     * lines are of other fields, and the value of the whole says nothing. */
    if (at == c->bits_at && other->pc != checker_now(c, d, how, bytes, pc).pc)
        both_store = false;
    finding_class what = in_group ? FINDING_RACE_IN_GROUP : FINDING_RACE_OF_GROUPS;
    if (!both_store)
        r = checker_add_report(c, what, pc, d ? d->index : -1);
    else
        checker_start_report(c, r, what, pc, d ? d->index : -1);
    if (!r)
        return;
    r->has_other = true;
    r->other = *other;
    const char *text = in_group      ? "races, no barrier between"
                       : c->is_stale ? "may miss what another threadgroup stored: the buffer is "
                                       "not coherent(device)"
                                     : "races across threadgroups";
    if (d)
        checker_describe(r, d->bound, at, bytes, how, text);
    else
        checker_describe_variable(r, v, at, bytes, how, text);
    if (both_store)
        open_store_race(c, r, at, bytes);
}

static bool is_known_load(const soft_checker *c, const shadow *s, uintptr_t at, size_t bytes) {
    const uint32_t t = checker_thread(c->worker), kind = s->is_shared ? 0 : 1;
    const shadow_moment m = {.group = c->group & 0xFFFFFF,
                             .thread = t,
                             .epoch = c->epoch[kind][t] & 0x3FFFFF,
                             .simd_epoch = c->simd_epoch[kind][t] & 0x3FFFFF,
                             .phase = c->phase & 0x3FFFFF,
                             .simd_phase = c->simd_phase[t / SOFT_LANES] & 0x3FFFFF};
    return shadow_knows_load(s, at, bytes, &m);
}

/* Device memory -------------------------------------------------------------------------------- */

enum { PAGE_OF_NULL = 65536 }; /* an index may have been added */

static void access_outside(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
                           const void *pc) {
    c->index_pending = false;
    if (at - c->nothing < sizeof(unsigned char[4096]) && c->nothing) {
        checker_tell(c, FINDING_UNBOUND, pc, NULL,
                     "%s through a buffer that is not bound (its function constant is off)",
                     checker_name_access(how));
        checker_neutralise(c, at, bytes, how, true);
        return;
    }
    bool is_null = at < PAGE_OF_NULL || at > UINTPTR_MAX - PAGE_OF_NULL;
    uintptr_t meant = at;
    const device_region *near = is_null ? NULL : checker_find_meant(c, &meant);
    if (near && near->bound->may_overread && !(how & SOFT_STORE) && at >= near->region.begin) {
        checker_neutralise(c, at, bytes, how, false);
        return;
    }
    report *r = checker_add_report(c, checker_outside_class(how), pc, near ? near->index : -1);
    if (r && near)
        checker_describe(r, near->bound, meant, bytes, how,
                         meant == at ? "outside" : "outside, its unsigned index below zero");
    else if (r && is_null)
        snprintf(r->row.text, sizeof r->row.text,
                 "%s of %zu bytes through a pointer that is NULL (address %#llx)",
                 checker_name_access(how), bytes, (unsigned long long)at);
    else if (r)
        snprintf(r->row.text, sizeof r->row.text, "%s of %zu bytes outside every buffer",
                 checker_name_access(how), bytes);
    checker_neutralise(c, at, bytes, how, false);
}

/* Of several the last one counts: the value that was found to be wrong is its. */
static void note_store(soft_checker *c, const device_region *d, uintptr_t at, size_t bytes,
                       unsigned how, const void *pc) {
    checker_start_report(c, &c->last_store, FINDING_WRONG, pc, d->index);
    checker_describe(&c->last_store, d->bound, at + (c->watched - (at + d->shift)), bytes, how,
                     "that leaves a wrong value");
    c->is_stored = true;
}

static void access_device(soft_checker *c, const device_region *d, uintptr_t at, size_t bytes,
                          unsigned how, const void *pc) {
    const soft_bound *b = d->bound;
    stretch *s = d->stretch;
    const uintptr_t real = at + d->shift;
    if (how & SOFT_STORE && !b->can_write) {
        report *r = checker_add_report(c, FINDING_READ_ONLY, pc, d->index);
        if (r)
            checker_describe(r, b, at, bytes, how, "to a buffer bound to be read");
        checker_neutralise(c, at, bytes, how, true);
        return;
    }
    if (s->written) {
        uint8_t *written = s->written + (real - s->begin);
        const uint8_t *hole = memchr(written, 0, bytes);
        if (hole && checker_reads(how)) {
            report *r = checker_add_report(c, FINDING_UNWRITTEN, pc, d->index);
            if (r) {
                checker_describe(r, b, at + (size_t)(hole - written), bytes, how,
                                 "of memory that nothing wrote");
                r->row.by = 0;
            }
        }
        if (hole && how & SOFT_STORE)
            memset(written, 1, bytes);
    }
    if (how & SOFT_BITS)
        return;
    if (how & SOFT_STORE && c->watched - real < bytes && c->watched_bytes)
        note_store(c, d, at, bytes, how, pc);
    if (how & SOFT_ATOMIC && c->sync.is_used && s->has_shadow)
        checker_pass_word(c, &s->shadow, real & ~(uintptr_t)3, how);
    if (s->has_shadow && !(how == SOFT_LOAD && is_known_load(c, &s->shadow, real, bytes))) {
        shadow_access now = checker_now(c, true, how, bytes, pc), other;
        c->is_incoherent = !s->is_coherent;
        c->is_stale = false;
        const shadow_access arrived = checker_arrived(c, now);
        if (shadow_judge(&s->shadow, real, bytes, &now, &arrived, checker_is_ordered, c, &other))
            race_with(c, &other, d, NULL, at, bytes, how, pc);
    }
}

/* Threadgroup memory --------------------------------------------------------------------------- */

static const variable *find_variable(const soft_checker *c, uintptr_t at, size_t bytes) {
    for (int i = 0; i < c->variable_count; i++) {
        const variable *v = &c->variables[i];
        if (at - v->begin < v->bytes && bytes <= v->bytes - (at - v->begin))
            return v;
    }
    return NULL;
}

static void outside_threadgroup(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
                                const void *pc) {
    c->index_pending = false;
    report *r = checker_add_report(c, checker_outside_class(how), pc, -1);
    if (r) {
        size_t nearest = SIZE_MAX;
        const variable *found = NULL;
        for (int i = 0; i < c->variable_count; i++) {
            const variable *v = &c->variables[i];
            size_t by = at < v->begin ? v->begin - at : at + bytes - (v->begin + v->bytes);
            if (by < nearest) {
                nearest = by;
                found = v;
            }
        }
        snprintf(r->row.label, sizeof r->row.label, "threadgroup memory");
        if (found)
            checker_describe_variable(r, found, at, bytes, how, "outside");
        else
            snprintf(r->row.text, sizeof r->row.text,
                     "%s of %zu bytes of threadgroup memory, of which the launch gives none",
                     checker_name_access(how), bytes);
    }
    checker_neutralise(c, at, bytes, how, true);
}

static void access_threadgroup(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
                               const void *pc) {
    const variable *v = find_variable(c, at, bytes);
    if (!v) {
        outside_threadgroup(c, at, bytes, how, pc);
        return;
    }
    uint32_t *written = c->threadgroup_written + (at - (uintptr_t)c->worker->threadgroup_memory);
    size_t hole = 0;
    while (hole < bytes && written[hole] == c->group)
        hole++;
    if (checker_reads(how) && hole < bytes) {
        report *r = checker_add_report(c, FINDING_UNWRITTEN, pc, -1);
        if (r) {
            checker_describe_variable(r, v, at + hole, bytes, how,
                                      "of memory that this threadgroup did not write");
            r->row.by = 0;
        }
    }
    for (; how & SOFT_STORE && hole < bytes; hole++)
        written[hole] = c->group;
    if (how & SOFT_BITS)
        return;
    if (how & SOFT_ATOMIC && c->sync.is_used)
        checker_pass_word(c, &c->threadgroup_shadow, at & ~(uintptr_t)3, how);
    if (how == SOFT_LOAD && is_known_load(c, &c->threadgroup_shadow, at, bytes))
        return;
    shadow_access now = checker_now(c, false, how, bytes, pc), other;
    const shadow_access arrived = checker_arrived(c, now);
    if (shadow_judge(&c->threadgroup_shadow, at, bytes, &now, &arrived, checker_is_ordered, c,
                     &other))
        race_with(c, &other, NULL, v, at, bytes, how, pc);
}

/* Births of NaN -------------------------------------------------------------------------------- */

/* Floating-point exceptions since the last look. A NaN or an infinity that is only passed on raises
 * none: what is seen here was born. */
static unsigned take_exceptions(void) {
#if defined(__aarch64__)
    uint64_t status;
    __asm__ volatile("mrs %0, fpsr" : "=r"(status));
    if (status & 7)
        __asm__ volatile("msr fpsr, %0" : : "r"(status & ~UINT64_C(7)));
    return (unsigned)(status & 7); /* invalid 1, division by zero 2, overflow 4 */
#else
    uint32_t status;
    __asm__ volatile("stmxcsr %0" : "=m"(status));
    unsigned seen = (status & 1) | (status >> 1 & 6);
    status &= ~UINT32_C(0x3F);
    if (seen)
        __asm__ volatile("ldmxcsr %0" : : "m"(status));
    return seen;
#endif
}

void checker_forget_exceptions(void) {
    take_exceptions();
}

static void trace(soft_checker *c, const void *pc) {
    unsigned seen = take_exceptions();
    if (!seen)
        return;
    checker_tell(c, FINDING_NAN_BORN, pc, NULL, "%s",
                 seen & 1   ? "an invalid operation gives a NaN"
                 : seen & 2 ? "a division by zero gives an infinity"
                            : "an overflow gives an infinity");
}

/* All ------------------------------------------------------------------------------------------ */

void checker_tell_index(soft_checker *c, unsigned how) {
    if (!c->index_pending)
        return;
    c->index_pending = false;
    report *r = checker_tell(c, checker_outside_class(how), c->index_pc, "array",
                             "%s with index %lld outside of the array %.100s",
                             checker_name_access(how), (long long)c->index_value, c->index_type);
    if (r)
        r->row.element = c->index_value;
}

static bool is_near_table(const soft_table *t, uintptr_t at) {
    return at - (uintptr_t)t->begin + SOFT_TABLE_GAP < t->bytes + 2 * SOFT_TABLE_GAP;
}

/* Near a table of constants, but not in it? Most loads are from the same table as the one before. */
static bool is_beside_table(soft_checker *c, uintptr_t at, size_t bytes) {
    const soft_table *t = c->table;
    if (!t || !is_near_table(t, at))
        for (t = c->tables; t && t->bytes && !is_near_table(t, at);)
            t++;
    if (!t || !t->bytes)
        return false;
    c->table = t;
    const uintptr_t inside = at - (uintptr_t)t->begin;
    return inside >= t->bytes || bytes > t->bytes - inside;
}

static void outside_table(soft_checker *c, size_t bytes, unsigned how, const void *pc) {
    report *r =
        c->index_pending
            ? NULL
            : checker_tell(c, checker_outside_class(how), pc, "constant table",
                           "%s of %zu bytes through a pointer that has left its constant table",
                           checker_name_access(how), bytes);
    if (r)
        r->row.bytes = (uint32_t)bytes;
}

/* By where it goes. */
static void judge_access(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
                         const void *pc) {
    soft_worker *w = c->worker;
    uintptr_t inside = at - (uintptr_t)w;
    if (inside < SOFT_REGION_BYTES) {
        uintptr_t first = (uintptr_t)w->gap_before - (uintptr_t)w;
        if (inside >= SOFT_STACKS_AT)
            checker_access_private(c, at, bytes, how, pc);
        else if (inside - first <
                 sizeof w->gap_before + sizeof w->threadgroup_memory + sizeof w->gap_behind)
            access_threadgroup(c, at, bytes, how, pc);
        return;
    }
    if (at - c->hooks.rooms < SOFT_ROOMS_BYTES) {
        checker_access_private(c, at, bytes, how, pc);
        return;
    }
    /* The entry and the meetings, inlined in the kernel, read what is ours. */
    if (at - (uintptr_t)w->launch < sizeof *w->launch || at - (uintptr_t)c < sizeof *c)
        return;
    const device_region *d = checker_find_region(c, at, bytes, how);
    if (d)
        access_device(c, d, at, bytes, how, pc);
    else if (how & SOFT_STORE || !checker_is_kernel(c, at) || at - c->nothing < 4096)
        access_outside(c, at, bytes, how, pc);
    else if (is_beside_table(c, at, bytes))
        outside_table(c, bytes, how, pc);
}

void checker_access(soft_worker *w, void *p, soft_u64 bytes, soft_u32 how, const void *pc) {
    soft_checker *c = checker_of(w);
    if (c->hooks.trace)
        trace(c, pc);
    if (c->hooks.pending) {
        checker_settle_stores(c);
        checker_put_back(c);
    }
    if (bytes > 0) /* else the end of a statement */
        judge_access(c, (uintptr_t)p, bytes, how, pc);
    if (how & SOFT_STORE)
        c->bits_at = how & SOFT_BITS ? (uintptr_t)p : 0;
    checker_tell_index(c, how);
}
