/* checked_internal: what the files of checked mode share; nobody else includes it.
 *
 * checked.c is the front door: launches, threadgroups, barriers, mishaps. checked_access.c judges
 * each access, checked_memory.c knows what memory there is and makes bad accesses harmless,
 * checked_report.c says what was found. */
#ifndef ASSAY_SOFT_CHECKED_INTERNAL_H
#define ASSAY_SOFT_CHECKED_INTERNAL_H

#include "checked.h"
#include "rescue.h"
#include "shadow.h"

enum {
    ACCESS_BYTES = 16,
    MAX_REPORTS = 256,
    MAX_VARIABLES = 256,
    MAX_PAGES = 64,
    MAX_LOOKS = 400,
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
    int looks;        /* by the timer, at a kernel that does not end */
    unsigned seconds; /* after which a launch is called endless */
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
    bool index_pending; /* an index outside of an array, not told yet */
    int64_t index_value;
    const char *index_type;
    const void *index_pc;

    int64_t declared; /* variables without a value that are alive */

    uint32_t group; /* threadgroups so far, of all launches: threadgroup memory has a past */
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

static inline soft_checker *checker_of(soft_worker *w) {
    return (soft_checker *)(void *)w->checks;
}

static inline uint32_t checker_thread(const soft_worker *w) {
    return w->running->index * SOFT_LANES + w->running->current;
}

/* checked_report.c */
/* One more of what; the row to fill in if it is the first, else NULL. */
report *checker_add_report(soft_checker *c, finding_class what, const void *pc, int index);
const char *checker_name_access(unsigned how);
/* Fills in element, label and text; bytes 0: it is not known how many. */
void checker_describe(report *r, const soft_bound *b, uintptr_t at, size_t bytes, unsigned how,
                      const char *what);
/* The line of an address of the kernel, from its debug information. */
void checker_find_line(const soft_checker *c, const void *pc, char *file, size_t size, int *line);
bool checker_is_same_line(const soft_checker *c, const void *a, const void *b);

/* checked_memory.c */
const device_region *checker_find_region(const soft_checker *c, uintptr_t at, size_t bytes,
                                         unsigned how);
const device_region *checker_find_nearest(const soft_checker *c, uintptr_t at);
void checker_add_stretch(soft_checker *c, const soft_bound *b);
void checker_find_unset(stretch *s);
void checker_map_pages(soft_checker *c, device_region *d);
/* Lets a bad access do no harm: a load finds zeros, what a store hits is put back before the next
 * access. Where that cannot be had, the lane ends. */
void checker_neutralise(soft_checker *c, uintptr_t at, size_t bytes, unsigned how, bool is_ours);
void checker_put_back(soft_checker *c);

/* checked_access.c */
void checker_tell_index(soft_checker *c);
void checker_forget_exceptions(void); /* of floating point: what was before is not the kernel's */
void checker_access(soft_worker *w, void *p, soft_u64 bytes, soft_u32 how, const void *pc);

#endif
