/* roof: the best this device can do, measured and not copied from a data sheet.
 *
 * Read, copy and triad in GB/s over a given number of bytes, arithmetic in GFLOP/s, the cost of an
 * empty launch, and where the last-level cache ends. A roof belongs to the minute it was measured in: clocks and other
 * programs move it, so the roof is measured again next to what is timed (roof_measure).
 *
 * The roof of a small working set is that of the best size at or above it: a launch has a fixed
 * cost, and what a small read loses to it is no fault of the memory. */
#pragma once

#include "subject.h"

typedef struct roof roof;

enum { ROOF_SIZES = 20 };

/* The kernels that a roof is measured with, given by the caller: the harness knows none. Each
 * records one launch of `groups` threadgroups over vectors of 16 bytes. */
typedef struct {
    bool (*read)(tape *t, slice in, slice sums, uint32_t vectors, uint32_t groups,
                 err *e); /* sums: one float per threadgroup */
    bool (*copy)(tape *t, slice in, slice out, uint32_t vectors, uint32_t groups, err *e);
    bool (*triad)(tape *t, slice a, slice b, slice out, uint32_t vectors, uint32_t groups, err *e);
    bool (*empty)(tape *t, slice counter, err *e); /* adds 1 to a uint */
    /* Arithmetic alone, one vector of 16 bytes in and one out per thread. */
    bool (*compute)(tape *t, slice in, slice out, uint32_t threads, uint32_t rounds, err *e);
} roof_kernels;

/* One window. */
typedef struct {
    double
        best_gb_s; /* of read, copy and triad over the given number of bytes, chained, and of larger sizes that
                         were measured */
    double gflop_s;   /* of the kernel that does arithmetic alone */
    double launch_ns; /* an empty launch in a chain */
    double submit_ns; /* wall time of an empty launch by itself */
} roof_window;

typedef struct {
    size_t cache_bytes;      /* last-level: the larger of what was seen and what the system says */
    size_t seen_bytes;       /* 0: no step was seen */
    char source[32];         /* where cache_bytes comes from, in words */
    size_t size[ROOF_SIZES]; /* of the sweep */
    double read_gb_s[ROOF_SIZES];
    size_t sizes;
    bool is_swept;   /* else read_gb_s is not known */
    uint32_t groups; /* threadgroups that read fastest */
} roof_facts;

/* budget_s: for each kernel and size; 0.05 is plenty. Sweeps sizes once, on a GPU. Every kernel is
 * checked against its oracle before it is timed. */
roof *roof_new(library *lib, const roof_kernels *k, double budget_s, err *e);
void roof_free(roof *r);
const roof_facts *roof_get_facts(const roof *r);

/* Reads more than twice the last-level cache: for subject_options.scrub. */
tape *roof_get_scrub(roof *r, err *e);

/* The roof for a working set, now. Cold: of memory, whatever the working set is. */
bool roof_measure(roof *r, size_t bytes, timing_cache cache, roof_window *out, err *e);

/* Bandwidth by size is a staircase that goes down: each step is a cache that no longer holds the buffer. The last step
 * is the last-level cache: the largest size that is still read faster than memory is, by a fifth or more of what the
 * largest ones get; 0 where there is no such step (slow kernels do not see caches). Sizes ascend by factors of 2, gb_s
 * (count) belongs to them. */
size_t caches_find_last(const size_t *sizes, const double *gb_s, size_t count);
