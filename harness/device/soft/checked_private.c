/* checked_private: the memory of one thread: its variables on its stack, its arrays in rooms.
 *
 * Every byte has a mark (SOFT_MARK_*). A stack has marks where a variable was given no value. An
 * array does not stand on the stack: each fiber has a room, a stretch of address space of its own,
 * where arrays are stacked with wide gaps. A pointer that leaves an array lands in a gap, above the
 * top, or in another fiber's room; to land in another array it must jump exactly there. */
#include "checker.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ROOM_GAP = 4096,      /* between arrays */
    ROOM_GAP_SMALL = 256, /* where there are so many that the room would not do */
    ROOM_ALIGNMENT = 256,
    ROOM_FIRST = ROOM_GAP, /* where the first array stands */
};

static const size_t stack_bytes = SOFT_REGION_BYTES - SOFT_STACKS_AT;

static void *map(void *at, size_t bytes) {
    int flags = MAP_PRIVATE | MAP_ANON | (at ? MAP_FIXED : 0);
#if defined(MAP_NORESERVE)
    flags |= MAP_NORESERVE;
#endif
    return mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
}

bool checker_open_private(soft_checker *c) {
    void *marks = map(NULL, stack_bytes);
    void *rooms = map(NULL, 2 * SOFT_ROOMS_BYTES);
    c->hooks.marks = marks == MAP_FAILED ? NULL : marks;
    c->hooks.rooms = rooms == MAP_FAILED ? 0 : (uintptr_t)rooms;
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
    map(c->hooks.marks, stack_bytes); /* new pages are zeros; madvise promises that on Linux only */
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
                  c, checker_outside_class(how), pc, is_late ? "private memory" : "private array",
                  "%s of %zu bytes %s%.80s%s", checker_name_access(how), bytes,
                  is_late ? "of "
                          : "through a pointer that has left its private array: the nearest is ",
                  name_variable(c, at), is_late ? ", whose life has ended" : "");
    if (r)
        r->row.bytes = (uint32_t)bytes;
    checker_neutralise(c, at, bytes, how, true);
}

void checker_access_private(soft_checker *c, uintptr_t at, size_t bytes, unsigned how,
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
