/* finding: something wrong that a device saw a kernel do while it ran.
 *
 * Every validation engine fills the same rows: the software device's checked mode, Metal's shader
 * validation, NVIDIA's compute-sanitizer. Equal findings (class, kernel, line, buffer) are one row
 * with a count; the row keeps the first thread that did it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    FINDING_LOAD_OUTSIDE,
    FINDING_STORE_OUTSIDE,
    FINDING_UNBOUND,
    FINDING_UNWRITTEN,      /* read of memory that nothing wrote */
    FINDING_RACE_IN_GROUP,  /* threads of one threadgroup, no barrier between them */
    FINDING_RACE_OF_GROUPS, /* threadgroups of one launch */
    FINDING_READ_ONLY,      /* store to a buffer bound to be read */
    FINDING_MISALIGNED,
    FINDING_BARRIER,   /* not reached by all threads of the threadgroup */
    FINDING_DIVERGED,  /* a value from a lane that takes no part, or a matrix without all lanes */
    FINDING_DIVIDE,    /* integer division by zero */
    FINDING_SHIFT,     /* by more than the width */
    FINDING_CONVERT,   /* float to an integer that cannot hold it */
    FINDING_OVERFLOW,  /* of a signed integer */
    FINDING_CLAMP,     /* to a range whose ends are the wrong way round */
    FINDING_NO_RETURN, /* a function's end without the value it must return */
    FINDING_ENDLESS,
    FINDING_FAULT,      /* an access that no check explains and the CPU refused */
    FINDING_NAN_BORN,   /* NaN or infinity from finite inputs, where it is traced */
    FINDING_WRONG,      /* the store of a value that is not the expected one */
    FINDING_SAME_STORE, /* threads store the same value in one place: a race without effect */
    FINDING_CLASSES
} finding_class;

typedef struct {
    finding_class what;
    char kernel[128];
    char file[128];               /* .metal file, without its folders */
    int line;                     /* 0: unknown */
    char macro[64], expanded[80]; /* of a line in a macro: its name, and "kernel.metal:90"; or "" */
    uint32_t thread[3], group[3]; /* position in the threadgroup, of the threadgroup */
    int buffer;                   /* index; -1: not a buffer */
    char label[48];               /* of the buffer; "threadgroup memory", "private memory" */
    int64_t element;              /* index in elements of the binding; negative: before its start */
    int64_t by;                   /* bytes outside, where it is outside */
    uint32_t bytes;               /* of the access */
    char text[384];               /* the whole story in one sentence */
    uint64_t count;
} finding;

const char *finding_get_name(finding_class what); /* "load outside" */
/* Adds to its text, as much as fits. */
void finding_append(finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Milder: against the letter of the language and without effect. Fails only a strict run. */
bool finding_is_mild(finding_class what);

typedef struct {
    finding *items;
    size_t count, capacity;
} finding_list;

/* Adds, or counts one more of an equal one. */
void finding_add(finding_list *list, const finding *f);
void finding_clear(finding_list *list);
/* How many fail a run: all, or all that are not mild. */
size_t finding_count_failing(const finding_list *list, bool is_strict);
void finding_free(finding_list *list);

/* Counts: what a device counted while a launch ran, place by place in the source.
 *
 * Only the software device counts, when it is opened for it (device_options.counts). Numbers are exact and
 * the same on every machine: lanes of a simdgroup that reach a place for the n-th time since they last met
 * are taken to do so together, as one instruction of the simdgroup. */
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
