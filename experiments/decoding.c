#include "decoding.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

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

static bool forward(decoding_way *w, uint32_t *next, play_times *t, err *e) {
    lab_decoder *d = w->decoder;
    if (w->greedy)
        return model_forward_greedy(d->model, d->token, w->mode, next, t, e);
    if (!model_forward_token(d->model, d->token, w->mode, d->room, t, e))
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
    bool ok = forward(w, &next, &t, e);
    *out = (timing_sample){(double)t.gpu_ns, (double)t.encode_ns, (double)(os_now_ns() - start),
                           t.gpu_is_wall};
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
