/* lab: see lab.h. Models are in lab_model.c. */
#include "lab.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "lab_parts.h"

/* A roof older than this is another window. */
static const double window_s[LEVEL_COUNT] = {10, 30, 0};
#define SMOKE_CACHE ((size_t)64 << 10)

const char *lab_get_level_name(lab_level l) {
    static const char *const names[LEVEL_COUNT] = {"full", "quick", "smoke"};
    return names[l];
}

lab *lab_new(const lab_options *o, err *e) {
    lab *l = calloc(1, sizeof *l);
    assert(l);
    l->options = *o;
    if ((l->device = device_open_with(o->device, &(device_options){.math = o->math}, e)) &&
        (l->lib = library_new(l->device, NULL, e)))
        return l;
    lab_free(l);
    return NULL;
}

void lab_free(lab *l) {
    if (!l)
        return;
    lab_close_model(l);
    roof_free(l->roof);
    library_free(l->lib);
    device_close(l->device);
    free(l);
}

lab_level lab_get_level(const lab *l) {
    return l->options.level;
}

library *lab_get_library(lab *l) {
    return l->lib;
}

const device_facts *lab_get_facts(const lab *l) {
    return device_get_facts(l->device);
}

uint64_t lab_get_seed(const lab *l) {
    return l->options.seed;
}

size_t lab_choose(const lab *l, size_t count, size_t quick) {
    size_t wanted[LEVEL_COUNT] = {count, quick, quick < 2 ? quick : 2};
    return wanted[l->options.level] < count ? wanted[l->options.level] : count;
}

/* The roof ---------------------------------------------------------------------------------- */

bool lab_find_roof(lab *l, roof **out, err *e) {
    if (l->options.level != LEVEL_SMOKE && !l->roof &&
        !(l->roof = roof_new(l->lib, l->options.level == LEVEL_FULL ? 0.05 : 0.02, e)))
        return false;
    *out = l->roof;
    return true;
}

bool lab_find_cache(lab *l, size_t *bytes, err *e) {
    roof *r;
    if (!lab_find_roof(l, &r, e))
        return false;
    *bytes = r ? roof_get_facts(r)->cache_bytes : SMOKE_CACHE;
    return true;
}

/* Working sets within a factor of 2 share a window. */
static bool find_window(lab *l, size_t bytes, timing_cache cache, roof_window *out, err *e) {
    size_t size = 0;
    roof *r;
    *out = (roof_window){0};
    if (!lab_find_roof(l, &r, e))
        return false;
    if (!r)
        return true;
    while (cache == TIMING_WARM && size + 1 < LAB_SIZES && (size_t)1 << size < bytes)
        size++;
    uint64_t *at_ns = &l->windows[cache][size].at_ns;
    roof_window *window = &l->windows[cache][size].window;
    if (!*at_ns || (double)(os_now_ns() - *at_ns) * 1e-9 > window_s[l->options.level]) {
        if (!roof_measure(r, bytes, cache, window, e))
            return false;
        *at_ns = os_now_ns();
    }
    *out = *window;
    return true;
}

/* Timing ------------------------------------------------------------------------------------ */

static timing_plan make_plan(const lab *l) {
    timing_plan p = timing_plan_new();
    if (l->options.level == LEVEL_FULL)
        return p;
    bool is_quick = l->options.level == LEVEL_QUICK;
    p.target = 0.02;
    p.budget_s = is_quick ? 0.1 : 0.001;
    p.warm_up_s = p.budget_s / 10;
    p.min_samples = 3; /* of what is slow; what is fast goes on until the budget ends */
    p.max_samples = is_quick ? 200 : 3;
    return p;
}

static double get_sample_s(const lab *l) {
    static const double seconds[LEVEL_COUNT] = {TIMING_SAMPLE_S, TIMING_SAMPLE_S, 0.0001};
    return seconds[l->options.level];
}

bool lab_open_case(lab *l, lab_case *c, const op *o, const kernel *k, shape s,
                   timing_regime regime, timing_cache cache, err *e) {
    char text[64];
    c->regime = regime;
    c->cache = cache;
    shape_get_text(&s, text, sizeof text);
    snprintf(c->key, sizeof c->key, "%s/%s/%s/%s", k->name, text, timing_get_regime_name(regime),
             timing_get_cache_name(cache));
    if (!case_open(&c->built, l->lib, o, k, &s, INPUT_NORMAL, l->options.seed, e))
        return false;
    c->tape = c->built.tape;
    return true;
}

void lab_close_cases(lab_case *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        subject_free(cases[i].subject);
        if (cases[i].built.tape)
            case_close(&cases[i].built);
        timing_result_free(&cases[i].result);
    }
}

static bool open_subject(lab *l, lab_case *c, err *e) {
    roof *r = NULL;
    subject_options o = {.regime = c->regime,
                         .cache = c->cache,
                         .sample_s = get_sample_s(l),
                         .unordered = c->built.op && c->built.op->unordered};
    if (c->cache == TIMING_COLD) {
        if (!lab_find_cache(l, &o.cache_bytes, e) || !lab_find_roof(l, &r, e) ||
            (r && !(o.scrub = roof_get_scrub(r, e))))
            return false;
    }
    return (c->subject = subject_new(c->tape, &o, e)) && subject_check(c->subject, e);
}

bool lab_time(lab *l, lab_case *cases, size_t count, err *e) {
    timing_plan plan = make_plan(l);
    timing_source *sources = calloc(count, sizeof *sources);
    timing_result *taken = calloc(count, sizeof *taken);
    assert(sources && taken);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        lab_case *c = &cases[i];
        if (c->samples > plan.min_samples && l->options.level != LEVEL_SMOKE)
            plan.min_samples = c->samples;
        ok = !c->tape ||
             (open_subject(l, c, e) &&
              find_window(l, subject_get_working_set(c->subject), c->cache, &c->window, e));
        if (ok)
            sources[i] = c->tape ? subject_get_source(c->subject) : c->source;
    }
    ok = ok && timing_run(&plan, sources, count, taken, e);
    for (size_t i = 0; i < count; i++) {
        cases[i].result = taken[i];
        ok = ok && (!cases[i].tape || subject_check(cases[i].subject, e));
    }
    free(sources);
    free(taken);
    return ok;
}

static void put_work(sheet *s, const lab_case *c, double gpu_ns, unsigned *labels) {
    double bytes = (double)tape_sum_bytes(c->tape), flops = (double)tape_sum_flops(c->tape);
    double gb_s = bytes / gpu_ns, best = c->window.best_gb_s > 0 ? c->window.best_gb_s : NAN;
    sheet_put(s, "bytes", bytes);
    sheet_put(s, "flops", flops);
    sheet_put(s, "gb_s", gb_s);
    sheet_put(s, "gflop_s", flops / gpu_ns);
    sheet_put(s, "roof_gb_s", best);
    sheet_put(s, "pct_roof", 100 * gb_s / best);
    sheet_put(s, "launch_us", best > 0 ? c->window.launch_ns * 1e-3 : NAN);
    sheet_put(s, "submit_us", best > 0 ? c->window.submit_ns * 1e-3 : NAN);
    sheet_put(s, "plays_a_sample", (double)subject_get_repeats(c->subject));
    sheet_put(s, "copies", (double)subject_get_copies(c->subject));
    if (gb_s > best)
        *labels |= LABEL_ABOVE_ROOF;
}

void lab_put(lab *l, sheet *s, const lab_case *c) {
    stats gpu = timing_compute_stats(&c->result, CLOCK_GPU),
          wall = timing_compute_stats(&c->result, CLOCK_WALL);
    unsigned labels = c->result.labels | timing_find_labels(lab_get_facts(l));
    char text[128];
    sheet_put(s, "n", (double)gpu.count);
    sheet_put(s, "median_us", gpu.median * 1e-3);
    sheet_put(s, "q1_us", gpu.q1 * 1e-3);
    sheet_put(s, "q3_us", gpu.q3 * 1e-3);
    sheet_put(s, "min_us", gpu.min * 1e-3);
    sheet_put(s, "wall_us", wall.median * 1e-3);
    sheet_put(s, "wall_q1_us", wall.q1 * 1e-3);
    sheet_put(s, "wall_q3_us", wall.q3 * 1e-3);
    sheet_put(s, "encode_us", timing_compute_stats(&c->result, CLOCK_ENCODE).median * 1e-3);
    if (c->tape) {
        sheet_put_text(s, "regime", timing_get_regime_name(c->regime));
        sheet_put_text(s, "cache", timing_get_cache_name(c->cache));
        put_work(s, c, gpu.median, &labels);
    }
    sheet_put_text(s, "math", math_mode_get_name(l->options.math));
    sheet_put_text(s, "stop", timing_get_stop_name(c->result.stop));
    timing_get_labels(labels, text, sizeof text);
    sheet_put_text(s, "label", text);
    sheet_put_text(s, "case", c->key);
    sheet_add_samples(s, c->key, c->result.samples, c->result.count);
}
