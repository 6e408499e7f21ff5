/* model/play: see model.h. Records the tapes of a model and plays them. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "harness/base/array.h"
#include "nonfinite.h"

/* --- tapes --- */

static const kernel *pick_attention(const model *m, uint32_t tokens, uint32_t position) {
    return m->family->pick_attention ? m->family->pick_attention(m, tokens, position) : NULL;
}

static bool record_token(model *m, tape *t, const kernel *attention, bool greedy, err *e) {
    if (!m->family->record(m, t, model_get_control(m, CONTROL_TOKEN).at, 1, attention, true, e))
        return false;
    if (!greedy)
        return true;
    tape_mark(t, "choice");
    return argmax_record(t, variants_pick_fixed(&m->variants, &argmax_op), m->logits,
                         m->argmax_values, m->argmax_indices, m->next, m->shape.vocab, e) &&
           decode_advance_record(t, &decode_advance_op.kernels[0], m->next, m->control, m->history,
                                 MODEL_IN_FLIGHT, e);
}

/* The tape for a token at a position. Ways are looked up once per band of keys. */
static tape *find_token_tape(model *m, bool greedy, uint32_t position, err *e) {
    token_tape *p = m->tokens[greedy], *end = p + MODEL_TOKEN_TAPES;
    uint32_t band = variants_round_keys(position + 1);
    if (m->band != band)
        m->attention = pick_attention(m, 1, position);
    m->band = band;
    while (p->tape && p->attention != m->attention) {
        p++;
        assert(p < end); /* there are fewer ways */
    }
    if (p->tape)
        return p->tape;
    *p = (token_tape){tape_new(m->lib), m->attention};
    if (record_token(m, p->tape, p->attention, greedy, e))
        return p->tape;
    tape_free(p->tape);
    *p = (token_tape){NULL, NULL};
    return NULL;
}

tape *model_get_token_tape(model *m, bool greedy, err *e) {
    return find_token_tape(m, greedy, m->position + (m->submitted - m->collected), e);
}

/* Any of its positions in a band stands for the others. */
bool model_changes_tape(const model *m, uint32_t from, uint32_t to) {
    const kernel *first = pick_attention(m, 1, from);
    for (uint32_t at = from; first && at < to; at = variants_round_keys(at + 1))
        if (pick_attention(m, 1, at) != first)
            return true;
    return false;
}

static tape *find_prompt_tape(model *m, uint32_t tokens, uint32_t position, bool has_head, err *e) {
    const kernel *attention = pick_attention(m, tokens, position);
    prompt_tape *oldest = &m->prompts[0];
    m->prompts_played++;
    for (size_t i = 0; i < MODEL_PROMPT_TAPES; i++) {
        prompt_tape *p = &m->prompts[i];
        if (p->tape && p->tokens == tokens && p->attention == attention &&
            p->has_head == has_head) {
            p->used = m->prompts_played;
            return p->tape;
        }
        if (p->used < oldest->used)
            oldest = p;
    }
    tape_free(oldest->tape);
    *oldest = (prompt_tape){.tape = tape_new(m->lib),
                            .tokens = tokens,
                            .attention = attention,
                            .has_head = has_head,
                            .used = m->prompts_played};
    if (m->family->record(m, oldest->tape, m->ids, tokens, attention, has_head, e))
        return oldest->tape;
    tape_free(oldest->tape);
    *oldest = (prompt_tape){0};
    return NULL;
}

bool model_prepare(model *m, uint32_t position, size_t prompt_tokens, size_t tokens, bool greedy,
                   err *e) {
    size_t most = m->context ? m->context - position : UINT32_MAX / 2;
    uint32_t at = position, end = at + (uint32_t)(prompt_tokens < most ? prompt_tokens : most);
    while (at < end) {
        uint32_t n = end - at < m->tile ? end - at : m->tile;
        if (!find_prompt_tape(m, n, at, at + n == end, e))
            return false;
        at += n;
    }
    most -= end - position;
    end += (uint32_t)(tokens < most ? tokens : most);
    for (; at < end; at = variants_round_keys(at + 1))
        if (!find_token_tape(m, greedy, at, e))
            return false;
    return true;
}

/* --- plays --- */

static bool check_tokens(const model *m, const uint32_t *tokens, size_t count, err *e) {
    for (size_t i = 0; i < count; i++)
        if (tokens[i] >= m->shape.vocab)
            return err_set(e, EXIT_USAGE, "there is no token %u; the vocabulary has %u", tokens[i],
                           m->shape.vocab);
    return true;
}

static bool check_room(const model *m, size_t tokens, err *e) {
    if (tokens <= model_get_room(m))
        return true;
    if (m->position == 0)
        return err_set(e, EXIT_USAGE, "%zu tokens do not fit into a context of %u", tokens,
                       m->context);
    return err_set(e, EXIT_USAGE, "the context is full: %zu more tokens do not fit after %u of %u",
                   tokens, m->position, m->context);
}

static bool place(model *m, uint32_t token, err *e) {
    uint32_t words[CONTROL_WORDS] = {[CONTROL_TOKEN] = token,
                                     [CONTROL_POSITION] = m->position,
                                     [CONTROL_LENGTH] = m->position + 1,
                                     [CONTROL_STEP] = 0};
    assert(m->submitted == m->collected);
    m->submitted = m->collected = 0;
    return buffer_upload(m->control.buffer, 0, words, sizeof words, e);
}

/* Feeds tokens at the position and forgets the logits. */
static bool replay(model *m, const uint32_t *tokens, size_t count, err *e) {
    play_times ignored;
    for (size_t i = 0; i < count; i++) {
        tape *t = model_get_token_tape(m, false, e);
        if (!t || !place(m, tokens[i], e) || !tape_play(t, PLAY_WHOLE, &ignored, NULL, e))
            return false;
        m->position++;
    }
    return true;
}

bool model_settle(model *m, err *e) {
    if (!m->is_unsettled)
        return true;
    uint32_t position = m->position;
    bool ok =
        model_restore_state(m, e) && replay(m, m->fed + m->position, position - m->position, e);
    m->position = position;
    m->is_unsettled = !ok;
    return ok;
}

bool model_keep(model *m, err *e) {
    return model_settle(m, e) && model_save_state(m, e);
}

/* Before anything is played: known tokens, room for them, a state that is that of the position. */
static bool begin(model *m, const uint32_t *tokens, size_t count, err *e) {
    return check_tokens(m, tokens, count, e) && check_room(m, count, e) && model_settle(m, e);
}

bool model_place(model *m, uint32_t token, err *e) {
    if (!begin(m, &token, 1, e) || !place(m, token, e))
        return false;
    model_unsettle(m); /* by what the caller plays */
    return true;
}

static void advance(model *m, const uint32_t *tokens, uint32_t count) {
    model_note_fed(m, tokens, count);
    m->position += count;
}

bool model_read_logits(const model *m, float *logits, err *e) {
    return buffer_download(m->logits.buffer, m->logits.offset, logits, m->logits.bytes, e);
}

/* How a tape is gone through: played, checked, or traced. */
typedef struct {
    play_mode mode;
    play_times *times;
    const check_options *check; /* NULL: not checked */
    check_result *result;
    nonfinite *trace; /* NULL: not traced */
} way;

/* Launch by launch, up to the first one that writes something that is not finite. */
static bool trace_tape(model *m, tape *t, nonfinite *out, err *e) {
    for (size_t i = 0; i < t->count; i++) {
        ticket k;
        play_times ignored;
        if (!device_submit(m->device, t, i, 1, &k, e) || !device_wait(m->device, &k, &ignored, e) ||
            !nonfinite_look(m, &t->launches[i], out, e))
            return false;
        if (!out->found)
            continue;
        snprintf(out->part, sizeof out->part, "%s", tape_get_part(t, i));
        out->index = i;
        out->count = t->count;
        return true;
    }
    return true;
}

/* A tape that fails its check or trace is not an error: *goes_on is false, and the result says why. */
static bool go_through(model *m, tape *t, const way *how, bool *goes_on, err *e) {
    play_times times;
    bool ok = how->check   ? check_tape(t, how->check, how->result, e)
              : how->trace ? trace_tape(m, t, how->trace, e)
                           : tape_play(t, how->mode, &times, NULL, e);
    if (ok && how->times)
        play_times_add(how->times, &times);
    *goes_on = ok && (!how->check || how->result->verdict == CHECK_PASS) &&
               (!how->trace || !how->trace->found);
    if (!*goes_on)
        model_unsettle(m);
    return ok;
}

static bool forward_prompt(model *m, const uint32_t *tokens, size_t count, const way *how,
                           float *logits, err *e) {
    if (how->times)
        *how->times = (play_times){0};
    if (count == 0)
        return err_set(e, EXIT_USAGE, "the prompt is empty: give it some text to continue");
    if (!begin(m, tokens, count, e))
        return false;
    for (size_t done = 0; done < count;) {
        uint32_t n = count - done < m->tile ? (uint32_t)(count - done) : m->tile;
        tape *t = find_prompt_tape(m, n, m->position, done + n == count, e);
        bool goes_on;
        if (m->goes_on && !m->goes_on(m->watch_context))
            return err_set(e, EXIT_INCONCLUSIVE, "stopped after %zu of %zu tokens of the prompt",
                           done, count);
        if (!t || !buffer_upload(m->ids.buffer, 0, tokens + done, n * sizeof *tokens, e) ||
            !place(m, tokens[done], e) || !go_through(m, t, how, &goes_on, e))
            return false;
        if (!goes_on)
            return true;
        advance(m, tokens + done, n);
        done += n;
    }
    return model_read_logits(m, logits, e);
}

static bool forward_token(model *m, uint32_t token, const way *how, float *logits, err *e) {
    tape *t;
    bool goes_on;
    if (how->times)
        *how->times = (play_times){0};
    if (!begin(m, &token, 1, e) || !(t = model_get_token_tape(m, false, e)) ||
        !place(m, token, e) || !go_through(m, t, how, &goes_on, e))
        return false;
    if (!goes_on)
        return true;
    advance(m, &token, 1);
    return model_read_logits(m, logits, e);
}

bool model_forward_prompt(model *m, const uint32_t *tokens, size_t count, play_mode mode,
                          float *logits, play_times *times, err *e) {
    return forward_prompt(m, tokens, count, &(way){.mode = mode, .times = times}, logits, e);
}

bool model_forward_token(model *m, uint32_t token, play_mode mode, float *logits, play_times *times,
                         err *e) {
    return forward_token(m, token, &(way){.mode = mode, .times = times}, logits, e);
}

bool model_forward_greedy(model *m, uint32_t token, play_mode mode, uint32_t *next,
                          play_times *times, err *e) {
    tape *t;
    bool goes_on;
    if (times)
        *times = (play_times){0};
    if (!begin(m, &token, 1, e) || !(t = model_get_token_tape(m, true, e)) || !place(m, token, e) ||
        !go_through(m, t, &(way){.mode = mode, .times = times}, &goes_on, e) ||
        !buffer_download(m->history.buffer, m->history.offset, next, sizeof *next, e))
        return false;
    advance(m, &token, 1);
    return true;
}

bool model_debug_prompt(model *m, const uint32_t *tokens, size_t count, float *logits,
                        const check_options *o, check_result *out, err *e) {
    return forward_prompt(m, tokens, count, &(way){.check = o, .result = out}, logits, e);
}

bool model_debug_token(model *m, uint32_t token, float *logits, const check_options *o,
                       check_result *out, err *e) {
    return forward_token(m, token, &(way){.check = o, .result = out}, logits, e);
}

bool model_trace(model *m, const uint32_t *tokens, size_t count, nonfinite *out, err *e) {
    float *logits = array_new(m->shape.vocab, sizeof *logits);
    *out = (nonfinite){.found = false};
    model_rewind(m, 0);
    bool ok = forward_prompt(m, tokens, count, &(way){.trace = out}, logits, e);
    free(logits);
    return ok;
}

/* --- greedy decoding without the CPU --- */

bool model_start_greedy(model *m, uint32_t token, err *e) {
    m->flying_token = token;
    return begin(m, &token, 1, e) && place(m, token, e);
}

bool model_submit_greedy(model *m, err *e) {
    assert(m->submitted - m->collected < MODEL_IN_FLIGHT);
    tape *t;
    if (!check_room(m, 1, e) || !(t = model_get_token_tape(m, true, e)) ||
        !device_submit(m->device, t, 0, t->count, &m->flying[m->submitted % MODEL_IN_FLIGHT], e))
        return false;
    m->submitted++;
    return true;
}

bool model_collect_greedy(model *m, uint32_t *next, play_times *times, err *e) {
    assert(m->submitted > m->collected);
    uint32_t slot = m->collected % MODEL_IN_FLIGHT;
    bool ok = device_wait(m->device, &m->flying[slot], times, e);
    m->collected++; /* a ticket is waited for once, whatever came of it */
    slice from = m->history;
    if (!ok ||
        !buffer_download(from.buffer, from.offset + slot * sizeof *next, next, sizeof *next, e)) {
        model_unsettle(m);
        return false;
    }
    advance(m, &m->flying_token, 1);
    m->flying_token = *next;
    return true;
}

bool model_decode_greedy(model *m, uint32_t first, size_t count, uint32_t in_flight,
                         bool (*take)(void *context, uint32_t token), void *context, err *e) {
    uint32_t flying = 0, kept = m->position, token;
    bool ok = model_start_greedy(m, first, e), goes_on = true;
    assert(in_flight <= MODEL_IN_FLIGHT);
    while (ok && goes_on) {
        for (; ok && flying < in_flight && count > 0 && model_get_room(m) > 0; count -= ok) {
            ok = model_submit_greedy(m, e);
            flying += ok;
        }
        if (!ok || flying == 0)
            break;
        ok = model_collect_greedy(m, &token, NULL, e);
        flying--;
        kept += ok;
        goes_on = ok && take(context, token);
    }
    for (err ignored; flying > 0; flying--)
        model_collect_greedy(m, &token, NULL, &ignored);
    if (ok)
        model_rewind(m, kept);
    return ok;
}
