/* tune_confirm: what was decided launch by launch, held against the time of the whole model. A launch
 * that follows itself is not a launch among others. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/measure/verdict.h"
#include "kernels/kernels.h"
#include "kernels/roof_kernels.h"
#include "model.h"
#include "tune.h"
#include "variants.h"

enum { DEPTH = 64, MOST_PLAYS = 8, LEAST = 15, MOST = 400 };
#define MOST_S 10.0  /* of samples of one model */
#define EFFECT 0.003 /* of one choice on a whole model: small, but it must be there */

/* A model with a table, played again and again from the same position. */
typedef struct {
    model *m;
    uint32_t tokens, depth, *ids;
    int plays; /* in a sample */
    float *logits;
    const choice *wanted;
    bool is_used; /* its tapes make the choice that is wanted */
    choice_watch watch;
} contestant;

static void observe(void *context, const choice *c) {
    contestant *k = context;
    k->is_used = k->is_used || choice_compare(c, k->wanted) == 0;
}

static bool play(contestant *k, play_times *out, err *e) {
    uint32_t next;
    model_rewind(k->m, k->depth);
    return model_settle(k->m, e) &&
           (k->tokens == 1
                ? model_forward_greedy(k->m, k->ids[0], PLAY_WHOLE, &next, out, e)
                : model_forward_prompt(k->m, k->ids, k->tokens, PLAY_WHOLE, k->logits, out, e));
}

static bool take(void *context, timing_sample *out, err *e) {
    contestant *k = context;
    *out = (timing_sample){.gpu_ns = 0};
    for (int i = 0; i < k->plays; i++) {
        play_times t;
        if (!play(k, &t, e))
            return false;
        out->gpu_ns += (double)t.gpu_ns / k->plays;
        out->encode_ns += (double)t.encode_ns / k->plays;
        out->wall_ns += (double)t.wall_ns / k->plays;
        out->gpu_is_wall = t.gpu_is_wall;
    }
    return true;
}

static void close_contestant(contestant *k) {
    model_free(k->m);
    free(k->ids);
    free(k->logits);
}

/* For one token the cache is filled first: with as many as the choice has, if it is of attention. */
static bool open_contestant(contestant *k, library *lib, const gguf *g, const tuned *table,
                            const choice *c, err *e) {
    bool is_tokens;
    int at = choice_find_slide(c->op, &is_tokens);
    uint32_t size = at < 0 ? 1 : c->shape.dim[at];
    *k = (contestant){.wanted = c, .tokens = is_tokens ? size : 1, .watch = {observe, k, false}};
    uint32_t filled = c->op == &decode_attention_op ? size : DEPTH;
    k->depth = k->tokens == 1 ? filled : 0;
    uint32_t context = 2 * (k->tokens > filled ? k->tokens : filled);
    model_options o = {.context = context, .tuned = table, .watch = &k->watch};
    if (!(k->m = model_new(lib, g, &o, e)))
        return false;
    uint32_t vocab = model_get_shape(k->m)->vocab;
    k->ids = array_new(context, sizeof *k->ids);
    k->logits = array_new(vocab, sizeof *k->logits);
    rng r = rng_new(1, "tune");
    for (uint32_t i = 0; i < context; i++)
        k->ids[i] = rng_below(&r, vocab);
    play_times ignored;
    return (k->depth == 0 ||
            (model_forward_prompt(k->m, k->ids, k->depth, PLAY_WHOLE, k->logits, NULL, e) &&
             model_keep(k->m, e))) &&
           play(k, &ignored, e); /* all tapes are recorded by now */
}

/* The verdict on the whole model with a row against that without it. */
static bool compare(library *lib, contestant *without, contestant *with, const tune_settings *s,
                    verdict_case *out, err *e) {
    meter_options o = {.plan = timing_plan_new()};
    measurement items[2] = {{.source = {take, without}}, {.source = {take, with}}};
    play_times t[2];
    if (!play(without, &t[0], e) || !play(with, &t[1], e))
        return false;
    double each_s = (double)(t[0].wall_ns + t[1].wall_ns) * 0.5e-9;
    int plays = (int)fmin(MOST_PLAYS, fmax(1, TIMING_SAMPLE_S / each_s));
    without->plays = with->plays = plays;
    o.plan.budget_s = fmax(4 * s->budget_s, fmin(2 * LEAST * plays * each_s, MOST_S));
    o.plan.min_samples = LEAST;
    o.plan.max_samples = MOST;
    o.plan.target /= 4;
    meter *m = meter_new(lib, &bandwidth_roof_kernels, &o);
    bool ok = meter_time(m, items, 2, e);
    double *was = timing_list_clock(&items[0].result, CLOCK_GPU),
           *now = timing_list_clock(&items[1].result, CLOCK_GPU);
    *out = (verdict_case){.base = was,
                          .now = now,
                          .base_count = items[0].result.count,
                          .now_count = items[1].result.count,
                          .paired = true};
    if (ok)
        verdict_decide(out, 1, EFFECT, s->seed);
    free(was);
    free(now);
    out->base = out->now = NULL;
    for (int i = 0; i < 2; i++)
        timing_result_free(&items[i].result);
    meter_free(m);
    return ok;
}

static void label(tuned_row *r, const char *word) {
    size_t used = strlen(r->labels);
    snprintf(r->labels + used, sizeof r->labels - used, "%s%s", used ? "+" : "", word);
}

static tuned_row take_back(const tuned_row *r, const kernel *rule) {
    tuned_row back = *r;
    back.way = rule;
    back.ns = r->rule_ns;
    back.gain = back.low = back.high = 1;
    label(&back, "reverted");
    return back;
}

/* Tries one row on top of what is accepted. */
static bool try_row(library *lib, const gguf *g, tuned *accepted, const tuned_row *r,
                    const kernel *rule, const tune_settings *s, tune_confirmation *out, err *e) {
    contestant without = {.m = NULL}, with = {.m = NULL};
    verdict_case v = {.base = NULL};
    bool ok = open_contestant(&without, lib, g, accepted, &r->choice, e);
    tuned_row kept = *r;
    if (ok) {
        tuned_put(accepted, r);
        ok = open_contestant(&with, lib, g, accepted, &r->choice, e);
    }
    *out = (tune_confirmation){.is_used = with.is_used, .is_kept = true, .gain = NAN};
    if (ok && with.is_used) {
        ok = compare(lib, &without, &with, s, &v, e);
        out->gain = 1 / v.interval.ratio;
        out->low = 1 / v.interval.high;
        out->high = 1 / v.interval.low;
        out->is_kept = ok && v.verdict == VERDICT_FASTER;
        if (out->is_kept)
            label(&kept, "confirmed");
        else
            kept = take_back(r, rule);
        tuned_put(accepted, &kept);
    }
    close_contestant(&with);
    close_contestant(&without);
    return ok;
}

bool tune_confirm(library *lib, const gguf *g, const choice_list *choices, const tune_settings *s,
                  tuned *table, tune_tell *tell, void *context, err *e) {
    const device_facts *f = device_get_facts(library_get_device(lib));
    tuned *decided = tuned_new();
    bool ok = true;
    for (size_t i = 0; i < choices->count; i++) { /* all by the rules at first */
        const tuned_row *r = tuned_get(table, &choices->items[i]);
        const kernel *rule = variants_find_rule(f, &choices->items[i], NULL);
        if (!r || !rule || r->way == rule)
            continue;
        tuned_put(decided, r);
        tuned_row back = *r;
        back.way = rule;
        tuned_put(table, &back);
    }
    for (size_t i = 0; ok && i < choices->count; i++) {
        const tuned_row *r = tuned_get(decided, &choices->items[i]);
        tune_confirmation found;
        if (!r)
            continue;
        ok = try_row(lib, g, table, r, variants_find_rule(f, &r->choice, NULL), s, &found, e);
        if (ok)
            tell(context, r, &found);
    }
    tuned_free(decided);
    return ok;
}
