/* shadow: see shadow.h. Two accesses race if they share a byte, at least one stores, not both are
 * atomic, different threads made them and no barrier stands between. */
#include "shadow.h"

#include <stddef.h>

enum { LANES = 32 };

static bool is_ordered(const shadow_time *before, const shadow_time *now, bool several,
                       bool several_simds) {
    if (before->group != now->group)
        return false;
    if (!several && !several_simds && before->thread == now->thread)
        return true;
    if (before->epoch < now->epoch)
        return true;
    return !several_simds && before->thread / LANES == now->thread / LANES &&
           before->simd_epoch < now->simd_epoch;
}

static shadow_verdict judge(const shadow_time *before, const shadow_time *now) {
    return before->group == now->group ? SHADOW_RACE_IN_GROUP : SHADOW_RACE_OF_GROUPS;
}

static void remember_load(shadow_cell *c, const shadow_time *now, uint8_t mask, bool is_atomic,
                          const void *at) {
    const shadow_time *r = &c->read;
    bool known = c->read_bytes != 0;
    bool same_group = known && r->group == now->group;
    bool same_epoch = same_group && r->epoch == now->epoch;
    c->groups_read = known && (c->groups_read || !same_group);
    c->simds_read = same_epoch && (c->simds_read || r->thread / LANES != now->thread / LANES);
    c->many_read = same_epoch && (c->many_read || r->thread != now->thread);
    c->read_atomically = is_atomic && (!same_epoch || c->read_atomically);
    c->read_bytes = same_epoch ? (uint8_t)(c->read_bytes | mask) : mask;
    c->read = *now;
    c->read_at = at;
}

shadow_verdict shadow_access(shadow_cell *c, const shadow_time *now, uint8_t mask, bool is_store,
                             bool is_atomic, const void *at, const void **other) {
    shadow_verdict verdict = SHADOW_FINE;
    if (c->wrote_bytes & mask && !(c->wrote_atomically && is_atomic) &&
        !is_ordered(&c->wrote, now, false, false)) {
        verdict = judge(&c->wrote, now);
        *other = c->wrote_at;
    }
    if (is_store && verdict == SHADOW_FINE && c->read_bytes & mask &&
        !(c->read_atomically && is_atomic)) {
        if (c->groups_read) {
            verdict = SHADOW_RACE_OF_GROUPS;
            *other = c->read_at;
        } else if (!is_ordered(&c->read, now, c->many_read, c->simds_read)) {
            verdict = judge(&c->read, now);
            *other = c->read_at;
        }
    }
    if (!is_store || is_atomic)
        remember_load(c, now, mask, is_atomic, at);
    if (is_store) {
        c->wrote_bytes = c->wrote.group == now->group && c->wrote.thread == now->thread &&
                                 c->wrote.epoch == now->epoch
                             ? (uint8_t)(c->wrote_bytes | mask)
                             : mask;
        c->wrote = *now;
        c->wrote_at = at;
        c->wrote_atomically = is_atomic;
    }
    return verdict;
}
