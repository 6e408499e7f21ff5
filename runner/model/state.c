/* model/state: the recurrent state of earlier positions, see model.h. Nothing here does anything for a
 * family without recurrent state: a cache is right at every position it holds. And what a model remembers,
 * to a file and back.
 *
 * The file, all numbers little-endian:
 *   16 bytes   "assay state 3", a newline and zeros
 *   64 bytes   the model: SHA-256, as hexadecimal digits, of the GGUF's header and of samples of
 *              all of its tensors
 *   5 x u32    position, number of tokens, number of buffers, the pending token, bytes of an element of
 *              the cache (0: there is no cache)
 *   u32 each   the tokens so far, of a model that needs them to go back in time
 *   per buffer its size in bytes as u64, and its bytes: a recurrent state whole, of a cache the
 *              rows that are filled
 *   64 bytes   SHA-256 of everything before it
 *
 * Reading checks all of it before anything changes; writing replaces a file whole or not at all. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/sha256.h"
#include "harness/base/size.h"
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

/* --- to a file --- */

enum { MAGIC_BYTES = 16, HASH_BYTES = 64, SAMPLE_BYTES = 4096 };

#define MOST_BYTES ((size_t)1 << 36)

typedef struct {
    char magic[MAGIC_BYTES], identity[HASH_BYTES];
    uint32_t position, tokens, buffers, pending, element;
} header;

static const char magic[MAGIC_BYTES] = "assay state 3\n";

static void finish_hash(sha256 *h, char out[HASH_BYTES]) {
    char hex[HASH_BYTES + 1];
    sha256_finish(h, hex);
    memcpy(out, hex, HASH_BYTES);
}

/* The beginning and the end of every tensor: cheap, and other weights differ there too. */
static void identify(const gguf *g, char identity[HASH_BYTES]) {
    sha256 h;
    uint64_t bytes = g->bytes;
    sha256_start(&h);
    sha256_add(&h, &bytes, sizeof bytes);
    sha256_add(&h, g->map, g->data_at);
    for (size_t i = 0; i < g->tensor_count; i++) {
        const gguf_tensor *t = &g->tensors[i];
        size_t count = t->bytes < SAMPLE_BYTES ? t->bytes : SAMPLE_BYTES;
        sha256_add(&h, t->data, count);
        sha256_add(&h, (const char *)t->data + t->bytes - count, count);
    }
    finish_hash(&h, identity);
}

static void hash(const void *data, size_t bytes, char out[HASH_BYTES]) {
    sha256 h;
    sha256_start(&h);
    sha256_add(&h, data, bytes);
    finish_hash(&h, out);
}

/* How much of a buffer belongs to the state at a position; 0: nothing. */
static size_t count_bytes(const model *m, const model_buffer *b, uint32_t position) {
    if (b->kind == MEMORY_STATE)
        return b->buffer->bytes;
    return b->kind == MEMORY_CACHE ? b->buffer->bytes / m->context * position : 0;
}

/* The header of this model's state at a position, and the size of the whole file. */
static header make_header(const model *m, uint32_t position, size_t *total) {
    header h = {.position = position,
                .tokens = m->is_recurrent ? position : 0,
                .element = !model_has_cache(m) ? 0
                           : m->cache          ? (uint32_t)m->cache->bytes
                                               : 4};
    memcpy(h.magic, magic, sizeof h.magic);
    identify(m->file, h.identity);
    *total = sizeof h + HASH_BYTES + size_multiply(h.tokens, sizeof *m->fed);
    for (size_t i = 0; i < m->buffer_count; i++) {
        size_t bytes = count_bytes(m, &m->buffers[i], position);
        h.buffers += bytes > 0;
        *total += bytes > 0 ? sizeof(uint64_t) + bytes : 0;
    }
    return h;
}

/* Copies and moves on. */
static void put(char **at, const void *data, size_t bytes) {
    if (bytes > 0)
        memcpy(*at, data, bytes);
    *at += bytes;
}

bool model_write_state(model *m, const char *path, uint32_t pending, err *e) {
    size_t total;
    if (!model_settle(m, e))
        return false;
    header h = make_header(m, m->position, &total);
    h.pending = pending;
    char *file = malloc(total), *at = file;
    if (!file)
        return err_set(e, EXIT_CANNOT, "no memory for a state of %zu bytes", total);
    put(&at, &h, sizeof h);
    put(&at, m->fed, h.tokens * sizeof *m->fed);
    bool ok = true;
    for (size_t i = 0; ok && i < m->buffer_count; i++) {
        uint64_t bytes = count_bytes(m, &m->buffers[i], m->position);
        if (bytes == 0)
            continue;
        put(&at, &bytes, sizeof bytes);
        ok = buffer_download(m->buffers[i].buffer, 0, at, bytes, e);
        at += bytes;
    }
    if (ok) {
        hash(file, total - HASH_BYTES, at);
        ok = os_write_file(path, file, total, e);
    }
    free(file);
    return ok;
}

/* Everything that can be wrong, before anything changes. */
static bool check_file(const model *m, const char *path, const char *file, size_t bytes, err *e) {
    header h, want;
    char sum[HASH_BYTES];
    size_t total;
    if (bytes < sizeof h + HASH_BYTES || memcmp(file, magic, sizeof magic) != 0)
        return err_set(e, EXIT_USAGE, "%.160s is not a saved state", path);
    hash(file, bytes - HASH_BYTES, sum);
    if (memcmp(sum, file + bytes - HASH_BYTES, HASH_BYTES) != 0)
        return err_set(e, EXIT_USAGE, "%.160s is damaged or not all there", path);
    memcpy(&h, file, sizeof h);
    if (m->context && h.position > m->context)
        return err_set(e, EXIT_USAGE,
                       "%.160s holds %u tokens, which do not fit into a context of %u", path,
                       h.position, m->context);
    want = make_header(m, h.position, &total);
    if (memcmp(h.identity, want.identity, sizeof h.identity) != 0)
        return err_set(e, EXIT_USAGE, "%.160s was saved from another model", path);
    if (h.element != want.element)
        return err_set(e, EXIT_USAGE,
                       "%.160s has its keys and values in %s: load it with --kv %s, not %s", path,
                       h.element == 2 ? "F16" : "F32", h.element == 2 ? "f16" : "f32",
                       model_get_cache_name(m));
    bool is_token = h.pending < m->shape.vocab || h.pending == MODEL_NO_TOKEN;
    bool fits = is_token && total == bytes && h.tokens == want.tokens && h.buffers == want.buffers;
    size_t at = sizeof h + h.tokens * sizeof *m->fed;
    for (size_t i = 0; fits && i < m->buffer_count; i++) {
        uint64_t wanted = count_bytes(m, &m->buffers[i], h.position), stated;
        if (wanted == 0)
            continue;
        memcpy(&stated, file + at, sizeof stated);
        fits = stated == wanted;
        at += sizeof stated + wanted;
    }
    return fits || err_set(e, EXIT_USAGE, "%.160s has other sizes than this model's state", path);
}

static bool take(model *m, const char *file, uint32_t *pending, err *e) {
    header h;
    memcpy(&h, file, sizeof h);
    *pending = h.pending;
    const char *at = file + sizeof h + h.tokens * sizeof *m->fed;
    model_rewind(m, 0);
    model_unsettle(m); /* until all of it is there */
    for (size_t i = 0; i < m->buffer_count; i++) {
        size_t bytes = count_bytes(m, &m->buffers[i], h.position);
        if (bytes == 0)
            continue;
        if (!buffer_upload(m->buffers[i].buffer, 0, at + sizeof(uint64_t), bytes, e))
            return false;
        at += sizeof(uint64_t) + bytes;
    }
    uint32_t *tokens = array_new((h.tokens + 1), sizeof *tokens);
    memcpy(tokens, file + sizeof h, h.tokens * sizeof *tokens);
    model_note_fed(m, tokens, h.tokens);
    free(tokens);
    m->position = h.position;
    m->is_unsettled = false;
    return model_keep(m, e); /* going back to here must not replay it all */
}

bool model_read_state(model *m, const char *path, uint32_t *pending, err *e) {
    size_t bytes;
    char *file = os_read_plain(path, MOST_BYTES, &bytes, e);
    bool ok = file && check_file(m, path, file, bytes, e) && take(m, file, pending, e);
    free(file);
    return ok;
}
