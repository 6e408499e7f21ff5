/* model/state: the recurrent state of earlier positions, see model.h. Nothing here does anything for a
 * family without recurrent state: a cache is right at every position it holds. */
#include <assert.h>
#include <stdlib.h>

#include "family.h"
#include "harness/base/array.h"
#include "harness/check/fill.h"

void model_unsettle(model *m) {
    m->is_unsettled = m->is_recurrent;
}

void model_note_fed(model *m, const uint32_t *tokens, size_t count) {
    if (!m->is_recurrent)
        return;
    if (m->position + count > m->fed_capacity) {
        m->fed_capacity = 2 * (m->position + count);
        m->fed = realloc(m->fed, m->fed_capacity * sizeof *m->fed);
        assert(m->fed);
    }
    for (size_t i = 0; i < count; i++)
        m->fed[m->position + i] = tokens[i];
}

/* The next recurrent buffer from i on; NULL: no more. */
static model_buffer *find_state(model *m, size_t *i) {
    for (; *i < m->buffer_count; ++*i)
        if (m->buffers[*i].kind == MEMORY_STATE)
            return &m->buffers[(*i)++];
    return NULL;
}

static void forget_kept(model *m) {
    model_buffer *b;
    for (size_t i = 0; (b = find_state(m, &i));) {
        free(b->kept);
        b->kept = NULL;
    }
    m->kept_position = 0;
}

void model_rewind(model *m, uint32_t position) {
    assert(position <= m->position && m->submitted == m->collected);
    if (position == m->position)
        return;
    m->position = position;
    model_unsettle(m);
    if (position < m->kept_position)
        forget_kept(m); /* other tokens may come now */
}

bool model_restore_state(model *m, err *e) {
    model_buffer *b;
    for (size_t i = 0; (b = find_state(m, &i));)
        if (b->kept ? !buffer_upload(b->buffer, 0, b->kept, b->buffer->bytes, e)
                    : !buffer_fill_pattern(b->buffer, 0, b->buffer->bytes, 0, e))
            return false;
    m->position = m->kept_position;
    return true;
}

bool model_save_state(model *m, err *e) {
    model_buffer *b;
    for (size_t i = 0; (b = find_state(m, &i));) {
        void *kept = array_new(1, b->buffer->bytes);
        free(b->kept);
        b->kept = kept;
        if (!buffer_download(b->buffer, 0, kept, b->buffer->bytes, e)) {
            forget_kept(m);
            return false;
        }
    }
    if (m->is_recurrent)
        m->kept_position = m->position;
    return true;
}

bool model_has_cache(const model *m) {
    return m->context > 0 && !m->is_recurrent;
}

/* Uploads the values over and over up to `bytes`. */
static bool repeat(buffer *b, size_t bytes, const void *values, size_t value_bytes, err *e) {
    bool ok = true;
    for (size_t at = 0; ok && at < bytes; at += value_bytes)
        ok = buffer_upload(b, at, values, bytes - at < value_bytes ? bytes - at : value_bytes, e);
    return ok;
}

bool model_fill_cache(model *m, uint32_t tokens, uint64_t seed, err *e) {
    enum { VALUES = 1 << 20 };
    assert(model_has_cache(m) && tokens <= m->context);
    elem type = m->cache ? ELEM_F16 : ELEM_F32;
    size_t bytes = VALUES * elem_get_bytes(type);
    char *values = array_new(1, bytes);
    rng random = rng_new(seed, "cache");
    for (size_t i = 0; i < VALUES; i++)
        elem_write(type, values, i, rng_below(&random, 1u << 16) / 32768.0 - 1);
    bool ok = true;
    for (size_t i = 0; ok && i < m->buffer_count; i++)
        if (m->buffers[i].kind == MEMORY_CACHE)
            ok = repeat(m->buffers[i].buffer, m->buffers[i].buffer->bytes / m->context * tokens,
                        values, bytes, e);
    free(values);
    m->position = tokens;
    return ok;
}
