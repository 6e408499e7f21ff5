/* bench_wire: tasks and answers of a bench worker. Both sides are the same program, so an answer is
 * the bytes of a struct, followed by samples.
 *
 *   prepare:C   compiles what case C needs, before anything is timed; there is no answer
 *   roof        the roof alone
 *   check:R:C   the base, or rival number R, against the oracle of case C, before anything is timed
 *   M:C         times case C and, interleaved, the others of the mask M */
#pragma once

#include "bench.h"

#define WIRE_PREPARE "prepare:"
#define WIRE_ROOF "roof"

enum { WIRE_SIDES = 1 + BENCH_OTHERS, WIRE_TASK = 300 };

typedef struct {
    bool made;    /* else the error says why not; with fewer sides than asked for, why others are
                     missing */
    bool skipped; /* not made, because this device cannot run the case as written, the rival is not
                     for it, or the base does not have it */
    bool uncompiled; /* not made, because there is no pipeline: the kernel's other cases fail too */
    err error;
    roof_facts roof; /* of WIRE_ROOF */
    size_t sides;
    result_row rows[WIRE_SIDES]; /* ours, then the others */
} wire_answer;

/* rows[i].gpu.count samples of each side. Made with malloc. */
void *wire_pack(const wire_answer *a, const timing_sample *const *samples, size_t *bytes);
/* False if the bytes are not a valid answer. Samples are copied, made with malloc. */
bool wire_unpack(const void *data, size_t bytes, wire_answer *a, timing_sample **samples);

/* What the check of the base or of a rival on a case found. */
typedef struct {
    bool refused, skipped;
    char why[256];
} other_verdict;

/* Checks the base or the rivals on every case that they are for: (cases, others), to be freed. NULL with
 * e set if a description of a rival does not fit. */
other_verdict *bench_check_others(const bench_settings *s, const bench_list *cases, err *e);
