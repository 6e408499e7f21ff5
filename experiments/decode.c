/* decode: greedy tokens at several context depths. Every token of a run is timed by itself, so that
 * 20 and 128 tokens are parts of the same run and differ in nothing else. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"
#include "harness/base/array.h"
#include "harness/base/os.h"

EXPERIMENT(
    decode, .order = 140,
    .question = "How fast is text generated, in short and long runs, at shallow and deep context?",
    .claim = "462 to 491 tok/s (llama.cpp 389 on the same machine); 20 tokens overestimate",
    .finding = "{tok_s} tokens per second from an empty context, {tok_s_deepest} after {deepest} "
               "tokens",
    .how =
        "number of tokens over the wall time of the first tokens of a run, each waited for; median "
        "over runs; runs compared token by token, the model first checked launch by launch",
    .has_model = true);

enum { LENGTHS = 3, CONTEXTS = 3, MOST = 128 };
static const uint32_t lengths[LEVEL_COUNT][LENGTHS] = {{20, 64, 128}, {5, 10, 20}, {1, 2, 4}};
static const uint32_t contexts[LEVEL_COUNT][CONTEXTS] = {{0, 512, 1900}, {0, 96}, {0, 4}};
static const uint32_t runs[LEVEL_COUNT] = {5, 3, 1};

static bool run_once(model *m, uint32_t context, uint32_t first, uint32_t count, uint32_t *chosen,
                     timing_sample *samples, err *e) {
    model_rewind(m, context);
    if (!model_settle(m, e))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        play_times t;
        uint32_t token = i == 0 ? first : chosen[i - 1];
        uint64_t start = os_now_ns();
        if (!model_forward_greedy(m, token, PLAY_WHOLE, &chosen[i], &t, e))
            return false;
        samples[i] = lab_get_sample(&t, os_now_ns() - start);
    }
    return true;
}

/* The mean of the first `count` tokens of a run: one sample. */
static timing_sample get_mean(const timing_sample *samples, uint32_t count) {
    timing_sample mean = {.gpu_is_wall = samples[0].gpu_is_wall};
    for (uint32_t i = 0; i < count; i++) {
        mean.gpu_ns += samples[i].gpu_ns / count;
        mean.encode_ns += samples[i].encode_ns / count;
        mean.wall_ns += samples[i].wall_ns / count;
    }
    return mean;
}

static void put_rows(lab *l, sheet *s, uint32_t context, const timing_sample *samples,
                     uint32_t run_count) {
    const uint32_t *counts = lengths[lab_get_level(l)];
    for (int i = 0; i < LENGTHS; i++) {
        timing_sample means[8];
        measurement c = {.result = {.samples = means, .count = run_count, .stop = STOP_MAX}};
        for (uint32_t r = 0; r < run_count; r++)
            means[r] = get_mean(samples + r * MOST, counts[i]);
        snprintf(c.key, sizeof c.key, "context %u/%u tokens", context, counts[i]);
        sheet_add_row(s);
        sheet_put_text(s, "model", lab_get_model_name(l));
        sheet_put(s, "context", context);
        sheet_put(s, "tokens", counts[i]);
        lab_put(l, s, &c);
        sheet_put(s, "tok_s", 1e9 / sheet_get(s, sheet_count_rows(s) - 1, "wall_ns"));
    }
}

static bool run_context(lab *l, sheet *s, model *m, uint32_t context, uint32_t first, err *e) {
    uint32_t run_count = runs[lab_get_level(l)], count = lengths[lab_get_level(l)][LENGTHS - 1];
    uint32_t chosen[MOST], again[MOST];
    timing_sample *samples = array_new(run_count * MOST, sizeof *samples);
    bool ok = run_once(m, context, first, 2 < count ? 2 : count, chosen, samples, e); /* warms up */
    for (uint32_t r = 0; ok && r < run_count; r++) {
        ok = run_once(m, context, first, count, r == 0 ? chosen : again, samples + r * MOST, e);
        if (ok && r > 0 && memcmp(chosen, again, count * sizeof *chosen) != 0)
            ok = err_set(e, EXIT_WRONG, "two runs from the same position chose different tokens");
        char key[64];
        snprintf(key, sizeof key, "context %u/run %u", context, r);
        if (ok)
            sheet_add_samples(s, key, samples + r * MOST, count);
    }
    if (ok)
        put_rows(l, s, context, samples, run_count);
    free(samples);
    return ok;
}

/* Contexts longer than the model supports are left out. */
static bool run(lab *l, sheet *s, err *e) {
    const uint32_t *all = contexts[lab_get_level(l)];
    model_shape m;
    if (!lab_read_model_shape(l, &m, e))
        return false;
    uint32_t longest = 64;
    for (int i = 0; i < CONTEXTS; i++)
        if ((m.context == 0 || all[i] + MOST <= m.context) && all[i] + MOST > longest)
            longest = all[i] + MOST;
    lab_decoder d;
    uint32_t *tokens = array_new(longest + 1, sizeof *tokens);
    bool ok = lab_open_decoder(l, &(model_options){.context = longest}, 0, &d, e);
    lab_draw_tokens(l, m.vocab, tokens, longest);
    for (int i = 0; ok && i < CONTEXTS; i++) {
        if ((i > 0 && all[i] == 0) || all[i] + MOST > longest)
            continue;
        model_rewind(d.model, 0);
        ok = (all[i] == 0 ||
              model_forward_prompt(d.model, tokens, all[i], PLAY_WHOLE, d.room, NULL, e)) &&
             model_keep(d.model, e) && run_context(l, s, d.model, all[i], tokens[all[i]], e);
    }
    free(tokens);
    lab_close_decoder(&d);
    return ok;
}

/* Conclusions --------------------------------------------------------------------------------- */

static void conclude(sheet *s) {
    double rate = NAN, longest = 0, first = NAN, shortest = INFINITY, deep = NAN, deepest = 0;
    for (size_t r = 0; r < sheet_count_rows(s); r++) {
        double tokens = sheet_get(s, r, "tokens"), context = sheet_get(s, r, "context");
        if (context == 0 && tokens > longest) {
            longest = tokens;
            rate = sheet_get(s, r, "tok_s");
        }
        if (context == 0 && tokens < shortest) {
            shortest = tokens;
            first = sheet_get(s, r, "tok_s");
        }
        if (context > deepest || (context == deepest && tokens >= longest && context > 0)) {
            deepest = context;
            deep = sheet_get(s, r, "tok_s");
        }
    }
    double n20 = sheet_find(s, "tok_s", "context", "0", "tokens", "20", NULL);
    sheet_add_metric(s, "tok_s", rate, "tok/s");
    double n64 = sheet_find(s, "tok_s", "context", "0", "tokens", "64", NULL);
    for (size_t r = 0; r < sheet_count_rows(s); r++)
        if (sheet_get(s, r, "context") == 0 && sheet_get(s, r, "tokens") == longest)
            sheet_add_spread(s, "tok_s", 1e9 / sheet_get(s, r, "wall_q3_ns"),
                             1e9 / sheet_get(s, r, "wall_q1_ns"));
    sheet_add_metric(s, "tok_s_64", n64, "tok/s");
    sheet_add_metric(s, "n20_over_64", n20 / n64, "x");
    sheet_add_metric(s, "tok_s_deepest", deep, "tok/s");
    sheet_add_metric(s, "deepest", deepest, "tokens");
    sheet_conclude(
        s,
        "%.0f tokens from an empty context are generated at %.4g tok/s; the first %.0f of "
        "them at %.3g times that.",
        longest, rate, shortest, first / rate);
    sheet_conclude(
        s,
        "After %.0f tokens of context it is %.4g tok/s: %+.3g %%. Experiments that repeat "
        "one token at a context of 32 measure other rates.",
        deepest, deep, 100 * (deep / rate - 1));
}
