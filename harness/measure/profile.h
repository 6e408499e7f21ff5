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
    uint64_t work_most, work_mean; /* before barriers, see counts.h */
    uint64_t sectors_of_most;      /* of the site of the line with most of them: */
    int64_t stride;                /* bytes from a lane to the next, or COUNT_MIXED */
    uint32_t width;
} profile_line;

typedef struct {
    char name[200]; /* of the case, the kernel or the op */
    char kernel[128];
    profile_line sum;
    profile_line *lines;
    size_t count, room;
    uint64_t launches, groups, groups_run, simdgroups;
    uint64_t must_bytes, must_flops; /* what the op has to move and to do; 0: not known */
    uint32_t group_threads, threadgroup_bytes, private_bytes;
    uint32_t registers, spill_bytes; /* of a thread, by ptxas for an H200; 0 registers: not known */
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
