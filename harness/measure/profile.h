/* profile: what launches did, counted by the software device, summed for each line of the source.
 *
 * A profile may be of one launch, of a case, or of all launches of an op in a token. */
#pragma once

#include "harness/device/tape.h"

typedef enum { TRAFFIC_LOAD, TRAFFIC_STORE, TRAFFIC_ATOMIC, TRAFFICS } traffic;

enum { PROFILE_WIDTHS = 5 }; /* 1, 2, 4, 8, 16 bytes */

/* Of one line, or of all. */
typedef struct {
    char file[200]; /* its path */
    int line;
    uint64_t n[TRAFFICS][SPACES][COUNT_FIELDS];
    uint64_t widths[PROFILE_WIDTHS]; /* lanes that loaded so many bytes of device memory */
    uint64_t work[WORKS];            /* of all lanes */
    uint64_t instructions;           /* of simdgroups */
    uint64_t simd, matrices,
        barriers;                  /* functions and products of simdgroups; waits of simdgroups */
    uint64_t work_most, work_mean; /* before barriers, see finding.h */
    uint64_t sectors_of_most;      /* of the site of the line with most of them: */
    int64_t stride;                /* bytes from a lane to the next, or COUNT_MIXED */
    uint32_t width;
} profile_line;

typedef struct {
    char name[256]; /* of the case, the kernel or the op */
    char kernel[128];
    profile_line sum;
    profile_line *lines;
    size_t count, room;
    uint64_t launches, groups, groups_run, simdgroups;
    uint64_t must_bytes; /* what the op has to move; 0: not known */
    uint32_t group_threads, threadgroup_bytes, private_bytes;
    uint32_t registers, spill_bytes; /* of a thread, by ptxas; 0 registers: not known */
    char *code;                      /* the machine code for it, as nvdisasm prints it, or NULL */
} profile;

void profile_free(profile *p);
/* Plays the tape launch by launch on a device that counts; each adds to what `choose` gives for it. */
typedef profile *profile_choose(void *context, const launch *l);
bool profile_play(tape *t, profile_choose *choose, void *context, err *e);

/* Sums over spaces or kinds. Device memory: the constant address space included. */
uint64_t profile_sum_device(const profile_line *l, count_field f);
uint64_t profile_sum_shared(const profile_line *l, count_field f);
/* Shares, from 0 to 1; NaN where there is nothing. */
double profile_get_coalescing(
    const profile_line
        *l); /* bytes asked for / bytes of sectors; what several lanes ask for counts once */
double profile_get_active(const profile_line *l); /* lanes that work / lanes there are */
/* Lines with most sectors first; with bank conflicts and instructions where those are equal. */
void profile_sort(profile *p);

/* What the counts mean: three sentences, and what to expect of a GPU.
 *
 * The expectation is a model, not a measurement: each of the things that can bind a kernel is a number of
 * units divided by how many of them the GPU does in a nanosecond, and the largest one is the time, together
 * with what a launch costs. Seven constants that no data sheet has were fitted to the stored times; on kernels
 * that they are not fitted to, the model is off by more (docs/profile.md). */

typedef enum {
    BOUND_MEMORY,
    BOUND_CACHE,
    BOUND_SHARED,
    BOUND_ISSUE,
    BOUND_LATENCY,
    BOUNDS
} profile_bound;
const char *profile_get_bound_name(profile_bound b); /* "memory" */

/* What a GPU does. */
typedef struct {
    char name[96];
    double cores, clock_ghz;
    double memory_gb_s, launch_ns; /* measured, where results have them */
    bool is_measured;
    double simdgroups_per_core, threadgroup_bytes_per_core, registers_per_core;
    double issue,
        sectors_per_clock; /* of a core in a clock: instructions of LLVM; sectors from its cache or to it */
    double memory_part;     /* of the memory roof, which long streams reach */
    double start_ns;        /* of a grid, beyond an empty launch */
    double step_ns;         /* of a simdgroup, for one instruction after another */
    double load_ns, far_ns; /* more for a load; and if the nearest cache has it not */
} profile_gpu;

/* The GPU that results/DEVICE/gpu.csv describes; roofs from its stored results, if they are there. */
bool profile_find_gpu(profile_gpu *out, err *e);

typedef struct {
    double ns[BOUNDS]; /* without the launch */
    profile_bound bound;
    double total_ns;     /* of a launch */
    double memory_bytes; /* that come from memory or go there */
    double in_flight;    /* simdgroups at a time, of all cores */
} profile_expectation;

profile_expectation profile_expect(const profile *p, const profile_gpu *g);

/* The measured time of the case in the GPU's stored results; NaN: there is none. */
double profile_find_measured(const char *case_name);
/* Registers of a thread of the kernel on that GPU, from its stored counters; 0: not known. */
double profile_find_registers(const char *kernel);

enum { PROFILE_SENTENCES = 3, PROFILE_SENTENCE = 480 };
void profile_say(const profile *p, const profile_gpu *g,
                 char out[PROFILE_SENTENCES][PROFILE_SENTENCE]);
