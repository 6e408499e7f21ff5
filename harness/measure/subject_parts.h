/* subject_parts: the buffers of a tape, their contents at the start, and their copies. Only subject.c
 * includes it. */
#pragma once

#include "harness/device/tape.h"

typedef struct {
    buffer *original;
    size_t from, bytes; /* the part that is bound */
    bool is_written;
    size_t
        float_bytes; /* of an element of a part that is only read, as floats of one size; else 0 */
    uint8_t *contents; /* from..from+bytes at the start */
    uint8_t *turned;   /* the same values at other places; of the part that varies */
    uint8_t *want[2];  /* what a play leaves: on the contents, and on the turned ones */
    buffer **copies;   /* of copy 1, 2, ...; NULL where the original is shared */
    size_t copy_count; /* of these */
} part;

typedef struct {
    device *device;
    part *items;
    size_t count;
    part *varied;  /* odd copies of it have the turned contents; NULL: none varies */
    bool in_place; /* a play starts from what the previous one left */
    bool drifts;   /* and those are floats, which can grow without bound */
} part_list;

bool parts_list(part_list *s, const tape *t, err *e);
void parts_free(part_list *s);
part *parts_find(const part_list *s, const buffer *b);
size_t parts_sum_bytes(const part_list *s, bool written_only);

/* Copies 1 to count - 1. */
bool parts_make_copies(part_list *s, part *p, size_t count, err *e);
buffer *part_get_copy(const part *p, size_t copy); /* the original where there are no copies */
/* Every written buffer as it was at the start. */
bool parts_reset(part_list *s, err *e);
bool parts_poison(part_list *s, const tape *t, err *e); /* what the tape only writes */

/* Makes the turned contents; false if they are the same. */
bool part_turn(part *p);
bool part_put(const part *p, const uint8_t *contents, err *e); /* into the original */

/* Keeps what is in the outputs as want[set]. */
bool parts_keep(part_list *s, int set, err *e);
/* Do at least a quarter of all results differ between the two? */
bool parts_differ(const part_list *s);
/* The outputs of a copy, or `bytes` of a part of them, as a play leaves them. */
bool parts_compare(const part_list *s, size_t copy, int set, bool *same, err *e);
bool part_compare(const part *p, size_t copy, int set, size_t at, size_t bytes, uint8_t *room,
                  bool *same, err *e);
