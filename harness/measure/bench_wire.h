/* bench_wire: the answer of a bench worker. Both sides are the same program, so it is the bytes of
 * a struct, followed by samples. */
#pragma once

#include "bench.h"

#define WIRE_ROOF "roof" /* the task that asks for the roof alone */

typedef struct {
    bool made;    /* else the error says why not */
    bool skipped; /* not made, because this device cannot run the case as written */
    err error;
    roof_facts roof; /* of WIRE_ROOF */
    result_row row;
    size_t base_count;
    char base_hash[20];
} wire_answer;

/* row.gpu.count samples, then base_count of the base. Made with malloc. */
void *wire_pack(const wire_answer *a, const timing_sample *samples, const timing_sample *base,
                size_t *bytes);
/* False if the bytes are not a valid answer. Samples are copied, made with malloc. */
bool wire_unpack(const void *data, size_t bytes, wire_answer *a, timing_sample **samples,
                 timing_sample **base);
