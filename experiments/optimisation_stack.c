/* optimisation_stack: each row has one idea more than the row above. A gain belongs to its place in
 * the order: what hides in the time of many submits shows only after they are gone. How the
 * published steps were timed was not said, and each number is of another run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoding.h"
#include "harness/base/os.h"
#include "harness/measure/comparison.h"
#include "kernels/record.h"
#include "runner/generate/sampler.h"

EXPERIMENT(
    optimisation_stack, .order = 155,
    .question = "What does each idea of the optimisation stack add, on top of those before it?",
    .claim = "75 tok/s with 91 command buffers, 257 with one, 291.9 with argmax on the GPU and "
             "private scratch, 276.8 with fused norms; target 300, later 389",
    .finding = "All ideas together are {speedup_all} times as fast: {tok_s_best} tokens per "
               "second",
    .how = "wall time of a run of greedy tokens divided by their number, all rows interleaved; the "
           "gain of a row is the median of paired ratios with its 99 % interval; every launch of "
           "each model checked, the tokens of every run compared",
    .has_model = true);

enum { LENGTH = 32, IN_FLIGHT = 4, ROUNDS = 6 };
static const uint32_t lengths[LEVEL_COUNT] = {LENGTH, 8, 4}, samples[LEVEL_COUNT] = {31, 13, 1};
static const double again_s[LEVEL_COUNT] = {20, 6, 1};
#define MIN_EFFECT 0.03

/* The models that differ in memory and launches. */
enum { SHARED_SCRATCH, PRIVATE_SCRATCH, FUSED, MODELS };
static const model_options models[MODELS] = {
    {.context = 128, .fusion = FUSION_NONE, .shared_scratch = true},
    {.context = 128, .fusion = FUSION_NONE},
    {.context = 128, .fusion = FUSION_MOST},
};

/* Each has what the one above has, and one thing more. */
static const struct {
    const char *name, *idea;
    int model;
    bool greedy; /* the device chooses; else the CPU reads the logits and finds the largest */
    play_mode mode;
    uint32_t in_flight; /* tokens submitted ahead; 0: each is waited for before the next */
} steps[] = {
    {"separate", "each op a launch in a command buffer of its own", SHARED_SCRATCH, false,
     PLAY_LAUNCHES, 0},
    {"argmax", "argmax on the GPU", SHARED_SCRATCH, true, PLAY_LAUNCHES, 0},
    {"private", "private scratch", PRIVATE_SCRATCH, true, PLAY_LAUNCHES, 0},
    {"fused", "fused launches", FUSED, true, PLAY_LAUNCHES, 0},
    {"one_buffer", "one command buffer per token", FUSED, true, PLAY_WHOLE, 0},
    {"async", "4 tokens in flight", FUSED, true, PLAY_WHOLE, IN_FLIGHT},
};
enum { STEPS = COUNT_OF(steps) };

/* Rows ---------------------------------------------------------------------------------------- */

/* The gain in speed with its interval, in percent, and the verdict. */
static void put_gain(sheet *s, const char *what, const verdict_case *v) {
    const double gains[] = {1 / v->interval.ratio, 1 / v->interval.high, 1 / v->interval.low};
    static const char *const ends[] = {"gain", "low", "high"};
    char column[32];
    for (size_t i = 0; i < COUNT_OF(gains); i++) {
        snprintf(column, sizeof column, "%s_%s_pct", what, ends[i]);
        sheet_put(s, column, 100 * (gains[i] - 1));
    }
    snprintf(column, sizeof column, "%s_verdict", what);
    sheet_put_text(s, column, verdict_get_name(v->verdict));
}

/* Each step against the one before it, and against the first. */
static void decide(const measurement *cases, verdict_case step[STEPS], verdict_case all[STEPS],
                   uint64_t seed) {
    double *times[STEPS];
    for (size_t i = 0; i < STEPS; i++) {
        size_t before = i > 0 ? i - 1 : 0;
        times[i] = timing_list_clock(&cases[i].result, CLOCK_WALL);
        step[i] = (verdict_case){.base = series_new(times[before], cases[before].result.count),
                                 .now = series_new(times[i], cases[i].result.count),
                                 .paired = true};
        all[i] = step[i];
        all[i].base = series_new(times[0], cases[0].result.count);
    }
    verdict_decide(step + 1, STEPS - 1, MIN_EFFECT, seed);
    verdict_decide(all + 1, STEPS - 1, MIN_EFFECT, seed);
    for (size_t i = 0; i < STEPS; i++)
        free(times[i]);
}

static bool put_rows(lab *l, sheet *s, const measurement *cases, const decoding_run *runs, err *e) {
    verdict_case step[STEPS], all[STEPS];
    decide(cases, step, all, lab_get_seed(l));
    for (size_t i = 0; i < STEPS; i++) {
        tape *t = model_get_token_tape(runs[i].decoder->model, steps[i].greedy, e);
        uint32_t same = 0;
        if (!t)
            return false;
        while (same < runs[i].count && runs[i].chosen[same] == runs[0].chosen[same])
            same++;
        sheet_add_variant(s, steps[i].name);
        sheet_put_text(s, "idea", steps[i].idea);
        sheet_put_text(s, "model", lab_get_model_name(l));
        sheet_put(s, "tokens", runs[i].count);
        sheet_put(s, "same_tokens", same);
        sheet_put(s, "command_buffers", (double)tape_count_parts(t, steps[i].mode));
        sheet_put(s, "launches", (double)t->count);
        lab_put(l, s, &cases[i]);
        sheet_put(s, "tok_s", 1e9 / sheet_get(s, i, "wall_ns"));
        sheet_put(s, "us_token", 1e-3 * sheet_get(s, i, "wall_ns"));
        if (i > 0) {
            put_gain(s, "step", &step[i]);
            put_gain(s, "total", &all[i]);
        }
    }
    return true;
}

static bool open_models(lab *l, sheet *s, lab_decoder d[MODELS], err *e) {
    for (int i = 0; i < MODELS; i++)
        if (!lab_open_decoder(l, &models[i], 0, &d[i], e))
            return false;
    const tape *apart = model_get_token_tape(d[PRIVATE_SCRATCH].model, true, e),
               *fused = apart ? model_get_token_tape(d[FUSED].model, true, e) : NULL;
    if (!fused)
        return false;
    if (fused->count == apart->count)
        sheet_add_note(s, "fused", "nothing: on this device a model is faster without");
    return true;
}

/* A verdict needs more pairs than a steady median. */
static bool time_steps(lab *l, measurement *cases, err *e) {
    size_t wanted = samples[lab_get_level(l)];
    bool ok = lab_time(l, cases, STEPS, e);
    for (int i = 0; ok && i < ROUNDS && cases[0].result.count < wanted; i++)
        ok = lab_time_again(l, cases, STEPS, again_s[lab_get_level(l)], e);
    return ok;
}

static bool run(lab *l, sheet *s, err *e) {
    lab_decoder d[MODELS] = {{.model = NULL}};
    decoding_run runs[STEPS];
    uint32_t wanted[MODELS][DECODING_MOST];
    bool is_known[MODELS] = {false}, ok = open_models(l, s, d, e);
    measurement cases[STEPS] = {{.regime = TIMING_SINGLE}};
    timing_sample ignored;
    for (size_t i = 0; i < STEPS; i++) {
        int m = steps[i].model;
        runs[i] = (decoding_run){.name = steps[i].name,
                                 .decoder = &d[m],
                                 .mode = steps[i].mode,
                                 .greedy = steps[i].greedy,
                                 .in_flight = steps[i].in_flight,
                                 .count = lengths[lab_get_level(l)]};
        cases[i].source = (timing_source){decoding_take_run, &runs[i]};
        cases[i].samples = samples[lab_get_level(l)];
        snprintf(cases[i].key, sizeof cases[i].key, "%s", steps[i].name);
        ok = ok && (is_known[m] || decoding_take_run(&runs[i], &ignored, e));
        if (ok && !is_known[m])
            memcpy(wanted[m], runs[i].chosen, sizeof wanted[m]);
        is_known[m] = true;
        runs[i].wanted = wanted[m];
    }
    ok = ok && time_steps(l, cases, e) && put_rows(l, s, cases, runs, e);
    lab_close_cases(cases, STEPS);
    for (int i = 0; i < MODELS; i++)
        lab_close_decoder(&d[i]);
    return ok;
}

/* Conclusions --------------------------------------------------------------------------------- */

/* "argmax -1.3 % (no difference)" and so on, from the first step to the last. */
static void list_gains(const sheet *s, char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 1; i < STEPS && used < size; i++) {
        size_t row = sheet_find_row(s, "variant", steps[i].name, NULL);
        if (row == SIZE_MAX)
            continue;
        const char *verdict = sheet_get_text(s, row, "step_verdict");
        bool is_clear = strcmp(verdict, "faster") == 0 || strcmp(verdict, "slower") == 0;
        used += (size_t)snprintf(text + used, size - used, "%s%s %+.3g %%%s", used ? ", " : "",
                                 steps[i].idea, sheet_get(s, row, "step_gain_pct"),
                                 is_clear                       ? ""
                                 : strcmp(verdict, "same") == 0 ? " (no difference)"
                                                                : " (cannot be told)");
    }
}

static void conclude(sheet *s) {
    char metric[64], gains[400] = "";
    const char *first = steps[0].name, *best = first;
    for (size_t i = 0; i < STEPS; i++) {
        snprintf(metric, sizeof metric, "tok_s_%s", steps[i].name);
        decoding_add_rate(s, metric, steps[i].name);
        size_t row = sheet_find_row(s, "variant", steps[i].name, NULL);
        if (i == 0 || row == SIZE_MAX)
            continue;
        snprintf(metric, sizeof metric, "gain_%s_pct", steps[i].name);
        sheet_add_metric(s, metric, sheet_get(s, row, "step_gain_pct"), "%");
        sheet_add_spread(s, metric, sheet_get(s, row, "step_low_pct"),
                         sheet_get(s, row, "step_high_pct"));
        if (sheet_get(s, row, "tok_s") > sheet_find(s, "tok_s", "variant", best, NULL))
            best = steps[i].name;
    }
    decoding_add_rate(s, "tok_s_best", best);
    double speedup = decoding_find_ratio(s, best, first), low, high;
    decoding_find_ratios(s, best, first, &low, &high);
    sheet_add_metric(s, "speedup_all", speedup, "x");
    sheet_add_spread(s, "speedup_all", low, high);
    list_gains(s, gains, sizeof gains);
    sheet_conclude(s, "From %.4g to %.4g tok/s: %.3g times as fast with all ideas up to %s.",
                   sheet_get_metric(s, "tok_s_separate"), sheet_get_metric(s, "tok_s_best"),
                   speedup, best);
    sheet_conclude(s, "Each on top of those before it: %s.", gains);
}
