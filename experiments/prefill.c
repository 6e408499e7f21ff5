/* prefill: prompts of 4 to 512 tokens in one pass (tiles of the device's size) against the same
 * tokens one by one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoding.h"
#include "harness/base/array.h"
#include "kernels/record.h"

EXPERIMENT(
    prefill, .order = 130,
    .question = "How much faster is a prompt in one pass than token by token?",
    .claim = "a target of 1000 tok/s or more; about 1800 at batch 4 on paper",
    .finding = "A prompt is read at up to {tok_s_best} tokens per second in one pass, and at "
               "{tok_s_token_by_token} token by token",
    .how =
        "tokens over the median wall time from the call until the logits are known; both variants "
        "interleaved; logits of both compared, the model first checked launch by launch",
    .has_model = true);

static const uint32_t full_lengths[] = {4, 8, 16, 32, 64, 128, 512};
static const uint32_t quick_lengths[] = {4, 8, 32};
enum { QUICK_ONE_BY_ONE = 8 }; /* a quick run reads longer prompts only in one pass */

/* Different kernels round differently: a thousandth of the logits' size is tolerated.
 * *largest: the largest difference of a logit. */
static bool check(const decoding_prompt *p, uint32_t vocab, double *largest, err *e) {
    double squares = 0, differences = 0;
    *largest = 0;
    for (uint32_t i = 0; i < vocab; i++) {
        double a = (double)p[0].logits[i], b = (double)p[1].logits[i];
        squares += b * b;
        differences += (a - b) * (a - b);
        *largest = fmax(*largest, fabs(a - b));
    }
    return differences <= 1e-6 * squares ||
           err_set(e, EXIT_WRONG,
                   "a prompt of %zu tokens gives different logits than the same tokens one by one",
                   p[0].count);
}

static bool run_length(lab *l, sheet *s, model *m, const uint32_t *tokens, uint32_t count, err *e) {
    uint32_t vocab = model_get_shape(m)->vocab;
    decoding_prompt p[2] = {{m, tokens, count, false, NULL, NULL},
                            {m, tokens, count, true, NULL, NULL}};
    measurement cases[2] = {{.source = {decoding_take_prompt, &p[0]}},
                            {.source = {decoding_take_prompt, &p[1]}}};
    bool one_by_one = lab_get_level(l) != LEVEL_QUICK || count <= QUICK_ONE_BY_ONE, ok = true;
    timing_sample ignored;
    double off;
    for (size_t i = 0; i < 2; i++) {
        p[i].logits = array_new(1, vocab * sizeof(float));
        snprintf(cases[i].key, sizeof cases[i].key, "%s/%u", i == 0 ? "prompt" : "token by token",
                 count);
        ok = ok && decoding_take_prompt(&p[i], &ignored, e);
    }
    ok = ok && check(p, vocab, &off, e) && lab_time(l, cases, one_by_one ? 2 : 1, e) &&
         check(p, vocab, &off, e);
    for (size_t i = 0; ok && i < (one_by_one ? 2u : 1u); i++) {
        sheet_add_variant(s, i == 0 ? "prompt" : "token_by_token");
        sheet_put_text(s, "model", lab_get_model_name(l));
        sheet_put(s, "tokens", count);
        sheet_put(s, "logit_difference", off);
        lab_put(l, s, &cases[i]);
        double wall_ns = sheet_get(s, sheet_count_rows(s) - 1, "wall_ns");
        sheet_put(s, "tok_s", 1e9 * count / wall_ns);
    }
    lab_close_cases(cases, 2);
    free(p[0].logits);
    free(p[1].logits);
    return ok;
}

static bool run(lab *l, sheet *s, err *e) {
    bool is_full = lab_get_level(l) == LEVEL_FULL;
    const uint32_t *lengths = is_full ? full_lengths : quick_lengths;
    size_t count = is_full ? COUNT_OF(full_lengths) : lab_choose(l, COUNT_OF(quick_lengths), 3);
    uint32_t tokens[512];
    lab_decoder d;
    model_shape shape_of_model;
    if (!lab_read_model_shape(l, &shape_of_model, e))
        return false;
    model_options o = {.context = lengths[count - 1] > 64 ? lengths[count - 1] : 64};
    bool ok = lab_open_decoder(l, &o, 0, &d, e); /* checks the model */
    lab_draw_tokens(l, shape_of_model.vocab, tokens, COUNT_OF(tokens));
    for (size_t i = 0; ok && i < count; i++)
        ok = run_length(l, s, d.model, tokens, lengths[i], e);
    lab_close_decoder(&d);
    return ok;
}

/* Conclusions --------------------------------------------------------------------------------- */

static void conclude(sheet *s) {
    double best = 0, best_at = 0, gain = NAN, gain_at = NAN, off = NAN;
    for (size_t r = 0; r < sheet_count_rows(s); r++) {
        if (!sheet_is(s, r, "variant", "prompt", NULL))
            continue;
        double rate = sheet_get(s, r, "tok_s");
        off = fmax(off, sheet_get(s, r, "logit_difference"));
        double alone = sheet_find(s, "tok_s", "variant", "token_by_token", "tokens",
                                  sheet_get_text(s, r, "tokens"), NULL);
        if (rate > best) {
            best = rate;
            best_at = sheet_get(s, r, "tokens");
        }
        if (!isnan(alone)) {
            gain = rate / alone;
            gain_at = sheet_get(s, r, "tokens");
        }
    }
    double four = sheet_find(s, "tok_s", "variant", "prompt", "tokens", "4", NULL);
    double one = sheet_find(s, "tok_s", "variant", "token_by_token", "tokens", "4", NULL);
    sheet_add_metric(s, "tok_s_best", best, "tok/s");
    sheet_add_metric(s, "tok_s_4", four, "tok/s");
    sheet_add_metric(s, "tok_s_token_by_token", one, "tok/s");
    sheet_add_metric(s, "speedup_prompt", gain, "x");
    sheet_add_metric(s, "logit_difference", off, "logit");
    sheet_conclude(s,
                   "A prompt is read at up to %.4g tok/s (%.0f tokens), and at %.4g with 4 tokens.",
                   best, best_at, four);
    sheet_conclude(
        s, "Token by token it is %.4g tok/s; %.0f tokens in one pass are %.3g times as fast.", one,
        gain_at, gain);
}
