/* model/state: the recurrent state of earlier positions, see model.h. Nothing here does anything for a
 * family without recurrent state: a cache is right at every position it holds. */
#include <assert.h>
#include <stdlib.h>

#include "family.h"
#include "harness/base/array.h"

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
