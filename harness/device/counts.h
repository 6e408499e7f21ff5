/* counts: what a device counted while a launch ran, place by place in the source.
 *
 * Only the software device counts, when it is opened for it (device_options.counts). Numbers are exact and
 * the same on every machine: lanes of a simdgroup that reach a place for the n-th time since they last met
 * are taken to do so together, as one instruction of the simdgroup. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { SPACE_DEVICE, SPACE_CONSTANT, SPACE_THREADGROUP, SPACE_PRIVATE, SPACES } count_space;

/* As the table of a compiled kernel says it (soft/counted.h). */
typedef enum {
    PLACE_LOAD = 'L',
    PLACE_STORE = 'S',
    PLACE_ATOMIC = 'A',
    PLACE_BLOCK = 'B',
    PLACE_SIMD = 'M',
    PLACE_MATRIX = 'X',
    PLACE_BARRIER = 'W',
    PLACE_ARRAY = 'P', /* private; work[0] is its bytes */
} place_kind;

typedef enum {
    WORK_FLOPS,
    WORK_INTEGERS,
    WORK_CONVERSIONS,
    WORK_SPECIALS,
    WORK_ALL,
    WORKS
} work_kind;

enum { COUNT_SECTOR = 32, COUNT_LINE = 128, COUNT_BANKS = 32 };
#define COUNT_MIXED ((uint64_t)INT64_MIN)

typedef enum {
    COUNT_TIMES, /* instructions of a simdgroup: what NVIDIA calls requests, if it is an access */
    COUNT_LANES, /* the same for each lane that took part */
    COUNT_BYTES, /* asked for, by all lanes */
    COUNT_USED,  /* bytes of the sectors that at least one lane asked for */
    COUNT_SECTORS,
    COUNT_LINES,
    COUNT_CONFLICTS,  /* threadgroup memory: cycles beyond those without a bank conflict */
    COUNT_CONTENTION, /* atomics: lanes that wait for another one at the same address */
    COUNT_NEW_SIMD,   /* bytes loaded that the simdgroup had not loaded before */
    COUNT_NEW_GROUP,  /* the threadgroup */
    COUNT_NEW_GRID,   /* any thread */
    COUNT_MISS_8K,    /* sectors loaded that such a cache of the threadgroup does not have */
    COUNT_MISS_64K,   /* of the core */
    COUNT_MISS_8M,    /* of the device */
    COUNT_UNSEEN,     /* accesses of lanes beyond the room for them; in LANES and BYTES only */
    COUNT_STRIDE,     /* bytes from a lane to the next, or COUNT_MIXED; not a sum */
    COUNT_WORK_MOST,  /* barriers: instructions of the simdgroup that did most before it */
    COUNT_WORK_MEAN,  /* and of all simdgroups, on average */
    COUNT_FIELDS
} count_field;

/* What one place did in one space. */
typedef struct {
    place_kind kind;
    count_space space;
    char file[200];
    int line;
    uint32_t work[WORKS]; /* of a block, each time; of an access work[0] is its width in bytes */
    uint64_t n[COUNT_FIELDS];
} count_row;

typedef struct {
    count_row *rows;
    size_t count, room;
    uint64_t groups, groups_run; /* threadgroups of the launch, and those that were counted */
    uint32_t threadgroup_bytes;
} count_list;
