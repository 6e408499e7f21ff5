/* profile_say: what the counts mean: three sentences, and what to expect of a GPU.
 *
 * The expectation is a model, not a measurement: each of the things that can bind a kernel is a number of
 * units divided by how many of them the GPU does in a nanosecond, and the largest one is the time, together
 * with what a launch costs. Seven constants that no data sheet has were fitted to the stored times; on kernels
 * that they are not fitted to, the model is off by more (docs/profile.md). */
#pragma once

#include "profile.h"

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
    double intensity;    /* flops executed per byte of those */
    double in_flight;    /* simdgroups at a time, of all cores */
} profile_expectation;

profile_expectation profile_expect(const profile *p, const profile_gpu *g);

/* The measured time of the case in the GPU's stored results; NaN: there is none. */
double profile_find_measured(const char *case_name);
/* The commit of those times; "" if there are none. */
const char *profile_get_measured_commit(void);
/* Case i of those with a measured time; false after the last. */
bool profile_get_measured(size_t i, char *case_name, size_t size);

/* Registers of a thread of the kernel on that GPU, from its stored counters; 0: not known. */
double profile_find_registers(const char *kernel);

enum { PROFILE_SENTENCES = 3, PROFILE_SENTENCE = 480 };
void profile_say(const profile *p, const profile_gpu *g,
                 char out[PROFILE_SENTENCES][PROFILE_SENTENCE]);
