#include "subject_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

part *parts_find(const part_list *s, const buffer *b) {
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].original == b)
            return &s->items[i];
    return NULL;
}

static void add_binding(part_list *s, const binding *b) {
    part *p = parts_find(s, b->at.buffer);
    bool is_read = b->access & ACCESS_READ, is_written = b->access & ACCESS_WRITE;
    size_t float_bytes = !is_written && elem_is_float(b->type) ? elem_get_bytes(b->type) : 0;
    if (!p) {
        s->items = realloc(s->items, (s->count + 1) * sizeof *s->items);
        assert(s->items);
        p = &s->items[s->count++];
        *p = (part){.original = b->at.buffer,
                    .from = b->at.offset,
                    .bytes = b->at.bytes,
                    .float_bytes = float_bytes};
    } else if (is_written && !p->is_written)
        s->in_place = s->drifts = true; /* read by a launch before, or by this one */
    size_t end = p->from + p->bytes, new_end = b->at.offset + b->at.bytes;
    p->from = b->at.offset < p->from ? b->at.offset : p->from;
    p->bytes = (new_end > end ? new_end : end) - p->from;
    p->is_written = p->is_written || is_written;
    p->float_bytes = p->float_bytes == float_bytes ? float_bytes : 0;
    s->in_place = s->in_place || (is_read && is_written);
    s->drifts = s->drifts || (is_read && is_written && elem_is_float(b->type));
}

bool parts_list(part_list *s, const tape *t, err *e) {
    s->device = library_get_device(t->lib);
    for (size_t i = 0; i < t->count; i++)
        for (int j = 0; j < LAUNCH_BUFFERS; j++)
            if (t->launches[i].args[j].kind == BIND_BUFFER)
                add_binding(s, &t->launches[i].args[j]);
    for (size_t i = 0; i < s->count; i++) {
        part *p = &s->items[i];
        p->contents = malloc(p->bytes + 1);
        if (!p->contents)
            return err_set(e, EXIT_CANNOT, "no memory to keep the %zu bytes of '%s'", p->bytes,
                           p->original->label);
        if (!buffer_download(p->original, p->from, p->contents, p->bytes, e))
            return false;
    }
    return true;
}

void parts_free(part_list *s) {
    for (size_t i = 0; i < s->count; i++) {
        part *p = &s->items[i];
        for (size_t c = 0; c < p->copy_count; c++)
            buffer_free(p->copies[c]);
        free(p->copies);
        free(p->contents);
        free(p->turned);
        free(p->want[0]);
        free(p->want[1]);
    }
    free(s->items);
}

size_t parts_sum_bytes(const part_list *s, bool written_only) {
    size_t sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += s->items[i].is_written || !written_only ? s->items[i].bytes : 0;
    return sum;
}

buffer *part_get_copy(const part *p, size_t copy) {
    return copy == 0 || !p->copies ? p->original : p->copies[copy - 1];
}

bool parts_make_copies(part_list *s, part *p, size_t count, err *e) {
    const buffer *o = p->original;
    p->copies = array_new(count, sizeof *p->copies);
    for (size_t c = 1; c < count; c++) {
        storage_mode storage = o->storage == STORAGE_NO_COPY ? STORAGE_SHARED : o->storage;
        buffer *b = device_new_buffer(s->device, o->bytes, storage, o->label, e);
        const uint8_t *contents = p == s->varied && c % 2 ? p->turned : p->contents;
        if (!b)
            return false;
        p->copies[p->copy_count++] = b;
        if (!buffer_upload(b, p->from, contents, p->bytes, e))
            return false;
    }
    return true;
}

bool parts_reset(part_list *s, err *e) {
    for (size_t i = 0; i < s->count; i++) {
        const part *p = &s->items[i];
        for (size_t c = 0; p->is_written && c <= p->copy_count; c++)
            if (!buffer_upload(part_get_copy(p, c), p->from, p->contents, p->bytes, e))
                return false;
    }
    return true;
}

bool parts_poison(part_list *s, const tape *t, err *e) {
    for (size_t i = 0; i < t->count; i++)
        for (int j = 0; j < LAUNCH_BUFFERS; j++) {
            const binding *b = &t->launches[i].args[j];
            const part *p = b->kind == BIND_BUFFER && b->access == ACCESS_WRITE
                                ? parts_find(s, b->at.buffer)
                                : NULL;
            for (size_t c = 0; p && c <= p->copy_count; c++)
                if (!buffer_fill_pattern(part_get_copy(p, c), b->at.offset, b->at.bytes,
                                         POISON_PATTERN, e))
                    return false;
        }
    return true;
}

/* Other inputs -------------------------------------------------------------------------------- */

bool part_turn(part *p) {
    size_t count = p->bytes / p->float_bytes, first = (count / 2 + 1) % count * p->float_bytes;
    p->turned = array_new(p->bytes + 1, 1);
    size_t rest = count * p->float_bytes - first;
    memcpy(p->turned, p->contents, p->bytes);
    memcpy(p->turned, p->contents + first, rest);
    memcpy(p->turned + rest, p->contents, first);
    return memcmp(p->turned, p->contents, p->bytes) != 0;
}

bool part_put(const part *p, const uint8_t *contents, err *e) {
    return buffer_upload(p->original, p->from, contents, p->bytes, e);
}

/* Results ------------------------------------------------------------------------------------- */

bool parts_keep(part_list *s, int set, err *e) {
    for (size_t i = 0; i < s->count; i++) {
        part *p = &s->items[i];
        if (!p->is_written)
            continue;
        if (!p->want[set])
            p->want[set] = array_new(p->bytes + 1, 1);
        if (!buffer_download(p->original, p->from, p->want[set], p->bytes, e))
            return false;
    }
    return true;
}

bool parts_differ(const part_list *s) {
    size_t words = 0, others = 0;
    for (size_t i = 0; i < s->count; i++) {
        const part *p = &s->items[i];
        for (size_t at = 0; p->is_written && at + 2 <= p->bytes; at += 2, words++)
            others += memcmp(p->want[0] + at, p->want[1] + at, 2) != 0;
    }
    return others > 0 && 4 * others >= words;
}

bool part_compare(const part *p, size_t copy, int set, size_t at, size_t bytes, uint8_t *room,
                  bool *same, err *e) {
    bool ok = buffer_download(part_get_copy(p, copy), p->from + at, room, bytes, e);
    *same = ok && memcmp(room, p->want[set] + at, bytes) == 0;
    return ok;
}

bool parts_compare(const part_list *s, size_t copy, int set, bool *same, err *e) {
    *same = true;
    for (size_t i = 0; i < s->count && *same; i++) {
        const part *p = &s->items[i];
        if (!p->is_written)
            continue;
        uint8_t *room = array_new(p->bytes + 1, 1);
        bool ok = part_compare(p, copy, set, 0, p->bytes, room, same, e);
        free(room);
        if (!ok)
            return false;
    }
    return true;
}
