/* checked_memory: the device memory that a launch may touch, and what to do about the rest.
 *
 * The one surprise: instrumentation is told before an access, and cannot change its address. So a
 * bad load finds zeros that were put there a moment before, and what a bad store hits is saved and
 * put back: both before the next access, which is the next thing this thread does to memory. */
#if defined(__linux__)
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE */
#endif
#include "checked_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* Joins a binding to the stretch it overlaps, or starts a new one; several may become one. */
void checker_add_stretch(soft_checker *c, const soft_bound *b) {
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
void checker_find_unset(stretch *s) {
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

void checker_map_pages(soft_checker *c, device_region *d) {
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
 * cannot be had, the lane ends. */
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
