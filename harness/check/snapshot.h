/* snapshot: the bytes of every buffer that a launch touches, at one moment.
 *
 * Buffers are copied whole, so that a write outside the bound slices shows. Of the caller's memory
 * (STORAGE_NO_COPY, never written and maybe a whole model) only the bound range is copied. */
#pragma once

#include "harness/device/device.h"
#include "harness/device/launch.h"

typedef struct {
    buffer *buffer;
    size_t from, bytes; /* the range of the buffer that was copied */
    uint8_t *data;
} snapshot_part;

typedef struct {
    snapshot_part parts[LAUNCH_BUFFERS]; /* each buffer once */
    size_t count;
} snapshot;

bool snapshot_take(const launch *l, snapshot *s, err *e);
bool snapshot_restore(const snapshot *s, err *e);
void snapshot_free(snapshot *s);

/* Where the snapshot holds a slice of a buffer of its launch. */
const uint8_t *snapshot_find(const snapshot *s, slice at);

/* Offset in the buffer of the first byte at or after `from` in which two snapshots of the same
 * launch differ; false if there is none. */
bool snapshot_find_change(const snapshot_part *a, const snapshot_part *b, size_t from, size_t *at);
