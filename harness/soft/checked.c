/* checked: see checked.h. Owns what memory a launch may touch and what is said when it touches
 * other memory; who races with whom is shadow.c, getting out of a fault or a loop is rescue.c.
 *
 * The one surprise: instrumentation is told before an access, and cannot change its address. So a
 * bad load finds zeros that were put there a moment before, and what a bad store hits is saved and
 * put back: both before the next access, which is the next thing this thread does to memory. */
#if defined(__linux__)
#define _GNU_SOURCE /* dladdr, MAP_FIXED_NOREPLACE */
#endif
#include "checked.h"

#include <assert.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../device.h"
#include "lines.h"
#include "rescue.h"
#include "shadow.h"

enum {
    ACCESS_BYTES = 16,
    MAX_REPORTS = 256,
    MAX_VARIABLES = 256,
    MAX_PAGES = 64,
    DEFAULT_SECONDS = 10,
    THREADGROUP_CELLS = SOFT_THREADGROUP_ROOM / 4,
};

/* Around each buffer: far enough that most mistakes land here and are told to be its. */
#define GAP_BYTES ((size_t)64 << 20)

/* What is known of a stretch of device memory: bindings that overlap share one. */
typedef struct {
    uintptr_t begin, end;
    bool is_written;
    shadow_cell *cells; /* a word each; NULL when nobody writes here */
    uint8_t *unset;     /* a byte each: 1 where nothing was written; NULL when all was */
} stretch;

typedef struct {
    soft_region region; /* first: the page table points to it */
    const soft_bound *bound;
    stretch *stretch;
    int index;
} device_region;

typedef struct {
    finding_class what;
    const void *pc, *other; /* other: where the other access of a race was made */
    int buffer;
    finding row;
} report;

typedef struct {
    uintptr_t begin;
    size_t bytes;
} variable;

struct soft_checker {
    soft_checks hooks; /* first: what the worker points to */
    soft_worker *worker;
    soft_rescue *rescue;
    const char *kernel, *object;
    uintptr_t image_begin, image_end; /* the loaded kernel: its program-scope constants */
    uintptr_t nothing;

    soft_bound bound[SOFT_BUFFERS];
    device_region regions[SOFT_BUFFERS];
    int region_count;
    stretch stretches[SOFT_BUFFERS];
    int stretch_count;

    variable variables[MAX_VARIABLES];
    int variable_count;
    shadow_cell *threadgroup_cells;
    uint32_t threadgroup_written[THREADGROUP_CELLS]; /* group that wrote the word, by byte mask */
    uint8_t *private_unset;                          /* a byte each of the stacks */

    uint32_t group; /* threadgroups of this launch so far */
    uint32_t device_epoch[SOFT_MAX_THREADS], threadgroup_epoch[SOFT_MAX_THREADS];
    uint32_t device_simd[SOFT_MAX_THREADS], threadgroup_simd[SOFT_MAX_THREADS];
    const void *parked_at[SOFT_MAX_THREADS];

    unsigned char saved[ACCESS_BYTES]; /* what stood where a bad access goes */
    uintptr_t saved_at;
    size_t saved_bytes;
    void *pages[MAX_PAGES]; /* mapped only to catch a bad access */
    int page_count;

    report reports[MAX_REPORTS];
    int report_count;
};

static soft_checker *get_checker(soft_worker *w) {
    return (soft_checker *)(void *)w->checks;
}

static uint32_t get_thread(const soft_worker *w) {
    return w->running->index * SOFT_LANES + w->running->current;
}

/* Reports ----------------------------------------------------------------------------------- */

static report *find_report(soft_checker *c, finding_class what, const void *pc, int index) {
    for (int i = 0; i < c->report_count; i++) {
        report *r = &c->reports[i];
        if (r->what == what && r->pc == pc && r->buffer == index)
            return r;
    }
    return NULL;
}

/* One more of what; the row to fill in if it is the first, else NULL. */
static report *add_report(soft_checker *c, finding_class what, const void *pc, int index) {
    report *r = find_report(c, what, pc, index);
    if (r) {
        r->row.count++;
        return NULL;
    }
    if (c->report_count == MAX_REPORTS)
        return NULL;
    r = &c->reports[c->report_count++];
    memset(r, 0, sizeof *r);
    r->what = what;
    r->pc = pc;
    r->buffer = index;
    finding *f = &r->row;
    f->what = what;
    f->buffer = index;
    f->count = 1;
    snprintf(f->kernel, sizeof f->kernel, "%s", c->kernel);
    const soft_worker *w = c->worker;
    const unsigned short *p = w->thread_position[get_thread(w)];
    for (int i = 0; i < 3; i++) {
        f->thread[i] = p[i];
        f->group[i] = w->group_position[i];
    }
    return r;
}

static const char *name_access(unsigned how) {
    return how & SOFT_ATOMIC ? "atomic access" : how & SOFT_STORE ? "store" : "load";
}

/* Element index of an address, also before the start. */
static int64_t count_elements(const soft_bound *b, uintptr_t at) {
    int64_t offset = (int64_t)(at - (uintptr_t)b->begin), size = b->element_bytes;
    return offset >= 0 ? offset / size : -((-offset + size - 1) / size);
}

static void describe_device(report *r, const soft_bound *b, uintptr_t at, size_t bytes,
                            unsigned how, const char *what) {
    finding *f = &r->row;
    size_t elements = b->bytes / b->element_bytes;
    f->element = count_elements(b, at);
    f->bytes = (uint32_t)bytes;
    snprintf(f->label, sizeof f->label, "%s", b->label);
    uintptr_t begin = (uintptr_t)b->begin, end = begin + b->bytes;
    f->by = at + bytes > end ? (int64_t)(at + bytes - end) : at < begin ? (int64_t)(begin - at) : 0;
    snprintf(f->text, sizeof f->text,
             "%s of %zu bytes %s: element %lld of buffer %d '%.40s' (%s), which has %zu",
             name_access(how), bytes, what, (long long)f->element, r->buffer, b->label, b->name,
             elements);
}

/* Access outside --------------------------------------------------------------------------- */

static void put_back(soft_checker *c) {
    if (c->saved_bytes)
        memcpy((void *)c->saved_at, c->saved, c->saved_bytes);
    c->saved_bytes = 0;
    c->hooks.pending = 0;
}

/* Makes the page of an address readable and writable if nothing else is there. */
static bool open_page(soft_checker *c, uintptr_t at) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)(at & ~(page - 1));
    for (int i = 0; i < c->page_count; i++)
        if (c->pages[i] == start)
            return true;
    for (int i = 0; i < c->region_count; i++) {
        const soft_bound *b = c->regions[i].bound;
        uintptr_t begin = (uintptr_t)b->begin, end = begin + b->bytes;
        if (!b->is_inline && at + GAP_BYTES / 2 > begin && at < end + GAP_BYTES / 2)
            return mprotect(start, page, PROT_READ | PROT_WRITE) == 0;
    }
#if defined(MAP_FIXED_NOREPLACE)
    if (c->page_count < MAX_PAGES &&
        mmap(start, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_FIXED_NOREPLACE, -1,
             0) == start) {
        c->pages[c->page_count++] = start;
        return true;
    }
#endif
    return false;
}

/* Lets a bad access do no harm: a load finds zeros, what a store hits is put back. Where that
 * cannot be had, the lane ends. */
static void neutralise(soft_checker *c, uintptr_t at, size_t bytes, unsigned how, bool is_ours) {
    assert(bytes <= ACCESS_BYTES);
    if (!is_ours && (!open_page(c, at) || !open_page(c, at + bytes - 1)))
        soft_end_lane(c->worker);
    memcpy(c->saved, (void *)at, bytes);
    c->saved_at = at;
    c->saved_bytes = bytes;
    c->hooks.pending = 1;
    if (!(how & SOFT_STORE))
        memset((void *)at, 0, bytes);
}

static const device_region *find_nearest(const soft_checker *c, uintptr_t at) {
    const device_region *best = NULL;
    uintptr_t nearest = UINTPTR_MAX;
    for (int i = 0; i < c->region_count; i++) {
        const soft_region *r = &c->regions[i].region;
        uintptr_t away = at < r->begin               ? r->begin - at
                         : at >= r->begin + r->bytes ? at - (r->begin + r->bytes)
                                                     : 0;
        if (away < nearest) {
            nearest = away;
            best = &c->regions[i];
        }
    }
    return best;
}

static void access_outside(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
                           const void *pc) {
    finding_class what = how & SOFT_STORE ? FINDING_STORE_OUTSIDE : FINDING_LOAD_OUTSIDE;
    if (at - c->nothing < sizeof(unsigned char[4096]) && c->nothing) {
        report *r = add_report(c, FINDING_UNBOUND, pc, -1);
        if (r)
            snprintf(r->row.text, sizeof r->row.text,
                     "%s through a buffer that is not bound (its function constant is off)",
                     name_access(how));
        neutralise(c, at, bytes, how, true);
        return;
    }
    const device_region *near = find_nearest(c, at);
    report *r = add_report(c, what, pc, near ? near->index : -1);
    if (r && near)
        describe_device(r, near->bound, at, bytes, how, "outside");
    else if (r)
        snprintf(r->row.text, sizeof r->row.text, "%s of %zu bytes outside every buffer",
                 name_access(how), bytes);
    neutralise(c, at, bytes, how, false);
}

/* Device memory ---------------------------------------------------------------------------- */

static const device_region *find_region(const soft_checker *c, uintptr_t at, size_t bytes,
                                        unsigned how) {
    const device_region *found = NULL;
    for (int i = 0; i < c->region_count; i++) {
        const device_region *d = &c->regions[i];
        const soft_region *r = &d->region;
        if (at - r->begin < r->bytes && bytes <= r->bytes - (at - r->begin) &&
            (!found || (how & SOFT_STORE && d->bound->can_write)))
            found = d;
    }
    return found;
}

static shadow_time get_time(const soft_checker *c, bool is_device) {
    uint32_t t = get_thread(c->worker);
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
    report *r = add_report(c, what, pc, index);
    if (!r)
        return;
    r->other = other;
    if (b) {
        describe_device(r, b, at, bytes, how, "races");
    } else {
        snprintf(r->row.label, sizeof r->row.label, "threadgroup memory");
        r->row.bytes = (uint32_t)bytes;
        snprintf(r->row.text, sizeof r->row.text, "%s of %zu bytes of threadgroup memory races",
                 name_access(how), bytes);
    }
}

static void access_device(soft_checker *c, const device_region *d, uintptr_t at, size_t bytes,
                          unsigned how, const void *pc) {
    const soft_bound *b = d->bound;
    stretch *s = d->stretch;
    if (how & SOFT_STORE && !b->can_write) {
        report *r = add_report(c, FINDING_READ_ONLY, pc, d->index);
        if (r)
            describe_device(r, b, at, bytes, how, "to a buffer bound to be read");
        neutralise(c, at, bytes, how, true);
        return;
    }
    if (s->unset) {
        uint8_t *unset = s->unset + (at - s->begin);
        bool any = memchr(unset, 1, bytes) != NULL;
        if (any && (how != SOFT_STORE)) {
            report *r = add_report(c, FINDING_UNWRITTEN, pc, d->index);
            if (r)
                describe_device(r, b, at, bytes, how, "of memory that nothing wrote");
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

/* Threadgroup and private memory ------------------------------------------------------------ */

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
    finding_class what = how & SOFT_STORE ? FINDING_STORE_OUTSIDE : FINDING_LOAD_OUTSIDE;
    report *r = add_report(c, what, pc, -1);
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
                 name_access(how), bytes, nearest, whole, (long long)r->row.element);
    }
    neutralise(c, at, bytes, how, true);
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
    if (how != SOFT_STORE && !is_written(c, offset, bytes)) {
        report *r = add_report(c, FINDING_UNWRITTEN, pc, -1);
        if (r) {
            snprintf(r->row.label, sizeof r->row.label, "threadgroup memory");
            r->row.bytes = (uint32_t)bytes;
            snprintf(r->row.text, sizeof r->row.text,
                     "%s of %zu bytes of threadgroup memory that this threadgroup did not write",
                     name_access(how), bytes);
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
    if (!memchr(unset, 1, bytes))
        return;
    if (how != SOFT_STORE) {
        report *r = add_report(c, FINDING_UNWRITTEN, pc, -1);
        if (r) {
            snprintf(r->row.label, sizeof r->row.label, "private memory");
            r->row.bytes = (uint32_t)bytes;
            snprintf(r->row.text, sizeof r->row.text,
                     "%s of %zu bytes of a variable that was given no value", name_access(how),
                     bytes);
        }
    }
    memset(unset, 0, bytes);
}

/* Hooks ------------------------------------------------------------------------------------- */

static void on_access(soft_worker *w, void *p, soft_u64 bytes, soft_u32 how, const void *pc) {
    soft_checker *c = get_checker(w);
    uintptr_t at = (uintptr_t)p, inside = at - (uintptr_t)w;
    if (c->hooks.pending)
        put_back(c);
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
    const device_region *d = find_region(c, at, bytes, how);
    if (d)
        access_device(c, d, at, bytes, how, pc);
    else if (how & SOFT_STORE || at - c->image_begin >= c->image_end - c->image_begin ||
             at - c->nothing < 4096)
        access_outside(c, at, bytes, how, pc);
}

static void on_mishap(soft_worker *w, soft_u32 what, soft_u64 value, const void *pc) {
    static const finding_class classes[] = {[SOFT_MISALIGNED] = FINDING_MISALIGNED,
                                            [SOFT_DIVIDE] = FINDING_DIVIDE,
                                            [SOFT_SHIFT] = FINDING_SHIFT,
                                            [SOFT_CONVERT] = FINDING_CONVERT};
    soft_checker *c = get_checker(w);
    const device_region *d = what == SOFT_MISALIGNED ? find_nearest(c, value) : NULL;
    bool is_inside = d && value - d->region.begin < d->region.bytes;
    report *r = add_report(c, classes[what], pc, is_inside ? d->index : -1);
    if (r && is_inside)
        describe_device(r, d->bound, value, 0, SOFT_LOAD, "at an address its type forbids");
    else if (r)
        snprintf(r->row.text, sizeof r->row.text,
                 what == SOFT_MISALIGNED ? "access at address %#llx, which its type forbids"
                 : what == SOFT_DIVIDE   ? "integer division by zero"
                 : what == SOFT_SHIFT    ? "shift by %lld, which is outside the width of its type"
                                         : "float that the integer type cannot hold",
                 (unsigned long long)value);
#if defined(__x86_64__)
    if (what == SOFT_DIVIDE)
        soft_end_lane(w); /* the instruction would trap */
#endif
}

static void on_declare(soft_worker *w, void *at, soft_u64 bytes) {
    soft_checker *c = get_checker(w);
    uintptr_t inside = (uintptr_t)at - (uintptr_t)w - SOFT_STACKS_AT;
    if (inside >= SOFT_REGION_BYTES - SOFT_STACKS_AT)
        return;
    memset(c->private_unset + inside, 1, bytes);
    c->hooks.unset = 1;
}

static void on_meet(soft_worker *w, soft_u32 party, soft_u32 width, const void *pc) {
    if (width <= 1)
        return;
    const soft_simdgroup *g = w->running;
    soft_u32 wanted = g->present;
    if (width < SOFT_LANES) { /* only the quads that have somebody here */
        wanted = 0;
        for (soft_u32 q = 0; q < SOFT_LANES; q += width)
            if (party >> q & ((1u << width) - 1))
                wanted |= ((1u << width) - 1) << q & g->present;
    }
    if (!(wanted & ~party))
        return;
    bool is_barrier = width > SOFT_LANES;
    report *r = add_report(get_checker(w), is_barrier ? FINDING_BARRIER : FINDING_DIVERGED, pc, -1);
    if (r)
        snprintf(r->row.text, sizeof r->row.text,
                 "simdgroup %s reached by %d of %d lanes: the others returned or are elsewhere",
                 is_barrier ? "barrier" : "function", __builtin_popcount(party),
                 __builtin_popcount(wanted));
}

static void on_park(soft_worker *w, const void *pc) {
    get_checker(w)->parked_at[get_thread(w)] = pc;
}

static void on_fence(soft_worker *w, soft_u32 flags, soft_u32 whole_threadgroup) {
    soft_checker *c = get_checker(w);
    uint32_t t = get_thread(w);
    uint32_t on_device = flags & 1, on_threadgroup = flags >> 1 & 1;
    if (whole_threadgroup) {
        c->device_epoch[t] += on_device;
        c->threadgroup_epoch[t] += on_threadgroup;
    } else {
        c->device_simd[t] += on_device;
        c->threadgroup_simd[t] += on_threadgroup;
    }
}

static rescue_action on_rescue(void *context, int signal_number, const void *pc, void *address) {
    soft_checker *c = context;
    /* The interrupted place may be in our own code: the last known place in the kernel is better.
     */
    bool is_kernel = (uintptr_t)pc - c->image_begin < c->image_end - c->image_begin;
    const void *at = is_kernel ? (const char *)pc + 1 : NULL;
    finding_class what = signal_number == SIGUSR2  ? FINDING_ENDLESS
                         : signal_number == SIGFPE ? FINDING_DIVIDE
                                                   : FINDING_STACK;
    uintptr_t inside = (uintptr_t)address - (uintptr_t)c->worker;
    report *r = add_report(c, what, at, -1);
    if (r && what == FINDING_ENDLESS)
        snprintf(r->row.text, sizeof r->row.text, "still running after %d s: an endless loop",
                 DEFAULT_SECONDS);
    else if (r && what == FINDING_DIVIDE)
        snprintf(r->row.text, sizeof r->row.text, "integer division that traps");
    else if (r)
        snprintf(r->row.text, sizeof r->row.text, "%s",
                 inside < SOFT_REGION_BYTES ? "more private memory than a thread has"
                                            : "access to an address where nothing is");
    return what == FINDING_ENDLESS ? RESCUE_GIVE_UP : RESCUE_END_LANE;
}

/* Launches ---------------------------------------------------------------------------------- */

soft_checker *soft_checker_new(soft_worker *w, err *e) {
    soft_checker *c = calloc(1, sizeof *c);
    assert(c);
    size_t stacks = (size_t)(SOFT_REGION_BYTES - SOFT_STACKS_AT);
    c->private_unset = mmap(NULL, stacks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    c->threadgroup_cells = calloc(THREADGROUP_CELLS, sizeof *c->threadgroup_cells);
    c->rescue = soft_rescue_new(w, on_rescue, c, e);
    if (c->private_unset == MAP_FAILED || !c->threadgroup_cells || !c->rescue) {
        soft_checker_free(c);
        return NULL;
    }
    c->worker = w;
    c->hooks.access = on_access;
    c->hooks.mishap = on_mishap;
    c->hooks.declare = on_declare;
    c->hooks.meet = on_meet;
    c->hooks.park = on_park;
    c->hooks.fence = on_fence;
    w->checks = &c->hooks;
    return c;
}

void soft_checker_free(soft_checker *c) {
    if (!c)
        return;
    if (c->worker)
        c->worker->checks = NULL;
    soft_rescue_free(c->rescue);
    free(c->threadgroup_cells);
    if (c->private_unset && c->private_unset != MAP_FAILED)
        munmap(c->private_unset, (size_t)(SOFT_REGION_BYTES - SOFT_STACKS_AT));
    free(c);
}

/* Joins a binding to the stretch it overlaps, or starts a new one; several may become one. */
static void add_stretch(soft_checker *c, const soft_bound *b) {
    stretch n = {(uintptr_t)b->begin, (uintptr_t)b->begin + b->bytes, b->can_write, NULL, NULL};
    int kept = 0;
    for (int i = 0; i < c->stretch_count; i++) {
        const stretch *s = &c->stretches[i];
        if (s->end <= n.begin || n.end <= s->begin) {
            c->stretches[kept++] = *s;
            continue;
        }
        n.begin = s->begin < n.begin ? s->begin : n.begin;
        n.end = s->end > n.end ? s->end : n.end;
        n.is_written = n.is_written || s->is_written;
    }
    c->stretches[kept++] = n;
    c->stretch_count = kept;
}

/* What still holds the poison was never written. Eight bytes of it (four at the end) are no
 * accident. */
static void find_unset(stretch *s) {
    const uint64_t poison = POISON_PATTERN * UINT64_C(0x0001000100010001);
    size_t bytes = s->end - s->begin;
    const char *at = (const char *)s->begin;
    for (size_t i = 0; i < bytes;) {
        size_t n = bytes - i >= 8 ? 8 : bytes - i >= 4 ? 4 : 0;
        if (n == 0)
            break;
        if (memcmp(at + i, &poison, n) == 0) {
            if (!s->unset)
                s->unset = calloc(bytes, 1);
            assert(s->unset);
            memset(s->unset + i, 1, n);
        }
        i += n;
    }
}

static void map_pages(soft_checker *c, device_region *d) {
    const soft_region *r = &d->region;
    if (d->bound->is_inline) {
        uintptr_t at = r->begin - c->hooks.inline_begin;
        for (uintptr_t i = at / 16; i <= (at + r->bytes - 1) / 16 && i < SOFT_INLINE_BYTES / 16;
             i++)
            c->hooks.inline_region[i] = r;
        return;
    }
    uintptr_t last = (r->begin + r->bytes - 1) >> SOFT_PAGE_SHIFT;
    uintptr_t page = r->begin >> SOFT_PAGE_SHIFT;
    for (int n = 0; page <= last && n < SOFT_PAGES; page++, n++)
        c->hooks.page[page & (SOFT_PAGES - 1)] = r;
}

static void find_image(soft_checker *c, const soft_kernel *k) {
    Dl_info info;
    c->image_begin = c->image_end = 0;
    c->nothing = (uintptr_t)k->nothing;
    if (dladdr((const void *)(uintptr_t)k->fiber, &info) == 0)
        return;
    c->image_begin = (uintptr_t)info.dli_fbase;
    c->image_end = c->image_begin + ((uintptr_t)1 << 24); /* far larger than any kernel's object */
}

void soft_checker_begin(soft_checker *c, const char *kernel, const soft_kernel *k,
                        const char *object, const soft_bound bound[SOFT_BUFFERS],
                        const void *inline_begin) {
    c->kernel = kernel;
    c->object = object;
    find_image(c, k);
    memcpy(c->bound, bound, sizeof c->bound);
    memset(c->hooks.page, 0, sizeof c->hooks.page);
    memset(c->hooks.inline_region, 0, sizeof c->hooks.inline_region);
    c->hooks.inline_begin = (uintptr_t)inline_begin;
    c->stretch_count = c->region_count = c->variable_count = 0;
    c->group = 0;
    for (int i = 0; i < SOFT_BUFFERS; i++)
        if (c->bound[i].is_bound)
            add_stretch(c, &c->bound[i]);
    for (int i = 0; i < c->stretch_count; i++) {
        stretch *s = &c->stretches[i];
        find_unset(s);
        size_t words = (s->end - (s->begin & ~(uintptr_t)3) + 3) / 4;
        if (s->is_written)
            s->cells = calloc(words, sizeof *s->cells);
    }
    for (int i = 0; i < SOFT_BUFFERS; i++) {
        const soft_bound *b = &c->bound[i];
        if (!b->is_bound)
            continue;
        device_region *d = &c->regions[c->region_count++];
        *d = (device_region){.region = {(uintptr_t)b->begin, b->bytes, 0}, .bound = b, .index = i};
        for (int j = 0; j < c->stretch_count; j++)
            if (c->stretches[j].begin <= d->region.begin && d->region.begin < c->stretches[j].end)
                d->stretch = &c->stretches[j];
        d->region.plain = !d->stretch->is_written && !d->stretch->unset;
        map_pages(c, d);
    }
    soft_rescue_begin(c->rescue, DEFAULT_SECONDS);
}

/* The line of an address of the kernel, from its debug information. */
static void resolve(const soft_checker *c, const void *pc, char *file, size_t size, int *line) {
    if (!pc || !c->image_begin)
        return;
    uint64_t offset = (uintptr_t)pc - 1 - c->image_begin; /* the call, not what follows it */
    soft_find_line(c->object, offset, file, size, line);
}

void soft_checker_end(soft_checker *c, finding_list *out) {
    soft_rescue_end(c->rescue);
    put_back(c);
    for (int i = 0; i < c->report_count; i++) {
        report *r = &c->reports[i];
        resolve(c, r->pc, r->row.file, sizeof r->row.file, &r->row.line);
        if (r->other) {
            char file[128] = "";
            int line = 0;
            resolve(c, r->other, file, sizeof file, &line);
            size_t n = strlen(r->row.text);
            snprintf(r->row.text + n, sizeof r->row.text - n, " with line %d", line);
        }
        finding_add(out, &r->row);
    }
    c->report_count = 0;
    for (int i = 0; i < c->stretch_count; i++) {
        free(c->stretches[i].cells);
        free(c->stretches[i].unset);
        c->stretches[i].cells = NULL;
        c->stretches[i].unset = NULL;
    }
    while (c->page_count > 0)
        munmap(c->pages[--c->page_count], (size_t)sysconf(_SC_PAGESIZE));
}

void soft_checker_begin_group(soft_checks *hooks) {
    soft_checker *c = (soft_checker *)(void *)hooks;
    c->group++;
    memset(c->device_epoch, 0, sizeof c->device_epoch);
    memset(c->threadgroup_epoch, 0, sizeof c->threadgroup_epoch);
    memset(c->device_simd, 0, sizeof c->device_simd);
    memset(c->threadgroup_simd, 0, sizeof c->threadgroup_simd);
}

void soft_checker_add_variable(soft_checks *hooks, void *at, size_t bytes) {
    soft_checker *c = (soft_checker *)(void *)hooks;
    if (c->variable_count < MAX_VARIABLES)
        c->variables[c->variable_count++] = (variable){(uintptr_t)at, bytes};
}

static bool is_same_line(const soft_checker *c, const void *a, const void *b) {
    char file[2][128] = {"", ""};
    int line[2] = {0, 0};
    resolve(c, a, file[0], sizeof file[0], &line[0]);
    resolve(c, b, file[1], sizeof file[1], &line[1]);
    return line[0] == line[1] && strcmp(file[0], file[1]) == 0;
}

/* Every thread has returned or parked, and some have parked: all must have, and at one barrier. */
void soft_checker_end_phase(soft_checks *hooks) {
    soft_checker *c = (soft_checker *)(void *)hooks;
    soft_worker *w = c->worker;
    const void *first = NULL, *elsewhere = NULL;
    uint32_t parked = 0;
    for (uint32_t t = 0; t < w->group_total; t++) {
        if (!(w->group[t / SOFT_LANES].parked >> t % SOFT_LANES & 1))
            continue;
        parked++;
        first = first ? first : c->parked_at[t];
        elsewhere = c->parked_at[t] != first ? c->parked_at[t] : elsewhere;
    }
    bool apart = elsewhere && !is_same_line(c, first, elsewhere);
    if (parked == w->group_total && !apart)
        return;
    report *r = add_report(c, FINDING_BARRIER, first, -1);
    if (r && apart)
        snprintf(r->row.text, sizeof r->row.text,
                 "threads of one threadgroup wait at different barriers");
    else if (r)
        snprintf(r->row.text, sizeof r->row.text,
                 "barrier reached by %u of %u threads of the threadgroup: the others have returned",
                 parked, w->group_total);
}

/* The size stands in the page in front of the memory's gap. */
void *soft_checked_allocate(size_t bytes) {
    const size_t page = 16384;
    size_t all = page + GAP_BYTES + (bytes + page - 1) / page * page + GAP_BYTES + page;
    char *mapped = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    char *head = (char *)(((uintptr_t)mapped + page - 1) & ~(uintptr_t)(page - 1));
    char *at = head + page + GAP_BYTES;
    if (mprotect(head, page, PROT_READ | PROT_WRITE) != 0 ||
        mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0) {
        munmap(mapped, all);
        return NULL;
    }
    const variable whole = {(uintptr_t)mapped, all};
    memcpy(head, &whole, sizeof whole);
    return at;
}

void soft_checked_free(void *at) {
    if (!at)
        return;
    variable whole;
    memcpy(&whole, (char *)at - GAP_BYTES - 16384, sizeof whole);
    munmap((void *)whole.begin, whole.bytes);
}
