#include "decoding.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "runner/generate/sampler.h"

/* The marks of a way take the place of those of its tape while it is played. */
static void swap_marks(decoding_way *w, tape *t) {
    mark *marks = t->marks;
    size_t count = t->mark_count;
    if (!w->marks)
        return;
    t->marks = w->marks;
    t->mark_count = w->mark_count;
    w->marks = marks;
    w->mark_count = count;
}

/* The tape that is played at the decoder's position. */
static tape *find_tape(const decoding_way *w, err *e) {
    lab_rewind_decoder(w->decoder);
    return model_get_token_tape(w->decoder->model, w->greedy, e);
}

static bool forward(lab_decoder *d, bool greedy, play_mode mode, uint32_t token, uint32_t *next,
                    play_times *t, err *e) {
    if (greedy)
        return model_forward_greedy(d->model, token, mode, next, t, e);
    if (!model_forward_token(d->model, token, mode, d->room, t, e))
        return false;
    *next = sampler_find_largest(d->room, model_get_shape(d->model)->vocab);
    return true;
}

/* The wall clock of the caller: reading logits and finding the largest are a part of it. */
static bool take(void *context, timing_sample *out, err *e) {
    decoding_way *w = context;
    lab_decoder *d = w->decoder;
    uint32_t next = 0;
    play_times t = {0};
    tape *played = find_tape(w, e);
    if (!played)
        return false;
    swap_marks(w, played);
    uint64_t start = os_now_ns();
    bool ok = forward(d, w->greedy, w->mode, d->token, &next, &t, e);
    *out = lab_get_sample(&t, os_now_ns() - start);
    swap_marks(w, played);
    return ok && lab_check_next(d, next, w->name, e) &&
           (w->greedy || lab_check_logits(d, d->room, w->name, e));
}

bool decoding_time(lab *l, sheet *s, const decoding_way *ways, size_t count, err *e) {
    measurement *cases = array_new(count, sizeof *cases);
    decoding_way *own = array_new(count, sizeof *own);
    for (size_t i = 0; i < count; i++) {
        own[i] = ways[i];
        cases[i].source = (timing_source){take, &own[i]};
        cases[i].samples = 5;
        snprintf(cases[i].key, sizeof cases[i].key, "%s", ways[i].name);
    }
    bool ok = lab_time(l, cases, count, e);
    for (size_t i = 0; ok && i < count; i++) {
        tape *t = find_tape(&ways[i], e);
        assert(t); /* it was played */
        sheet_add_variant(s, ways[i].name);
        sheet_put_text(s, "model", lab_get_model_name(l));
        swap_marks(&own[i], t);
        sheet_put(s, "command_buffers", (double)tape_count_parts(t, ways[i].mode));
        swap_marks(&own[i], t);
        sheet_put(s, "launches", (double)t->count);
        lab_put(l, s, &cases[i]);
        sheet_put(s, "tok_s", 1e9 / sheet_get(s, sheet_count_rows(s) - 1, "wall_ns"));
    }
    lab_close_cases(cases, count);
    free(own);
    free(cases);
    return ok;
}

/* Runs and prompts ---------------------------------------------------------------------------- */

static bool fly(decoding_run *r, play_times *sum, err *e) {
    model *m = r->decoder->model;
    uint32_t submitted = 0;
    if (!model_start_greedy(m, r->decoder->token, e))
        return false;
    for (uint32_t i = 0; i < r->count; i++) {
        play_times t;
        for (; submitted < r->count && submitted - i < r->in_flight; submitted++)
            if (!model_submit_greedy(m, e))
                return false;
        if (!model_collect_greedy(m, &r->chosen[i], &t, e))
            return false;
        play_times_add(sum, &t);
    }
    return true;
}

static bool walk(decoding_run *r, play_times *sum, err *e) {
    uint32_t token = r->decoder->token;
    for (uint32_t i = 0; i < r->count; i++, token = r->chosen[i - 1]) {
        play_times t = {0};
        if (!forward(r->decoder, r->greedy, r->mode, token, &r->chosen[i], &t, e))
            return false;
        play_times_add(sum, &t);
    }
    return true;
}

bool decoding_take_run(void *run, timing_sample *out, err *e) {
    decoding_run *r = run;
    play_times sum = {0};
    lab_rewind_decoder(r->decoder);
    uint64_t start = os_now_ns();
    if (!(r->in_flight ? fly(r, &sum, e) : walk(r, &sum, e)))
        return false;
    *out = lab_get_sample(&sum, os_now_ns() - start);
    out->gpu_ns /= r->count;
    out->encode_ns /= r->count;
    out->wall_ns /= r->count;
    if (r->wanted && memcmp(r->wanted, r->chosen, r->count * sizeof *r->chosen) != 0)
        return err_set(e, EXIT_WRONG, "%s: chose other tokens than the same model before", r->name);
    return lab_check_next(r->decoder, r->chosen[0], r->name, e);
}

bool decoding_take_prompt(void *prompt, timing_sample *out, err *e) {
    decoding_prompt *p = prompt;
    size_t bytes = model_get_shape(p->model)->vocab * sizeof *p->logits;
    play_times sum = {0}, t = {0};
    model_rewind(p->model, 0);
    if (!model_settle(p->model, e))
        return false;
    uint64_t start = os_now_ns();
    bool ok = p->is_one_by_one ||
              model_forward_prompt(p->model, p->tokens, p->count, PLAY_WHOLE, p->logits, &sum, e);
    for (size_t i = 0; ok && p->is_one_by_one && i < p->count; i++) {
        ok = model_forward_token(p->model, p->tokens[i], PLAY_WHOLE, p->logits, &t, e);
        play_times_add(&sum, &t);
    }
    *out = lab_get_sample(&sum, os_now_ns() - start);
    return ok && (!p->want || memcmp(p->logits, p->want, bytes) == 0 ||
                  err_set(e, EXIT_WRONG, "a prompt gave other logits than the first time"));
}

/* Rows ---------------------------------------------------------------------------------------- */

double decoding_find_ratio(const sheet *s, const char *a, const char *b) {
    return sheet_find(s, "wall_ns", "variant", b, NULL) /
           sheet_find(s, "wall_ns", "variant", a, NULL);
}

bool decoding_is_clear(const sheet *s, const char *a, const char *b) {
    return sheet_find(s, "wall_q3_ns", "variant", a, NULL) <
               sheet_find(s, "wall_q1_ns", "variant", b, NULL) ||
           sheet_find(s, "wall_q3_ns", "variant", b, NULL) <
               sheet_find(s, "wall_q1_ns", "variant", a, NULL);
}

void decoding_add_rate(sheet *s, const char *metric, const char *variant) {
    sheet_add_metric(s, metric, sheet_find(s, "tok_s", "variant", variant, NULL), "tok/s");
    sheet_add_spread(s, metric, 1e9 / sheet_find(s, "wall_q3_ns", "variant", variant, NULL),
                     1e9 / sheet_find(s, "wall_q1_ns", "variant", variant, NULL));
}

void decoding_find_ratios(const sheet *s, const char *a, const char *b, double *low, double *high) {
    *low = sheet_find(s, "wall_q1_ns", "variant", b, NULL) /
           sheet_find(s, "wall_q3_ns", "variant", a, NULL);
    *high = sheet_find(s, "wall_q3_ns", "variant", b, NULL) /
            sheet_find(s, "wall_q1_ns", "variant", a, NULL);
}
