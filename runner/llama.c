/* llama: see llama.h. Owns the buffers, the cache and the plays; what a file says is in
 * llama_file.c, what a forward pass is made of in llama_record.c. */
#include "llama.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "llama_parts.h"

/* Tokens of a prompt that go together: enough to share each decoded weight among eight and to fill
 * a GPU; more only takes memory. */
enum { TILE_EMULATED = 64, TILE_GPU = 512 };

/* --- buffers --- */

bool llama_own(llama *m, buffer *b, slice *out) {
    if (!b)
        return false;
    if (m->buffer_count == m->buffer_capacity) {
        m->buffer_capacity = m->buffer_capacity ? 2 * m->buffer_capacity : 256;
        m->buffers = realloc(m->buffers, m->buffer_capacity * sizeof *m->buffers);
        assert(m->buffers);
    }
    m->buffers[m->buffer_count++] = b;
    *out = slice_whole(b);
    return true;
}

static bool make_floats(llama *m, const char *label, size_t rows, size_t columns,
                        storage_mode storage, slice *out, err *e) {
    size_t count, bytes;
    if (!os_multiply_checked(rows, columns, &count) ||
        !os_multiply_checked(count, sizeof(float), &bytes))
        return err_set(e, EXIT_CANNOT, "%s: %zu x %zu floats are too many", label, rows, columns);
    return llama_own(m, device_new_buffer(m->device, bytes, storage, label, e), out);
}

static bool make_freqs(llama *m, err *e) {
    float freqs[128];
    bool needed;
    assert(m->shape.head_dim / 2 <= 128);
    if (!llama_read_freqs(m->file, &m->shape, freqs, &needed, e))
        return false;
    slice *at = &m->scratch.freqs;
    return !needed ||
           (make_floats(m, "rope freqs", 1, m->shape.head_dim / 2, STORAGE_SHARED, at, e) &&
            buffer_upload(at->buffer, 0, freqs, at->bytes, e));
}

static bool make_scratch(llama *m, bool is_shared, err *e) {
    const llama_shape *s = &m->shape;
    llama_scratch *a = &m->scratch;
    storage_mode mode = is_shared ? STORAGE_SHARED : STORAGE_PRIVATE;
    uint32_t q_dim = s->heads * s->head_dim, kv_dim = s->kv_heads * s->head_dim;
    uint32_t groups = argmax_count_groups(s->vocab), tile = m->tile;
    return make_floats(m, "x", tile, s->hidden, mode, &a->x, e) &&
           make_floats(m, "normed", tile, s->hidden, mode, &a->normed, e) &&
           make_floats(m, "q", tile, q_dim, mode, &a->q, e) &&
           make_floats(m, "k", tile, kv_dim, mode, &a->k, e) &&
           make_floats(m, "v", tile, kv_dim, mode, &a->v, e) &&
           make_floats(m, "attention", tile, q_dim, mode, &a->attention, e) &&
           make_floats(m, "gate", tile, s->ffn, mode, &a->gate, e) &&
           make_floats(m, "up", tile, s->ffn, mode, &a->up, e) &&
           make_floats(m, "activated", tile, s->ffn, mode, &a->activated, e) &&
           make_floats(m, "argmax values", 1, groups, mode, &a->argmax_values, e) &&
           make_floats(m, "argmax indices", 1, groups, mode, &a->argmax_indices, e) &&
           make_floats(m, "next", 1, 1, mode, &a->next, e) &&
           make_floats(m, "logits", 1, s->vocab, STORAGE_SHARED, &a->logits, e) &&
           make_floats(m, "ids", 1, tile, STORAGE_SHARED, &a->ids, e) &&
           make_floats(m, "state", 1, STATE_WORDS, STORAGE_SHARED, &a->state, e) &&
           make_floats(m, "history", 1, LLAMA_IN_FLIGHT, STORAGE_SHARED, &a->history, e) &&
           make_freqs(m, e);
}

static bool make_cache(llama *m, err *e) {
    const llama_shape *s = &m->shape;
    m->cache = calloc(s->layers, sizeof *m->cache);
    assert(m->cache);
    uint32_t kv_dim = s->kv_heads * s->head_dim;
    for (uint32_t i = 0; i < s->layers; i++)
        if (!make_floats(m, "key cache", m->context, kv_dim, STORAGE_PRIVATE, &m->cache[i].keys,
                         e) ||
            !make_floats(m, "value cache", m->context, kv_dim, STORAGE_PRIVATE, &m->cache[i].values,
                         e))
            return false;
    return true;
}

llama *llama_new(library *lib, const gguf *g, const llama_options *o, err *e) {
    llama *m = calloc(1, sizeof *m);
    assert(m);
    m->lib = lib;
    m->device = library_get_device(lib);
    m->file = g;
    bool emulated = device_get_facts(m->device)->emulated;
    if (llama_read_shape(g, &m->shape, e)) {
        m->context = o->context ? o->context : m->shape.context;
        m->tile = o->tile ? o->tile : emulated ? TILE_EMULATED : TILE_GPU;
        if (m->tile > m->context)
            m->tile = m->context;
        if (llama_find_weights(m, e) && make_scratch(m, o->shared_scratch, e) && make_cache(m, e))
            return m;
    }
    llama_free(m);
    return NULL;
}

void llama_free(llama *m) {
    if (!m)
        return;
    tape_free(m->token);
    tape_free(m->greedy);
    for (size_t i = 0; i < LLAMA_PROMPT_TAPES; i++)
        tape_free(m->prompts[i].tape);
    for (size_t i = 0; i < m->buffer_count; i++)
        buffer_free(m->buffers[i]);
    free(m->buffers);
    free(m->cache);
    free(m->weights.layers);
    free(m);
}

const llama_shape *llama_get_shape(const llama *m) {
    return &m->shape;
}

uint64_t llama_get_cache_bytes(const llama *m) {
    return (uint64_t)m->shape.layers * (m->cache[0].keys.bytes + m->cache[0].values.bytes);
}

uint32_t llama_get_tile(const llama *m) {
    return m->tile;
}

uint32_t llama_get_position(const llama *m) {
    return m->position;
}

uint32_t llama_get_room(const llama *m) {
    return m->context - m->position - (m->submitted - m->collected);
}

void llama_rewind(llama *m, uint32_t position) {
    assert(position <= m->position && m->submitted == m->collected);
    m->position = position;
}

/* --- tapes --- */

static bool is_known(const llama *m, const uint32_t *tokens, size_t count, err *e) {
    for (size_t i = 0; i < count; i++)
        if (tokens[i] >= m->shape.vocab)
            return err_set(e, EXIT_USAGE, "there is no token %u; the vocabulary has %u", tokens[i],
                           m->shape.vocab);
    return true;
}

static bool has_room(const llama *m, size_t tokens, err *e) {
    if (tokens <= llama_get_room(m))
        return true;
    return err_set(e, EXIT_INCONCLUSIVE,
                   "the context is full: %zu more tokens do not fit behind %u of %u", tokens,
                   m->position, m->context);
}

/* NULL with e set. */
static tape *find_token_tape(llama *m, bool greedy, err *e) {
    tape **t = greedy ? &m->greedy : &m->token;
    if (*t)
        return *t;
    *t = tape_new(m->lib);
    if (llama_record_token(m, *t, greedy, e))
        return *t;
    tape_free(*t);
    *t = NULL;
    return NULL;
}

static tape *find_prompt_tape(llama *m, uint32_t tokens, bool has_head, err *e) {
    llama_prompt_tape *oldest = &m->prompts[0];
    m->prompts_played++;
    for (size_t i = 0; i < LLAMA_PROMPT_TAPES; i++) {
        llama_prompt_tape *p = &m->prompts[i];
        if (p->tape && p->tokens == tokens && p->has_head == has_head) {
            p->used = m->prompts_played;
            return p->tape;
        }
        if (p->used < oldest->used)
            oldest = p;
    }
    tape_free(oldest->tape);
    *oldest = (llama_prompt_tape){.tape = tape_new(m->lib),
                                  .tokens = tokens,
                                  .has_head = has_head,
                                  .used = m->prompts_played};
    if (llama_record_prompt(m, oldest->tape, tokens, has_head, e))
        return oldest->tape;
    tape_free(oldest->tape);
    *oldest = (llama_prompt_tape){0};
    return NULL;
}

bool llama_prepare(llama *m, size_t prompt_tokens, bool greedy, err *e) {
    if (prompt_tokens > m->tile && !find_prompt_tape(m, m->tile, false, e))
        return false;
    uint32_t last = (uint32_t)(prompt_tokens % m->tile);
    if (prompt_tokens > 0 && !find_prompt_tape(m, last ? last : m->tile, true, e))
        return false;
    return find_token_tape(m, greedy, e) != NULL;
}

tape *llama_get_token_tape(llama *m, bool greedy, err *e) {
    return find_token_tape(m, greedy, e);
}

bool llama_place(llama *m, uint32_t token, uint32_t position, err *e) {
    assert(m->submitted == m->collected && position < m->context);
    uint32_t state[STATE_WORDS] = {[STATE_TOKEN] = token,
                                   [STATE_POSITION] = position,
                                   [STATE_LENGTH] = position + 1,
                                   [STATE_STEP] = 0};
    m->submitted = m->collected = 0;
    return buffer_upload(m->scratch.state.buffer, 0, state, sizeof state, e);
}

/* --- plays --- */

static bool read_logits(const llama *m, float *logits, err *e) {
    slice at = m->scratch.logits;
    return buffer_download(at.buffer, at.offset, logits, at.bytes, e);
}

/* How a tape is gone through: played, or checked. */
typedef struct {
    play_mode mode;
    play_times *times;
    const check_options *check; /* NULL: played */
    check_result *result;
} way;

/* A tape that is refused by its check is no error: the result says so, and nothing goes on. */
static bool go_through(tape *t, const way *how, err *e) {
    if (how->check)
        return check_tape(t, how->check, how->result, e);
    play_times times;
    if (!tape_play(t, how->mode, &times, NULL, e))
        return false;
    if (how->times)
        play_times_add(how->times, &times);
    return true;
}

static bool is_refused(const way *how) {
    return how->check && how->result->verdict != CHECK_PASS;
}

static bool forward_prompt(llama *m, const uint32_t *tokens, size_t count, const way *how,
                           float *logits, err *e) {
    if (count == 0)
        return err_set(e, EXIT_USAGE, "the prompt is empty: there is nothing to go on from");
    if (!is_known(m, tokens, count, e) || !has_room(m, count, e))
        return false;
    for (size_t done = 0; done < count;) {
        uint32_t n = count - done < m->tile ? (uint32_t)(count - done) : m->tile;
        tape *t = find_prompt_tape(m, n, done + n == count, e);
        if (!t || !buffer_upload(m->scratch.ids.buffer, 0, tokens + done, n * sizeof *tokens, e) ||
            !llama_place(m, tokens[done], m->position, e) || !go_through(t, how, e))
            return false;
        if (is_refused(how))
            return true;
        m->position += n;
        done += n;
    }
    return read_logits(m, logits, e);
}

static bool forward_token(llama *m, uint32_t token, const way *how, float *logits, err *e) {
    tape *t;
    if (!is_known(m, &token, 1, e) || !has_room(m, 1, e) || !(t = find_token_tape(m, false, e)) ||
        !llama_place(m, token, m->position, e) || !go_through(t, how, e))
        return false;
    if (is_refused(how))
        return true;
    m->position++;
    return read_logits(m, logits, e);
}

bool llama_forward_prompt(llama *m, const uint32_t *tokens, size_t count, play_mode mode,
                          float *logits, play_times *times, err *e) {
    if (times)
        *times = (play_times){0};
    return forward_prompt(m, tokens, count, &(way){.mode = mode, .times = times}, logits, e);
}

bool llama_forward_token(llama *m, uint32_t token, play_mode mode, float *logits, play_times *times,
                         err *e) {
    if (times)
        *times = (play_times){0};
    return forward_token(m, token, &(way){.mode = mode, .times = times}, logits, e);
}

bool llama_forward_token_greedy(llama *m, uint32_t token, play_mode mode, uint32_t *next,
                                play_times *times, err *e) {
    tape *t;
    slice from = m->scratch.history;
    play_times ignored;
    if (!is_known(m, &token, 1, e) || !has_room(m, 1, e) || !(t = find_token_tape(m, true, e)) ||
        !llama_place(m, token, m->position, e) ||
        !tape_play(t, mode, times ? times : &ignored, NULL, e) ||
        !buffer_download(from.buffer, from.offset, next, sizeof *next, e))
        return false;
    m->position++;
    return true;
}

bool llama_forward_prompt_debug(llama *m, const uint32_t *tokens, size_t count, float *logits,
                                const check_options *o, check_result *out, err *e) {
    return forward_prompt(m, tokens, count, &(way){.check = o, .result = out}, logits, e);
}

bool llama_forward_token_debug(llama *m, uint32_t token, float *logits, const check_options *o,
                               check_result *out, err *e) {
    return forward_token(m, token, &(way){.check = o, .result = out}, logits, e);
}

/* --- greedy decoding without the CPU --- */

bool llama_start_greedy(llama *m, uint32_t token, err *e) {
    return is_known(m, &token, 1, e) && has_room(m, 1, e) && llama_place(m, token, m->position, e);
}

bool llama_submit_greedy(llama *m, err *e) {
    assert(m->submitted - m->collected < LLAMA_IN_FLIGHT);
    tape *t;
    if (!has_room(m, 1, e) || !(t = find_token_tape(m, true, e)) ||
        !device_submit(m->device, t, 0, t->count, &m->flying[m->submitted % LLAMA_IN_FLIGHT], e))
        return false;
    m->submitted++;
    return true;
}

bool llama_collect_greedy(llama *m, uint32_t *next, play_times *times, err *e) {
    assert(m->submitted > m->collected);
    uint32_t slot = m->collected % LLAMA_IN_FLIGHT;
    bool ok = device_wait(m->device, &m->flying[slot], times, e);
    m->collected++; /* a ticket is waited for once, whatever came of it */
    slice from = m->scratch.history;
    if (!ok ||
        !buffer_download(from.buffer, from.offset + slot * sizeof *next, next, sizeof *next, e))
        return false;
    m->position++;
    return true;
}
