/* buffer: buffers of any device, with guard zones around them. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "harness/base/array.h"

/* Guard zones ------------------------------------------------------------------------------- */

static void fill_words(void *at, size_t bytes, uint16_t pattern) {
    unsigned char *p = at;
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(i % 2 ? pattern >> 8 : pattern & 255);
}

/* Offset in a guard zone of the change nearest to the contents, or -1 if it is intact. */
static ptrdiff_t find_change(const unsigned char *zone, uint16_t pattern, bool is_front) {
    for (ptrdiff_t i = 0; i < BUFFER_GUARD_BYTES; i++) {
        ptrdiff_t at = is_front ? BUFFER_GUARD_BYTES - 1 - i : i;
        if (zone[at] != (at % 2 ? pattern >> 8 : pattern & 255))
            return at;
    }
    return -1;
}

/* The back guard starts on an even address: an odd byte count is followed by one free byte. */
static size_t find_back_guard(const buffer *b) {
    return BUFFER_GUARD_BYTES + (b->bytes + 1) / 2 * 2;
}

bool buffer_check_guards(const buffer *b, ptrdiff_t *at, err *e) {
    if (b->storage == STORAGE_NO_COPY || b->device->facts.exact_buffers)
        return true;
    buffer *raw = (buffer *)(uintptr_t)b; /* reading the device's copy changes nothing */
    unsigned char zone[BUFFER_GUARD_BYTES];
    if (!b->device->ops->copy(raw, find_back_guard(b), zone, sizeof zone, false, e))
        return false;
    ptrdiff_t found = find_change(zone, b->guard, false);
    if (found >= 0) {
        *at = found + (ptrdiff_t)(find_back_guard(b) - BUFFER_GUARD_BYTES - b->bytes);
        return err_set(e, EXIT_WRONG, "buffer '%s' was written %td bytes past its end", b->label,
                       *at);
    }
    if (!b->device->ops->copy(raw, 0, zone, sizeof zone, false, e))
        return false;
    found = find_change(zone, b->guard, true);
    if (found >= 0) {
        *at = found - BUFFER_GUARD_BYTES;
        return err_set(e, EXIT_WRONG, "buffer '%s' was written %td bytes before its start",
                       b->label, -*at);
    }
    return true;
}

/* Buffers ----------------------------------------------------------------------------------- */

static buffer *make_buffer(device *d, size_t bytes, storage_mode storage, const char *label) {
    buffer *b = array_new(1, sizeof *b);
    b->device = d;
    b->bytes = bytes;
    b->storage = storage;
    b->guard = (uint16_t)(GUARD_PATTERN + d->buffers++ % (POISON_PATTERN - GUARD_PATTERN));
    snprintf(b->label, sizeof b->label, "%s", label);
    return b;
}

buffer *device_new_buffer(device *d, size_t bytes, storage_mode storage, const char *label,
                          err *e) {
    assert(storage != STORAGE_NO_COPY);
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        return err_null(e, EXIT_USAGE, "the buffer '%.60s' cannot have %zu bytes", label, bytes);
    buffer *b = make_buffer(d, bytes, storage, label);
    bool is_exact = d->facts.exact_buffers;
    b->base = is_exact ? 0 : BUFFER_GUARD_BYTES;
    size_t all = is_exact ? bytes : find_back_guard(b) + BUFFER_GUARD_BYTES;
    if (!d->ops->new_buffer(b, all, NULL, e)) {
        free(b);
        return NULL;
    }
    if (is_exact)
        return b;
    unsigned char zone[BUFFER_GUARD_BYTES];
    fill_words(zone, sizeof zone, b->guard);
    if (!d->ops->copy(b, 0, zone, sizeof zone, true, e) ||
        !d->ops->copy(b, find_back_guard(b), zone, sizeof zone, true, e)) {
        buffer_free(b);
        return NULL;
    }
    return b;
}

buffer *device_wrap_memory(device *d, const void *memory, size_t bytes, const char *label, err *e) {
    if (bytes == 0)
        return err_null(e, EXIT_USAGE, "the buffer '%.60s' cannot have 0 bytes", label);
    buffer *b = make_buffer(d, bytes, STORAGE_NO_COPY, label);
    if (d->ops->new_buffer(b, bytes, memory, e))
        return b;
    free(b);
    return NULL;
}

void buffer_free(buffer *b) {
    if (!b)
        return;
    b->device->ops->free_buffer(b);
    b->device->releases++;
    free(b);
}

static bool is_inside(const buffer *b, size_t offset, size_t bytes, err *e) {
    if (offset <= b->bytes && bytes <= b->bytes - offset)
        return true;
    return err_set(e, EXIT_USAGE, "bytes %zu to %zu are outside buffer '%s' of %zu bytes", offset,
                   offset + bytes, b->label, b->bytes);
}

bool buffer_upload(buffer *b, size_t offset, const void *data, size_t bytes, err *e) {
    if (b->storage == STORAGE_NO_COPY)
        return err_set(e, EXIT_USAGE, "buffer '%s' is over the caller's memory: read only",
                       b->label);
    void *host = (void *)(uintptr_t)data; /* only read: the copy is to the device */
    return is_inside(b, offset, bytes, e) &&
           b->device->ops->copy(b, b->base + offset, host, bytes, true, e);
}

bool buffer_download(const buffer *b, size_t offset, void *data, size_t bytes, err *e) {
    buffer *raw = (buffer *)(uintptr_t)b;
    return is_inside(b, offset, bytes, e) &&
           b->device->ops->copy(raw, b->base + offset, data, bytes, false, e);
}

bool buffer_fill_pattern(buffer *b, size_t offset, size_t bytes, uint16_t pattern, err *e) {
    unsigned char words[4096];
    size_t filled = 0;
    if (b->device->ops->fill && b->storage != STORAGE_NO_COPY && (b->base + offset) % 2 == 0) {
        filled = bytes / 2 * 2;
        if (!is_inside(b, offset, bytes, e) ||
            !b->device->ops->fill(b, b->base + offset, filled, pattern, e))
            return false;
    }
    fill_words(words, sizeof words, pattern);
    for (size_t done = filled, n; done < bytes; done += n) {
        n = bytes - done < sizeof words ? bytes - done : sizeof words;
        if (!buffer_upload(b, offset + done, words, n, e))
            return false;
    }
    if (pattern == POISON_PATTERN && b->device->ops->forget)
        b->device->ops->forget(b, b->base + offset, bytes);
    return true;
}

const unsigned char *buffer_get_written(const buffer *b) {
    const device_ops *ops = b->device->ops;
    const unsigned char *all = ops->get_written ? ops->get_written(b) : NULL;
    return all ? all + b->base : NULL;
}
