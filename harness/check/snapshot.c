/* snapshot: see snapshot.h. Uses buffer_download and buffer_upload only, so private buffers are
 * handled like shared ones. */
#include "snapshot.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Adds the buffer of a binding, or widens its range if it is there already. */
static void add_slice(snapshot *s, slice at) {
    bool is_whole = at.buffer->storage != STORAGE_NO_COPY;
    size_t from = is_whole ? 0 : at.offset,
           end = is_whole ? at.buffer->bytes : at.offset + at.bytes;
    for (size_t i = 0; i < s->count; i++) {
        snapshot_part *p = &s->parts[i];
        if (p->buffer != at.buffer)
            continue;
        size_t last = p->from + p->bytes > end ? p->from + p->bytes : end;
        p->from = p->from < from ? p->from : from;
        p->bytes = last - p->from;
        return;
    }
    s->parts[s->count++] = (snapshot_part){.buffer = at.buffer, .from = from, .bytes = end - from};
}

bool snapshot_take(const launch *l, snapshot *s, err *e) {
    *s = (snapshot){.count = 0};
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        if (l->args[i].kind == BIND_BUFFER)
            add_slice(s, l->args[i].at);
    for (size_t i = 0; i < s->count; i++) {
        snapshot_part *p = &s->parts[i];
        p->data = malloc(p->bytes ? p->bytes : 1);
        if (!p->data)
            return err_set(e, EXIT_CANNOT, "no memory for a copy of buffer '%s' (%zu bytes)",
                           p->buffer->label, p->bytes);
        if (!buffer_download(p->buffer, p->from, p->data, p->bytes, e))
            return false;
    }
    return true;
}

bool snapshot_restore(const snapshot *s, err *e) {
    for (size_t i = 0; i < s->count; i++) {
        const snapshot_part *p = &s->parts[i];
        if (p->buffer->storage != STORAGE_NO_COPY &&
            !buffer_upload(p->buffer, p->from, p->data, p->bytes, e))
            return false;
    }
    return true;
}

void snapshot_free(snapshot *s) {
    for (size_t i = 0; i < s->count; i++)
        free(s->parts[i].data);
    s->count = 0;
}

const uint8_t *snapshot_find(const snapshot *s, slice at) {
    size_t i = 0;
    while (i < s->count && s->parts[i].buffer != at.buffer)
        i++;
    assert(i < s->count); /* a slice of a binding of this launch */
    return s->parts[i].data + (at.offset - s->parts[i].from);
}

bool snapshot_find_change(const snapshot_part *a, const snapshot_part *b, size_t from, size_t *at) {
    assert(a->buffer == b->buffer && a->from == b->from && a->bytes == b->bytes);
    enum { STEP = 4096 };
    size_t i = from > a->from ? from - a->from : 0;
    while (i < a->bytes) {
        size_t n = a->bytes - i < STEP ? a->bytes - i : STEP;
        if (memcmp(a->data + i, b->data + i, n) == 0) {
            i += n;
            continue;
        }
        while (a->data[i] == b->data[i])
            i++;
        *at = a->from + i;
        return true;
    }
    return false;
}
