/* tune_worker: the side of tune.h that times. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/worker.h"
#include "harness/measure/verdict.h"
#include "kernels/ops.h"
#include "kernels/roof_kernels.h"
#include "steps.h"
#include "tune.h"

enum { FINALISTS = 6, MOMENT_SAMPLES = 5, LEAST_SAMPLES = 13, LOOKS = 4 };
#define FAR 1.5        /* times as slow as the fastest: not worth more samples */
#define MOMENT_S 0.05  /* of the samples that tell */
#define ROOF_S 0.05    /* to find the size of the caches */
#define LOOK_S 10.0    /* of samples that are looked at together, at most */
#define LONG_S 86400.0 /* and once is enough */

typedef struct {
    const tune_settings *settings;
    library *lib;
    variants_basis variants;
    tuned *table;
    timing_cache cache;
    meter *moment, *full;
} server;

/* A way while it is timed. */
typedef struct {
    const kernel *way;
    steps steps; /* its op, if it is not a kernel of the choice's */
    measurement x;
    bool is_open;
    double least_ns; /* of the moment: what an interrupted sample cannot hide */
} entrant;

/* Ways ---------------------------------------------------------------------------------------- */

/* The rule's first. */
static size_t list_entrants(const server *s, const choice *c, entrant *out, err *e) {
    const kernel *ways[CHOICE_WAYS], *rule = variants_find_rule(s->variants.facts, c, e);
    size_t count = rule ? choice_list_ways(c, ways) : 0, used = 0;
    if (rule)
        out[used++].way = rule;
    for (size_t i = 0; i < count && used < CHOICE_WAYS; i++)
        if (ways[i] != rule)
            out[used++].way = ways[i];
    for (size_t i = 0; i < used; i++)
        if (choice_is_apart(out[i].way))
            out[i].steps = steps_new(&s->variants, c);
    return used;
}

/* Opens, checks and times one for a moment. */
static void try_way(server *s, const choice *c, entrant *n, tune_way *out) {
    const op *o = choice_is_apart(n->way) ? &n->steps.op : c->op;
    kernel_case built = case_new(o, n->way, &c->shape, INPUT_NORMAL);
    err e = {.code = EXIT_OK};
    snprintf(out->name, sizeof out->name, "%s", n->way->name);
    out->ns = out->iqr = out->gain = out->low = out->high = NAN;
    n->is_open = true;
    bool is_opened =
        measurement_open(&n->x, s->lib, &built, s->settings->seed, TIMING_CHAINED, s->cache, &e) &&
        device_can_play(n->x.tape, &e);
    if (is_opened && meter_try(s->moment, &n->x, &e)) {
        stats t = timing_compute_stats(&n->x.result, CLOCK_GPU);
        out->ns = t.median;
        out->iqr = t.iqr;
        n->least_ns = t.min;
        out->state = WAY_FAR; /* until it turns out to be near */
        return;
    }
    out->state = is_opened && e.code == EXIT_WRONG ? WAY_WRONG : WAY_CANNOT;
    snprintf(out->why, sizeof out->why, "%.199s", e.text);
    measurement_close(&n->x);
    n->is_open = false;
}

/* Those that were near, fastest first; the rule's is always among them. */
static size_t find_finalists(const entrant *all, const tune_way *ways, size_t count,
                             size_t out[FINALISTS]) {
    size_t used = 0;
    double best = INFINITY;
    for (size_t i = 0; i < count; i++)
        best = ways[i].state == WAY_FAR ? fmin(best, all[i].least_ns) : best;
    if (count > 0 && ways[0].state == WAY_FAR)
        out[used++] = 0;
    while (used < FINALISTS) {
        size_t next = count;
        for (size_t i = 1; i < count; i++) {
            bool is_in = false;
            for (size_t k = 0; k < used; k++)
                is_in = is_in || out[k] == i;
            if (!is_in && ways[i].state == WAY_FAR && all[i].least_ns <= FAR * best &&
                (next == count || all[i].least_ns < all[next].least_ns))
                next = i;
        }
        if (next == count)
            break;
        out[used++] = next;
    }
    return used;
}

/* Deciding ------------------------------------------------------------------------------------ */

/* Long enough for a verdict, however slow they are. */
static double find_seconds(const server *s, const entrant *all, const tune_way *ways,
                           const size_t *which, size_t count) {
    double round_s = 0;
    for (size_t i = 0; i < count; i++)
        round_s += ways[which[i]].ns * 1e-9 * (double)subject_get_repeats(all[which[i]].x.subject);
    return fmax(s->settings->budget_s * (double)count,
                fmin((double)LEAST_SAMPLES * round_s, LOOK_S));
}

/* More samples of all finalists, interleaved. */
static bool time_finalists(server *s, entrant *all, const size_t *which, size_t count,
                           double seconds, err *e) {
    measurement *items = array_new(count, sizeof *items);
    for (size_t i = 0; i < count; i++)
        items[i] = all[which[i]].x;
    bool ok = meter_time_again(s->full, items, count, seconds, e);
    for (size_t i = 0; i < count; i++)
        all[which[i]].x = items[i];
    free(items);
    return ok;
}

/* *best: the fastest of those that are significantly faster than the first, or the first. False: more
 * samples may show that another one is. */
static bool judge(const server *s, const entrant *all, const size_t *which, size_t count,
                  tune_way *ways, size_t *best) {
    verdict_case cases[FINALISTS] = {{.base = NULL}};
    double *samples[FINALISTS], effect = s->settings->min_effect / 100;
    size_t chosen = 0;
    for (size_t i = 0; i < count; i++)
        samples[i] = timing_list_clock(&all[which[i]].x.result, CLOCK_GPU);
    for (size_t i = 1; i < count; i++)
        cases[i - 1] = (verdict_case){.base = samples[0],
                                      .now = samples[i],
                                      .base_count = all[which[0]].x.result.count,
                                      .now_count = all[which[i]].x.result.count,
                                      .paired = true,
                                      .looks = LOOKS};
    verdict_decide(cases, count - 1, effect, s->settings->seed);
    for (size_t i = 0; i < count; i++) {
        tune_way *w = &ways[which[i]];
        stats t = timing_compute_stats(&all[which[i]].x.result, CLOCK_GPU);
        const verdict_case *v = i > 0 ? &cases[i - 1] : NULL;
        w->state = WAY_TIMED;
        w->ns = t.median;
        w->iqr = t.iqr;
        w->gain = v ? 1 / v->interval.ratio : 1;
        w->low = v ? 1 / v->interval.high : 1;
        w->high = v ? 1 / v->interval.low : 1;
        if (v && v->verdict == VERDICT_FASTER && w->gain > ways[which[chosen]].gain)
            chosen = i;
        free(samples[i]);
    }
    *best = which[chosen];
    for (size_t i = 1; i < count; i++)
        if (cases[i - 1].verdict == VERDICT_AMBIGUOUS &&
            ways[which[i]].gain > fmax(1 + effect, ways[*best].gain))
            return false;
    return true;
}

static bool compare(server *s, entrant *all, const size_t *which, size_t count, tune_outcome *o,
                    err *e) {
    double seconds = find_seconds(s, all, o->ways, which, count);
    for (size_t i = 0; i < count; i++) { /* those of the moment were not interleaved */
        timing_result_free(&all[which[i]].x.result);
        all[which[i]].x.result = (timing_result){.samples = NULL};
    }
    for (int look = 0; look < LOOKS; look++) {
        if (!time_finalists(s, all, which, count, seconds, e))
            return false;
        if (judge(s, all, which, count, o->ways, &o->chosen))
            break;
    }
    return true;
}

static void fill_row(const server *s, const entrant *all, size_t rule, tune_outcome *o) {
    const tune_way *w = &o->ways[o->chosen];
    const timing_result *t = &all[o->chosen].x.result;
    tuned_row *r = &o->row;
    snprintf(r->rule, sizeof r->rule, "%.95s", o->ways[0].name);
    r->ns = w->ns;
    r->rule_ns = rule == 0 ? o->ways[0].ns : NAN; /* else the rule's way is wrong */
    r->gain = rule == 0 ? w->gain : NAN;
    r->low = rule == 0 ? w->low : NAN;
    r->high = rule == 0 ? w->high : NAN;
    r->samples = (double)t->count;
    r->ways = (double)o->count;
    snprintf(r->cache, sizeof r->cache, "%s", timing_get_cache_name(s->cache));
    timing_get_labels(t->labels | timing_find_labels(s->variants.facts), r->labels,
                      sizeof r->labels);
}

static bool decide(server *s, const choice *c, entrant *all, tune_outcome *o, err *e) {
    size_t which[FINALISTS], count;
    o->count = list_entrants(s, c, all, e);
    if (o->count == 0)
        return false;
    for (size_t i = 0; i < o->count; i++)
        try_way(s, c, &all[i], &o->ways[i]);
    count = find_finalists(all, o->ways, o->count, which);
    if (count == 0)
        return err_set(e, EXIT_WRONG, "no way is right: %.200s", o->ways[0].why);
    if (!compare(s, all, which, count, o, e))
        return false;
    fill_row(s, all, which[0], o);
    return tune_find_made_of(s->lib, s->variants.facts->api, c, o->row.made_of, e);
}

bool tune_find_made_of(const library *lib, const char *api, const choice *c, char text[MADE_OF],
                       err *e) {
    const kernel *ways[CHOICE_WAYS];
    const char *files[CHOICE_WAYS];
    size_t count = choice_list_ways(c, ways), used = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < used && ways[i]->file && strcmp(files[k], ways[i]->file) != 0)
            k++;
        if (k == used && ways[i]->file)
            files[used++] = ways[i]->file;
    }
    text[0] = 0;
    return made_of_add(text, lib, "kernel", files, used, e) &&
           made_of_add_one(text, lib, "description", c->op->source, e) &&
           made_of_add_one(text, lib, "device", api, e);
}

/* Tasks --------------------------------------------------------------------------------------- */

static void *compile(server *s, const char *name, size_t *bytes) {
    const kernel *k = registry_find_kernel(name, NULL);
    bool *is_made = array_new(1, sizeof *is_made);
    *is_made = k && library_find(s->lib, k->file, k->name, NULL, 0, NULL);
    *bytes = sizeof *is_made;
    return is_made;
}

static void *run_task(void *context, const char *task, size_t *bytes, bool *retire) {
    server *s = context;
    if (strncmp(task, TUNE_COMPILE, strlen(TUNE_COMPILE)) == 0)
        return compile(s, task + strlen(TUNE_COMPILE), bytes);
    tune_outcome *o = array_new(1, sizeof *o);
    entrant *all = array_new(CHOICE_WAYS, sizeof *all);
    choice c;
    err e = {.code = EXIT_OK};
    o->made = choice_parse(task, &c, &e);
    if (o->made) {
        o->row = tuned_row_new(&c);
        o->made = decide(s, &c, all, o, &e);
    }
    if (o->made) { /* what follows may have it as a step */
        o->row.way = all[o->chosen].way;
        tuned_put(s->table, &o->row);
    } else
        snprintf(o->why, sizeof o->why, "%s", e.text);
    for (size_t i = 0; i < CHOICE_WAYS; i++) {
        if (all[i].is_open)
            measurement_close(&all[i].x);
        *retire = *retire || o->ways[i].state == WAY_WRONG; /* it may have written anywhere */
    }
    free(all);
    *bytes = sizeof *o;
    return o;
}

static meter *new_meter(const server *s, bool is_moment) {
    meter_options o = {.plan = timing_plan_new(),
                       .sample_s = TIMING_SAMPLE_S,
                       .roof_s = s->cache == TIMING_COLD ? ROOF_S : 0,
                       .window_s = LONG_S};
    o.plan.budget_s = s->settings->budget_s;
    o.plan.target *= 4; /* as meter_time_again takes a quarter of it */
    if (is_moment) {
        o.plan.budget_s = fmin(MOMENT_S, s->settings->budget_s);
        o.plan.warm_up_s = MOMENT_S / 5;
        o.plan.min_samples = MOMENT_SAMPLES;
    }
    return meter_new(s->lib, &bandwidth_roof_kernels, &o);
}

static bool open_table(server *s, err *e) {
    const tune_settings *t = s->settings;
    size_t lost = 0;
    bool is_there = t->table && access(t->table, F_OK) == 0;
    s->table = is_there ? tuned_read(t->table, s->variants.facts->name, &lost, e) : tuned_new();
    s->variants.table = s->table;
    return s->table != NULL;
}

exit_code tune_serve(const tune_settings *t, err *e) {
    server s = {.settings = t};
    device *d = device_open_with(t->device, &(device_options){.math = t->math}, e);
    bool ok = d && (s.lib = library_new(d, NULL, e));
    if (ok) {
        s.variants.facts = device_get_facts(d);
        s.cache = s.variants.facts->emulated ? TIMING_WARM : TIMING_COLD;
        if (t->cache)
            timing_find_cache(t->cache, &s.cache);
        ok = open_table(&s, e);
    }
    if (ok) {
        s.moment = new_meter(&s, true);
        s.full = new_meter(&s, false);
        ok = worker_serve(run_task, &s, e);
    }
    meter_free(s.full);
    meter_free(s.moment);
    tuned_free(s.table);
    library_free(s.lib);
    device_close(d);
    return ok ? EXIT_OK : e->code;
}
