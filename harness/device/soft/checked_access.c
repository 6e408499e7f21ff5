/* checked_access: is this access right? Device, threadgroup and private memory, each by its rules.
 *
 * Instrumentation is called before an access, and cannot change its address. So a bad load finds
 * zeros that were put there a moment before, and what a bad store hits is saved and put back: both
 * before the next access, which is the next thing this thread does to memory.
 *
 * The memory of one thread is its variables on its stack and its arrays in rooms. Every byte has a mark
 * (SOFT_MARK_*). A stack has marks where a variable was given no value. An array does not stand on the
 * stack: each fiber has a room, a stretch of address space of its own, where arrays are stacked with wide
 * gaps. A pointer that leaves an array lands in a gap, above the top, or in another fiber's room; to land
 * in another array it must jump exactly there. */
#if defined(__linux__)
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE */
#endif
#include "arena.h"
#include "checker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/device/device.h"

/* What memory there is, and what to do about the rest ------------------------------------------ */

static finding_class get_outside_class(unsigned how) {
    return how & SOFT_STORE ? FINDING_STORE_OUTSIDE : FINDING_LOAD_OUTSIDE;
}

static const device_region *checker_find_region(const soft_checker *c, uintptr_t at, size_t bytes,
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

const device_region *checker_find_nearest(const soft_checker *c, uintptr_t at) {
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

/* An unsigned index below zero: 2^32 elements of some size above the place that was meant. */
static const device_region *find_wrapped(const soft_checker *c, uintptr_t *at) {
    for (int shift = 32; shift <= 36; shift++)
        for (int i = 0; i < c->region_count; i++) {
            const uintptr_t below = c->regions[i].region.begin - (*at - ((uintptr_t)1 << shift));
            if (below - 1 < GAP_BYTES / 2) {
                *at -= (uintptr_t)1 << shift;
                return &c->regions[i];
            }
        }
    return NULL;
}

static const device_region *checker_find_meant(const soft_checker *c, uintptr_t *at) {
    const device_region *near = checker_find_nearest(c, *at);
    const bool is_far = near && (near->region.begin - *at > GAP_BYTES &&
                                 *at - near->region.begin - near->region.bytes > GAP_BYTES);
    const device_region *wrapped = is_far ? find_wrapped(c, at) : NULL;
    return wrapped ? wrapped : near;
}

/* Joins a binding to the stretch it overlaps, or starts a new one; several may become one. */
static void add_stretch(soft_checker *c, const soft_bound *b) {
    stretch n = {.begin = (uintptr_t)b->real,
                 .end = (uintptr_t)b->real + b->bytes,
                 .unit = b->element_bytes == 2 ? 2 : 4,
                 .is_written = b->can_write,
                 .is_private = b->is_private,
                 .is_coherent = b->is_coherent,
                 .written = b->written};
    int kept = 0;
    for (int i = 0; i < c->stretch_count; i++) {
        const stretch *s = &c->stretches[i];
        if (s->end <= n.begin || n.end <= s->begin) {
            c->stretches[kept++] = *s;
            continue;
        }
        if (s->begin < n.begin) {
            n.begin = s->begin;
            n.written = s->written;
        }
        n.end = s->end > n.end ? s->end : n.end;
        n.unit = s->unit < n.unit ? s->unit : n.unit;
        n.is_written = n.is_written || s->is_written;
        n.is_coherent = n.is_coherent || s->is_coherent;
    }
    c->stretches[kept++] = n;
    c->stretch_count = kept;
}

/* The host may have written through a buffer's contents without a call: eight bytes count as written
 * if any of them that was not known to be has lost the poison. */
static void find_written(stretch *s) {
    const uint64_t poison = POISON_PATTERN * UINT64_C(0x0001000100010001);
    unsigned char pattern[8];
    memcpy(pattern, &poison, sizeof pattern);
    size_t bytes = s->end - s->begin;
    const unsigned char *at = (const unsigned char *)s->begin;
    const uint8_t *hole = s->written;
    bool any = false;
    while ((hole = memchr(hole, 0, bytes - (size_t)(hole - s->written)))) {
        size_t i = (size_t)(hole - s->written), n = bytes - i < 8 ? bytes - i : 8;
        bool is_poison = true;
        for (size_t k = i; k < i + n; k++)
            is_poison = is_poison && (s->written[k] || at[k] == pattern[(s->begin + k) % 2]);
        if (!is_poison)
            memset(s->written + i, 1, n);
        any = any || is_poison;
        hole += n;
        if ((size_t)(hole - s->written) >= bytes)
            break;
    }
    if (!any)
        s->written = NULL;
}

static void map_pages(soft_checker *c, const device_region *d) {
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

static void add_region(soft_checker *c, int index) {
    const soft_bound *b = &c->bound[index];
    device_region *d = &c->regions[c->region_count++];
    *d = (device_region){.region = {(uintptr_t)b->begin, b->bytes, 0},
                         .bound = b,
                         .shift = (uintptr_t)b->real - (uintptr_t)b->begin,
                         .index = index};
    uintptr_t real = (uintptr_t)b->real;
    for (int j = 0; j < c->stretch_count; j++)
        if (c->stretches[j].begin <= real && real < c->stretches[j].end)
            d->stretch = &c->stretches[j];
    d->region.plain = !d->stretch->is_written && !d->stretch->written;
    map_pages(c, d);
}

void checker_open_regions(soft_checker *c) {
    memset(c->hooks.page, 0, sizeof c->hooks.page);
    memset(c->hooks.inline_region, 0, sizeof c->hooks.inline_region);
    c->stretch_count = c->region_count = 0;
    for (int i = 0; i < SOFT_BUFFERS; i++)
        if (c->bound[i].is_bound)
            add_stretch(c, &c->bound[i]);
    for (int i = 0; i < c->stretch_count; i++) {
        stretch *s = &c->stretches[i];
        if (s->written && !s->is_private)
            find_written(s);
        s->has_shadow =
            s->is_written && shadow_open(&s->shadow, s->begin, s->end - s->begin, s->unit, true);
    }
    for (int i = 0; i < SOFT_BUFFERS; i++)
        if (c->bound[i].is_bound)
            add_region(c, i);
}

void checker_close_regions(soft_checker *c) {
    for (int i = 0; i < c->stretch_count; i++)
        if (c->stretches[i].has_shadow)
            shadow_close(&c->stretches[i].shadow);
    c->stretch_count = c->region_count = 0;
    while (c->page_count > 0)
        munmap(c->pages[--c->page_count], (size_t)sysconf(_SC_PAGESIZE));
}

void checker_put_back(soft_checker *c) {
    if (c->saved_bytes)
        memcpy((void *)c->saved_at, c->saved, c->saved_bytes);
    c->saved_bytes = 0;
    c->hooks.pending = c->hooks.trace; /* in a trace nothing is let through unseen */
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
 * is impossible, the lane ends. */
static void checker_neutralise(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
                               bool is_ours) {
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

/* Private memory ------------------------------------------------------------------------------- */

enum {
    ROOM_GAP = 4096,      /* between arrays */
    ROOM_GAP_SMALL = 256, /* once half of the room is used */
    ROOM_ALIGNMENT = 256,
    ROOM_FIRST = ROOM_GAP, /* where the first array stands */
};

static const size_t stack_bytes = SOFT_REGION_BYTES - SOFT_STACKS_AT;

bool checker_open_private(soft_checker *c) {
    c->hooks.marks = soft_map(NULL, stack_bytes);
    c->hooks.rooms = (uintptr_t)soft_map(NULL, 2 * SOFT_ROOMS_BYTES);
    return c->hooks.marks && c->hooks.rooms;
}

void checker_close_private(soft_checker *c) {
    if (c->hooks.marks)
        munmap(c->hooks.marks, stack_bytes);
    if (c->hooks.rooms)
        munmap((void *)(uintptr_t)c->hooks.rooms, 2 * SOFT_ROOMS_BYTES);
}

static size_t offset_in_stacks(const soft_checker *c, uintptr_t at) {
    return at - (uintptr_t)c->worker - SOFT_STACKS_AT;
}

static uint32_t find_fiber(const soft_checker *c) {
    size_t here = offset_in_stacks(c, (uintptr_t)__builtin_frame_address(0));
    return (uint32_t)(here / SOFT_STACK_BYTES % SOFT_FIBERS);
}

static uint8_t *find_marks(const soft_checker *c, uintptr_t at) {
    size_t inside = offset_in_stacks(c, at);
    return inside < stack_bytes ? c->hooks.marks + inside : (uint8_t *)at + SOFT_ROOMS_BYTES;
}

/* Rooms ---------------------------------------------------------------------------------------- */

static uintptr_t find_room(const soft_checker *c, uint32_t fiber) {
    return (uintptr_t)(c->hooks.rooms + fiber * SOFT_ROOM_BYTES);
}

static bool is_in_room(const soft_checker *c, uintptr_t at, size_t bytes) {
    uint32_t fiber = find_fiber(c), top = c->hooks.room_top[fiber];
    size_t inside = at - find_room(c, fiber);
    return inside < top && bytes <= top - inside;
}

/* Lanes that ended early have left their arrays there. */
void checker_empty_rooms(soft_checker *c) {
    for (uint32_t i = 0; i < SOFT_FIBERS; i++) {
        if (c->hooks.room_top[i])
            memset(find_marks(c, find_room(c, i)), SOFT_MARK_EDGE, c->hooks.room_top[i]);
        c->hooks.room_top[i] = 0;
    }
}

void checker_end_private(soft_checker *c) {
    checker_empty_rooms(c);
    for (uint32_t i = 0; i < SOFT_FIBERS && c->hooks.ended; i++)
        if (c->room_high[i]) /* names of what has ended go with the kernel */
            memset(find_marks(c, find_room(c, i)), SOFT_MARK_EDGE, c->room_high[i]);
    c->hooks.ended = 0;
    if (!c->hooks.unset)
        return;
    soft_map(c->hooks.marks,
             stack_bytes); /* new pages are zeros; madvise promises that on Linux only */
    memset(c->named, 0, sizeof c->named);
    c->hooks.unset = 0;
}

void *checker_reserve(soft_worker *w, soft_u64 bytes, const char *what, const void *pc) {
    soft_checker *c = checker_of(w);
    uint32_t fiber = find_fiber(c), *high = &c->room_high[fiber];
    uint32_t at = c->hooks.room_top[fiber] ? c->hooks.room_top[fiber] : ROOM_FIRST;
    uint64_t gap = at < SOFT_ROOM_BYTES / 2 ? ROOM_GAP : ROOM_GAP_SMALL;
    uint64_t top = (at + bytes + gap + ROOM_ALIGNMENT - 1) / ROOM_ALIGNMENT * ROOM_ALIGNMENT;
    if (bytes > SOFT_ROOM_BYTES || top > SOFT_ROOM_BYTES) {
        checker_tell(c, FINDING_FAULT, pc, NULL,
                     "private memory overrun: a recursion, or more of it than a thread has");
        soft_end_lane(w);
    }
    const uintptr_t room = find_room(c, fiber);
    uint8_t *marks = find_marks(c, room);
    if (top > *high) {
        memset(marks + *high, SOFT_MARK_EDGE, top - *high);
        *high = (uint32_t)top;
    }
    memset(marks + at, 0, bytes);
    if (c->hooks.ended)
        memset(marks + at + bytes, SOFT_MARK_EDGE, top - at - bytes);
    memcpy((void *)(room + at - sizeof what), &what, sizeof what); /* in the gap */
    c->hooks.room_top[fiber] = (uint32_t)top;
    return (void *)(room + at);
}

static named_variable *find_named(soft_checker *c, uintptr_t at) {
    return &c->named[(at >> 2 ^ at / SOFT_STACK_BYTES * 61) % NAMED_VARIABLES];
}

void checker_unset(soft_worker *w, void *at, soft_u64 bytes, const unsigned char *values,
                   soft_u32 period, const char *what) {
    soft_checker *c = checker_of(w);
    uint8_t *marks = find_marks(c, (uintptr_t)at);
    for (soft_u64 i = 0; i + period <= bytes; i += period)
        memcpy(marks + i, values, period);
    *find_named(c, (uintptr_t)at) = (named_variable){(uintptr_t)at, what};
    c->hooks.unset = 1;
}

void checker_end_variable(soft_worker *w, void *at, soft_u64 bytes) {
    soft_checker *c = checker_of(w);
    const bool is_array = (uintptr_t)at - c->hooks.rooms < SOFT_ROOMS_BYTES;
    uint8_t *marks = find_marks(c, (uintptr_t)at);
    if (*marks != SOFT_MARK_ENDED)
        memset(marks, is_array ? SOFT_MARK_EDGE : 0, bytes);
    if (is_array) {
        const uint32_t fiber = find_fiber(c), top = (uint32_t)((uintptr_t)at - find_room(c, fiber));
        c->hooks.room_top[fiber] = top > ROOM_FIRST ? top : 0;
    }
}

/* What a private variable is called; at: anywhere in it, or, of an array, near it. */
static const char *name_variable(soft_checker *c, uintptr_t at) {
    if (offset_in_stacks(c, at) < stack_bytes) {
        for (uintptr_t p = at; p + ROOM_GAP > at; p--)
            if (find_named(c, p)->at == p)
                return find_named(c, p)->what;
        return "a variable";
    }
    const uintptr_t room = find_room(c, find_fiber(c)), first = room + ROOM_FIRST;
    const uint32_t top = c->hooks.room_top[find_fiber(c)];
    const uint8_t *marks = find_marks(c, room);
    uintptr_t p = at < first ? first : at >= room + top ? room + top - 1 : at;
    if (marks[at - room] == SOFT_MARK_ENDED)
        p = at;
    else if (top == 0)
        return "an array that is no longer";
    while (p > first && marks[p - room] == SOFT_MARK_EDGE)
        p--;
    while (p > first && marks[p - 1 - room] != SOFT_MARK_EDGE)
        p--;
    const char *what;
    memcpy(&what, (const void *)(p - sizeof what), sizeof what);
    return what;
}

/* Accesses ------------------------------------------------------------------------------------- */

static void outside_private(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
                            const void *pc) {
    const bool is_late = *find_marks(c, at) == SOFT_MARK_ENDED;
    report *r =
        c->index_pending
            ? NULL
            : checker_tell(
                  c, get_outside_class(how), pc, is_late ? "private memory" : "private array",
                  "%s of %zu bytes %s%.80s%s", checker_name_access(how), bytes,
                  is_late ? "of "
                          : "through a pointer that has left its private array: the nearest is ",
                  name_variable(c, at), is_late ? ", whose life has ended" : "");
    if (r)
        r->row.bytes = (uint32_t)bytes;
    checker_neutralise(c, at, bytes, how, true);
}

static void checker_access_private(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
                                   const void *pc) {
    const bool is_on_stack = offset_in_stacks(c, at) < stack_bytes;
    uint8_t *marks = find_marks(c, at);
    if (is_on_stack && !c->hooks.unset)
        return;
    if ((!is_on_stack && !is_in_room(c, at, bytes)) || memchr(marks, SOFT_MARK_EDGE, bytes) ||
        memchr(marks, SOFT_MARK_ENDED, bytes)) {
        outside_private(c, at, bytes, how, pc);
        return;
    }
    /* What may be padding is asked for only where nothing else was loaded with it. */
    bool is_unset = memchr(marks, SOFT_MARK_UNSET, bytes) ||
                    (!memchr(marks, 0, bytes) && memchr(marks, SOFT_MARK_MAYBE, bytes));
    if (checker_reads(how) && is_unset) {
        report *r = checker_tell(c, FINDING_UNWRITTEN, pc, "private memory",
                                 "%s of %zu bytes of %.80s, which was given no value",
                                 checker_name_access(how), bytes, name_variable(c, at));
        if (r)
            r->row.bytes = (uint32_t)bytes;
        memset(marks, 0, bytes); /* said once */
    }
    if (how & SOFT_STORE)
        memset(marks, 0, bytes);
}

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
    if (memcmp(s->first, (const void *)s->at, s->bytes) == 0)
        s->row.row.what = FINDING_SAME_STORE;
    report *r = checker_add_report(c, s->row.row.what, s->row.pc, s->row.row.buffer);
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

/* Is a load of one whole unit right and nothing new? Most loads of shared memory are: what was
 * stored there is ordered before, and two lanes of this simdgroup loaded it already since the last
 * barrier. Says no when in doubt. */
static bool is_known_load(const soft_checker *c, const shadow *s, uintptr_t at, size_t bytes) {
    const shadow_cell *cell = &s->cells[(at - s->begin) / s->unit];
    const shadow_access *store = &cell->store, *a = &cell->load[0], *b = &cell->load[1];
    const uint32_t t = checker_thread(c->worker), simd = t / SOFT_LANES, kind = !s->is_shared;
    const uint32_t group = c->group & 0xFFFFFF, phase = c->phase & 0x3FFFFF;
    const uint32_t simd_phase = c->simd_phase[simd] & 0x3FFFFF;
    return bytes == s->unit && (at - s->begin) % s->unit == 0 && !store->split && !store->atomics &&
           store->group == group &&
           (store->epoch < (c->epoch[kind][t] & 0x3FFFFF) || store->thread == t ||
            (store->thread / SOFT_LANES == simd &&
             store->simd_epoch < (c->simd_epoch[kind][t] & 0x3FFFFF))) &&
           a->group == group && b->group == group && a->epoch == phase && b->epoch == phase &&
           a->simd_epoch == simd_phase && b->simd_epoch == simd_phase &&
           a->thread / SOFT_LANES == simd && b->thread / SOFT_LANES == simd;
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
    report *r = checker_add_report(c, get_outside_class(how), pc, near ? near->index : -1);
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
    report *r = checker_add_report(c, get_outside_class(how), pc, -1);
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
    report *r = checker_tell(c, get_outside_class(how), c->index_pc, "array",
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
            : checker_tell(c, get_outside_class(how), pc, "constant table",
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
