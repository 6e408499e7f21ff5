/* checker: what the files of checked mode share; no other file includes it.
 *
 * checked.c is the front door: launches, threadgroups, barriers, what is wrong beyond memory, and the rows that
 * say what was found. checked_access.c judges each access, knows what memory there is and makes bad accesses
 * harmless. checked_order.c knows what comes before what. */
#pragma once

#include <string.h>

#include "checked.h"
#include "rescue.h"

enum {
    ACCESS_BYTES = 16,
    MAX_REPORTS = 256,
    MAX_VARIABLES = MSL_STATIC_SLOTS + SOFT_DYNAMIC,
    MAX_PAGES = 64,
    MAX_LOOKS = 400,
    MAX_PHASES = 4096,
    DEFAULT_SECONDS = 10,
    NAMED_VARIABLES = 4096,
};

/* Shadows: exact to the byte. A cell stands for one unit of memory (4 bytes, or 2 where the elements are 16
 * bits wide). The first access to only a part of a unit splits it into cells of a byte each. Cells
 * are 48 bytes, in memory that is only there where it was touched: 12 bytes per byte of 32-bit
 * elements, 24 per byte of 16-bit elements, 60 where bytes are stored one by one. Atomic accesses
 * are kept aside, one record per word that has any.
 *
 * What is kept of many loads of a unit is two of them: any that comes, and one of another
 * threadgroup, else of another simdgroup, else of another lane. For every store that may follow,
 * if one of the loads races with it, one of these two does. */

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
    uint32_t release, release_group; /* of fences: who released by it, and when */
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

/* Around each buffer: wide enough that most mistakes land here and are attributed to it. */
#define GAP_BYTES ((size_t)64 << 20)

/* What is known of a stretch of device memory: bindings that overlap share one. */
typedef struct {
    uintptr_t begin, end; /* real addresses */
    unsigned unit;        /* of its shadow */
    bool is_written;      /* by this launch */
    bool is_private;      /* the host writes it by calls alone */
    bool is_coherent;     /* by one of its bindings */
    bool has_shadow;
    shadow shadow;
    uint8_t *written; /* a byte each: 0 where nothing was written; NULL when all was */
} stretch;

typedef struct {
    soft_region region; /* first: the page table points to it */
    const soft_bound *bound;
    stretch *stretch;
    uintptr_t shift; /* from the kernel's address to the real one */
    int index;
} device_region;

typedef struct {
    const void *pc;
    bool has_other;
    shadow_access other; /* the other access of a race */
    int other_line;
    const void *barrier; /* that the thread left before */
    finding row;
} report;

typedef struct {
    uintptr_t begin;
    size_t bytes;
    char name[64];
    uint32_t element_bytes;
} variable;

/* A private variable without a value. */
typedef struct {
    uintptr_t at;
    const char *what;
} named_variable;

/* A race of two stores that waits for the second one's value. */
typedef struct {
    bool is_open;
    uintptr_t at;
    size_t bytes;
    unsigned char first[ACCESS_BYTES];
    report row;
} store_race;

/* Where a thread is: the barriers passed that order device [0] and threadgroup [1] memory, and all
 * barriers passed [2]. */
typedef struct {
    uint32_t group, epoch[3], simd_epoch[3];
    uint16_t thread, fences;
} sync_place;

/* An atomic store after a releasing fence, which was at a place. */
typedef struct {
    sync_place at;
    uint32_t known;    /* acquires of the launch up to then */
    uint32_t before;   /* the release in the same word whose store was updated, counted from 1 */
    uint32_t sequence; /* its first one */
    uint8_t memory, scope;
    uint64_t query; /* that came here last */
} sync_release;

/* An acquiring fence after an atomic load. */
typedef struct {
    sync_place at;
    uint32_t release; /* that was read, and with it those before it */
    uint8_t memory, scope;
} sync_acquire;

typedef struct {
    uintptr_t word;
    uint32_t release, next; /* counted from 1 */
} sync_sight;

typedef struct {
    bool is_used; /* a fence was seen in this launch */
    uint64_t query;
    sync_release *releases;
    size_t release_count, release_room;
    sync_acquire *acquires; /* in the order of threadgroups */
    size_t acquire_count, acquire_room;
    sync_sight *sights; /* of this threadgroup, no acquiring fence after them yet */
    size_t sight_count, sight_room;
    uint32_t *todo; /* releases to look before */
    size_t todo_count, todo_room;
    uint32_t free_sight;
    /* of each thread: its sights, the last release fence, and the last release in a word */
    uint32_t seen[SOFT_MAX_THREADS];
    sync_release last[SOFT_MAX_THREADS];
    uint32_t made[SOFT_MAX_THREADS];
    uint16_t fences[SOFT_MAX_THREADS];
} sync_state;

/* The last attempt of a thread to take a lock. */
typedef struct {
    uintptr_t word;
    uint32_t group, phase, simd_phase;
} lock_attempt;

/* Memory that a launch may write, as it was before. */
typedef struct {
    void *at;
    size_t bytes;
    void *copy;
} saved_memory;

/* Of a simdgroup whose lanes take turns. */
typedef struct {
    soft_u32 had; /* lanes that had theirs in this pass */
    uint64_t pass;
} turn_state;

/* What the first run of a launch found: the second one reports only what is new. */
typedef struct {
    finding_class what;
    int buffer, line, other_line;
    char file[128];
} reported_row;

/* In which order threads run: one after the other, each until it returns or waits for others, or in
 * turns, where each hands over before an atomic access. The nth threadgroup that runs is number
 * first + n * step of the grid. */
typedef struct {
    bool takes_turns;
    int64_t first, step;
} soft_order;

struct soft_checker {
    soft_checks hooks; /* first: what the worker points to */
    soft_worker *worker;
    soft_rescue *rescue;
    int looks;      /* by the timer, at a kernel that does not end */
    double seconds; /* after which a launch is called endless */
    const char *kernel, *object;
    uintptr_t image_begin, image_end; /* the loaded kernel: its program-scope constants */
    uintptr_t nothing;
    const soft_table *tables, *table; /* all, and the one that was loaded from last */

    soft_bound bound[SOFT_BUFFERS];
    soft_dynamic dynamic[SOFT_DYNAMIC];
    device_region regions[SOFT_BUFFERS];
    int region_count;
    stretch stretches[SOFT_BUFFERS];
    int stretch_count;

    variable variables[MAX_VARIABLES];
    int variable_count;
    shadow threadgroup_shadow;
    uint32_t threadgroup_written[SOFT_THREADGROUP_ROOM]; /* the group that wrote the byte */
    uint32_t room_high[SOFT_FIBERS]; /* up to which the room of each fiber was ever used */
    bool index_pending;              /* an index outside of an array, not reported yet */
    bool has_told_division;          /* the compiler's check of one that traps on x86-64 */
    int64_t index_value;
    const char *index_type;
    const void *index_pc;
    store_race store_race;
    uintptr_t bits_at;  /* what the next store changes is a bit-field of the memory there */
    bool is_incoherent; /* the memory that is judged */
    bool is_stale;      /* the race found in it is ordered, and what was stored may not be seen */
    sync_state sync;

    soft_order order;
    uint64_t atomics, group_atomics, most_atomics; /* accesses of the launch; of a threadgroup */
    uint64_t atomics_limit; /* of a threadgroup that takes turns: more are an endless loop */
    turn_state turns[SOFT_MAX_GROUPS];
    saved_memory saved_memory[2 * SOFT_BUFFERS];
    int saved_count;
    reported_row reported[MAX_REPORTS];
    int reported_count;

    lock_attempt locks[SOFT_MAX_THREADS];
    named_variable named[NAMED_VARIABLES]; /* a hash table: later ones take the place of earlier */

    uint32_t group;       /* threadgroups so far, of all launches: threadgroup memory has a past */
    uint32_t group_first; /* the last one before this launch */
    uint32_t phase, simd_phase[SOFT_MAX_GROUPS]; /* barriers that this threadgroup has passed */
    /* of each thread: the last barrier passed that ordered device [0] and threadgroup [1] memory */
    uint32_t epoch[2][SOFT_MAX_THREADS], simd_epoch[2][SOFT_MAX_THREADS];
    uint8_t fenced[SOFT_MAX_THREADS]; /* memory of fences since the last barrier */
    const void *parked_at[SOFT_MAX_THREADS], *left_at[SOFT_MAX_THREADS];
    uint64_t parked_by[SOFT_MAX_THREADS]; /* hash of the calls that led there */

    unsigned char saved[ACCESS_BYTES]; /* what stood where a bad access goes */
    uintptr_t saved_at;
    size_t saved_bytes;
    void *pages[MAX_PAGES]; /* mapped only to catch a bad access */
    int page_count;

    uintptr_t watched; /* of the launch: whose last store is reported */
    size_t watched_bytes;
    bool is_stored;
    report last_store;

    report reports[MAX_REPORTS];
    int report_count;
};

static inline soft_checker *checker_of(soft_worker *w) {
    return (soft_checker *)(void *)w->checks;
}

static inline uint32_t checker_thread(const soft_worker *w) {
    return w->running->index * SOFT_LANES + w->running->current;
}

static inline bool checker_is_kernel(const soft_checker *c, uintptr_t pc) {
    return pc - c->image_begin < c->image_end - c->image_begin;
}

enum { CHECKER_FRAMES = 16 };

/* checked.c */
/* One more of what; the row to fill in if it is the first, else NULL. */
report *checker_add_report(soft_checker *c, finding_class what, const void *pc, int index);
/* The same with its text, and label if that is not NULL. */
report *checker_tell(soft_checker *c, finding_class what, const void *pc, const char *label,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));
/* A row of the running thread that is not in the list yet. */
void checker_start_report(const soft_checker *c, report *r, finding_class what, const void *pc,
                          int index);
const char *checker_name_access(unsigned how);
/* Fills in element, label and text; bytes 0: it is not known how many. */
void checker_describe(report *r, const soft_bound *b, uintptr_t at, size_t bytes, unsigned how,
                      const char *what);
void checker_describe_variable(report *r, const variable *v, uintptr_t at, size_t bytes,
                               unsigned how, const char *what);

/* checked_access.c */
const device_region *checker_find_nearest(const soft_checker *c, uintptr_t at);
/* The binding that a bad access was meant for. Where its unsigned index ran below zero, *at becomes
 * the address that the index as a signed number gives. */
void checker_open_regions(soft_checker *c);
void checker_close_regions(soft_checker *c);
/* Lets a bad access do no harm: a load finds zeros, what a store hits is put back before the next
 * access. Where that is impossible, the lane ends. */
void checker_put_back(soft_checker *c);

/* Does what was there before matter? */
static inline bool checker_reads(unsigned how) {
    return !(how & SOFT_STORE) || how & SOFT_UPDATE;
}

void checker_tell_index(soft_checker *c, unsigned how);
void checker_settle_stores(soft_checker *c); /* of a race: did both store the same? */
void checker_forget_exceptions(void); /* of floating point: what was before is not the kernel's */
void checker_access(soft_worker *w, void *p, soft_u64 bytes, soft_u32 how, const void *pc);

bool checker_open_private(soft_checker *c);
void checker_close_private(soft_checker *c);
void checker_end_private(soft_checker *c); /* of a launch: lanes may have ended early */
void checker_empty_rooms(soft_checker *c);
void *checker_reserve(soft_worker *w, soft_u64 bytes, const char *what, const void *pc);
void checker_unset(soft_worker *w, void *at, soft_u64 bytes, const unsigned char *values,
                   soft_u32 period, const char *what);
void checker_end_variable(soft_worker *w, void *at, soft_u64 bytes);

/* checked_order.c */
shadow_access checker_now(const soft_checker *c, bool is_device, unsigned how, size_t bytes,
                          const void *pc);
/* The same with every barrier counted that the thread has passed. */
shadow_access checker_arrived(const soft_checker *c, shadow_access now);
void checker_barrier(soft_worker *w, soft_u32 flags, soft_u32 whole_threadgroup);
void checker_sync(soft_worker *w, soft_u32 flags, soft_u32 order, soft_u32 scope);
/* An atomic access to a word: others may learn of this thread's past by it, or it of theirs. */
void checker_pass_word(soft_checker *c, shadow *memory, uintptr_t word, unsigned how);
shadow_order checker_is_ordered;
void checker_sync_begin(soft_checker *c);
void checker_sync_begin_group(soft_checker *c);
void checker_sync_free(soft_checker *c);
