/* checked_access: is this access right? Device, threadgroup and private memory, each by its rules.
 */
#include "checked_internal.h"

#include <stdio.h>
#include <string.h>

/* Does what was there before matter? */
static bool reads(unsigned how) {
    return !(how & SOFT_STORE) || how & SOFT_UPDATE;
}

static void access_outside(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
                           const void *pc) {
    c->index_pending = false;
    finding_class what = how & SOFT_STORE ? FINDING_STORE_OUTSIDE : FINDING_LOAD_OUTSIDE;
    if (at - c->nothing < sizeof(unsigned char[4096]) && c->nothing) {
        report *r = checker_add_report(c, FINDING_UNBOUND, pc, -1);
        if (r)
            snprintf(r->row.text, sizeof r->row.text,
                     "%s through a buffer that is not bound (its function constant is off)",
                     checker_name_access(how));
        checker_neutralise(c, at, bytes, how, true);
        return;
    }
    const device_region *near = checker_find_nearest(c, at);
    report *r = checker_add_report(c, what, pc, near ? near->index : -1);
    if (r && near)
        checker_describe(r, near->bound, at, bytes, how, "outside");
    else if (r)
        snprintf(r->row.text, sizeof r->row.text, "%s of %zu bytes outside every buffer",
                 checker_name_access(how), bytes);
    checker_neutralise(c, at, bytes, how, false);
}

static shadow_time get_time(const soft_checker *c, bool is_device) {
    uint32_t t = checker_thread(c->worker);
    return (shadow_time){c->group, (uint16_t)t,
                         is_device ? c->device_epoch[t] : c->threadgroup_epoch[t],
                         is_device ? c->device_simd[t] : c->threadgroup_simd[t]};
}

/* Over the words of an access. */
static shadow_verdict judge_words(shadow_cell *cells, uintptr_t offset, size_t bytes,
                                  const shadow_time *now, unsigned how, const void *pc,
                                  const void **other) {
    shadow_verdict worst = SHADOW_FINE;
    for (size_t done = 0; done < bytes;) {
        size_t in_word = (offset + done) % 4, n = 4 - in_word;
        n = n < bytes - done ? n : bytes - done;
        uint8_t mask = (uint8_t)(((1u << n) - 1) << in_word);
        shadow_verdict v =
            shadow_access(&cells[(offset + done) / 4], now, mask, (how & SOFT_STORE) != 0,
                          (how & SOFT_ATOMIC) != 0, pc, other);
        worst = v != SHADOW_FINE ? v : worst;
        done += n;
    }
    return worst;
}

static void report_race(soft_checker *c, shadow_verdict v, const void *pc, const void *other,
                        int index, const soft_bound *b, uintptr_t at, size_t bytes, unsigned how) {
    finding_class what = v == SHADOW_RACE_IN_GROUP ? FINDING_RACE_IN_GROUP : FINDING_RACE_OF_GROUPS;
    report *r = checker_add_report(c, what, pc, index);
    if (!r)
        return;
    r->other = other;
    if (b) {
        checker_describe(r, b, at, bytes, how, "races");
    } else {
        snprintf(r->row.label, sizeof r->row.label, "threadgroup memory");
        r->row.bytes = (uint32_t)bytes;
        snprintf(r->row.text, sizeof r->row.text, "%s of %zu bytes of threadgroup memory races",
                 checker_name_access(how), bytes);
    }
}

static void access_device(soft_checker *c, const device_region *d, uintptr_t at, size_t bytes,
                          unsigned how, const void *pc) {
    const soft_bound *b = d->bound;
    stretch *s = d->stretch;
    if (how & SOFT_STORE && !b->can_write) {
        report *r = checker_add_report(c, FINDING_READ_ONLY, pc, d->index);
        if (r)
            checker_describe(r, b, at, bytes, how, "to a buffer bound to be read");
        checker_neutralise(c, at, bytes, how, true);
        return;
    }
    if (s->unset) {
        uint8_t *unset = s->unset + (at - s->begin);
        bool any = memchr(unset, 1, bytes) != NULL;
        if (any && reads(how)) {
            report *r = checker_add_report(c, FINDING_UNWRITTEN, pc, d->index);
            if (r)
                checker_describe(r, b, at, bytes, how, "of memory that nothing wrote");
        }
        if (any && how & SOFT_STORE)
            memset(unset, 0, bytes);
    }
    if (s->cells) {
        shadow_time now = get_time(c, true);
        const void *other = NULL;
        uintptr_t base = s->begin & ~(uintptr_t)3;
        shadow_verdict v = judge_words(s->cells, at - base, bytes, &now, how, pc, &other);
        if (v != SHADOW_FINE)
            report_race(c, v, pc, other, d->index, b, at, bytes, how);
    }
}

static bool is_in_variable(const soft_checker *c, uintptr_t at, size_t bytes) {
    for (int i = 0; i < c->variable_count; i++) {
        const variable *v = &c->variables[i];
        if (at - v->begin < v->bytes && bytes <= v->bytes - (at - v->begin))
            return true;
    }
    return false;
}

static void outside_threadgroup(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
                                const void *pc) {
    c->index_pending = false;
    finding_class what = how & SOFT_STORE ? FINDING_STORE_OUTSIDE : FINDING_LOAD_OUTSIDE;
    report *r = checker_add_report(c, what, pc, -1);
    if (r) {
        size_t nearest = SIZE_MAX, whole = 0;
        for (int i = 0; i < c->variable_count; i++) {
            const variable *v = &c->variables[i];
            size_t by = at < v->begin ? v->begin - at : at + bytes - (v->begin + v->bytes);
            if (by < nearest) {
                nearest = by;
                whole = v->bytes;
                r->row.element = (int64_t)(at - v->begin) / (int64_t)bytes;
            }
        }
        r->row.by = (int64_t)nearest;
        r->row.bytes = (uint32_t)bytes;
        snprintf(r->row.label, sizeof r->row.label, "threadgroup memory");
        snprintf(r->row.text, sizeof r->row.text,
                 "%s of %zu bytes, %zu bytes outside a threadgroup variable of %zu bytes "
                 "(element %lld)",
                 checker_name_access(how), bytes, nearest, whole, (long long)r->row.element);
    }
    checker_neutralise(c, at, bytes, how, true);
}

/* Which bytes of a word this threadgroup wrote: low 4 bits the mask, above them the group. */
static bool is_written(const soft_checker *c, size_t offset, size_t bytes) {
    for (size_t i = offset; i < offset + bytes; i++) {
        uint32_t w = c->threadgroup_written[i / 4];
        if (w >> 4 != (c->group & 0xFFFFFFF) || !(w >> i % 4 & 1))
            return false;
    }
    return true;
}

static void set_written(soft_checker *c, size_t offset, size_t bytes) {
    for (size_t i = offset; i < offset + bytes; i++) {
        uint32_t *w = &c->threadgroup_written[i / 4];
        if (*w >> 4 != (c->group & 0xFFFFFFF))
            *w = (c->group & 0xFFFFFFF) << 4;
        *w |= 1u << i % 4;
    }
}

static void access_threadgroup(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
                               const void *pc) {
    if (!is_in_variable(c, at, bytes)) {
        outside_threadgroup(c, at, bytes, how, pc);
        return;
    }
    size_t offset = at - (uintptr_t)c->worker->threadgroup_memory;
    if (reads(how) && !is_written(c, offset, bytes)) {
        report *r = checker_add_report(c, FINDING_UNWRITTEN, pc, -1);
        if (r) {
            snprintf(r->row.label, sizeof r->row.label, "threadgroup memory");
            r->row.bytes = (uint32_t)bytes;
            snprintf(r->row.text, sizeof r->row.text,
                     "%s of %zu bytes of threadgroup memory that this threadgroup did not write",
                     checker_name_access(how), bytes);
        }
    }
    if (how & SOFT_STORE)
        set_written(c, offset, bytes);
    shadow_time now = get_time(c, false);
    const void *other = NULL;
    shadow_verdict v = judge_words(c->threadgroup_cells, offset, bytes, &now, how, pc, &other);
    /* Words that other threadgroups of this worker used are free for this one. */
    if (v == SHADOW_RACE_IN_GROUP)
        report_race(c, v, pc, other, -1, NULL, at, bytes, how);
}

static void access_private(soft_checker *c, uintptr_t offset, size_t bytes, unsigned how,
                           const void *pc) {
    uint8_t *unset = c->private_unset + offset;
    /* Where some of it was set, the rest may be padding. */
    if (reads(how) && c->hooks.unset && !memchr(unset, 0, bytes)) {
        report *r = checker_add_report(c, FINDING_UNWRITTEN, pc, -1);
        if (r) {
            snprintf(r->row.label, sizeof r->row.label, "private memory");
            r->row.bytes = (uint32_t)bytes;
            snprintf(r->row.text, sizeof r->row.text,
                     "%s of %zu bytes of a variable that was given no value",
                     checker_name_access(how), bytes);
        }
        memset(unset, 0, bytes); /* said once */
    }
    if (how & SOFT_STORE && c->hooks.unset)
        memset(unset, 0, bytes);
}

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
    report *r = checker_add_report(c, FINDING_NAN_BORN, pc, -1);
    if (r)
        snprintf(r->row.text, sizeof r->row.text, "%s",
                 seen & 1   ? "a NaN is born of an invalid operation"
                 : seen & 2 ? "an infinity is born of a division by zero"
                            : "an infinity is born of an overflow");
}

void checker_tell_index(soft_checker *c) {
    if (!c->index_pending)
        return;
    c->index_pending = false;
    report *r = checker_add_report(c, FINDING_LOAD_OUTSIDE, c->index_pc, -1);
    if (!r)
        return;
    r->row.element = c->index_value;
    snprintf(r->row.label, sizeof r->row.label, "array");
    snprintf(r->row.text, sizeof r->row.text, "index %lld is outside of the array %.100s",
             (long long)c->index_value, c->index_type);
}

/* By where it goes. */
static void judge_access(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
                         const void *pc) {
    soft_worker *w = c->worker;
    uintptr_t inside = at - (uintptr_t)w;
    if (inside < SOFT_REGION_BYTES) {
        uintptr_t first = (uintptr_t)w->gap_before - (uintptr_t)w;
        if (inside >= SOFT_STACKS_AT)
            access_private(c, inside - SOFT_STACKS_AT, bytes, how, pc);
        else if (inside - first <
                 sizeof w->gap_before + sizeof w->threadgroup_memory + sizeof w->gap_behind)
            access_threadgroup(c, at, bytes, how, pc);
        return;
    }
    /* The entry and the meetings, inlined in the kernel, read what is ours. */
    if (at - (uintptr_t)w->launch < sizeof *w->launch || at - (uintptr_t)c < sizeof *c)
        return;
    const device_region *d = checker_find_region(c, at, bytes, how);
    if (d)
        access_device(c, d, at, bytes, how, pc);
    else if (how & SOFT_STORE || at - c->image_begin >= c->image_end - c->image_begin ||
             at - c->nothing < 4096)
        access_outside(c, at, bytes, how, pc);
}

void checker_access(soft_worker *w, void *p, soft_u64 bytes, soft_u32 how, const void *pc) {
    soft_checker *c = checker_of(w);
    if (c->hooks.trace)
        trace(c, pc);
    if (c->hooks.pending)
        checker_put_back(c);
    if (bytes > 0) /* else the end of a statement */
        judge_access(c, (uintptr_t)p, bytes, how, pc);
    checker_tell_index(c);
}
