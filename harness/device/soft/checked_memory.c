/* checked_memory: the device memory that a launch may touch, and what to do about the rest.
 *
 * Instrumentation is told before an access, and cannot change its address. So a bad load finds
 * zeros that were put there a moment before, and what a bad store hits is saved and put back: both
 * before the next access, which is the next thing this thread does to memory. */
#if defined(__linux__)
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE */
#endif
#include "checker.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/device/device.h"

const device_region *checker_find_region(const soft_checker *c, uintptr_t at, size_t bytes,
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

const device_region *checker_find_meant(const soft_checker *c, uintptr_t *at) {
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
void checker_neutralise(soft_checker *c, uintptr_t at, size_t bytes, unsigned how, bool is_ours) {
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
