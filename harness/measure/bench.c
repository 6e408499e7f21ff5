/* bench: see bench.h. The side that hands out cases. */
#include "bench.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_wire.h"
#include "harness/base/os.h"
#include "harness/base/worker.h"

static void free_outcome(bench_outcome *o) {
    free(o->samples);
    for (size_t i = 0; i < o->other_count; i++)
        free(o->others[i].samples);
    *o = (bench_outcome){.other_count = 0};
}

/* Handing out ------------------------------------------------------------------------------- */

typedef struct {
    const bench_settings *settings;
    const bench_list *cases;
    const device_facts *facts;
    const other_verdict *verdicts; /* (cases, others), NULL if there are none */
    const bench_listener *listener;
} delivery;

/* A case that was not timed, and why; `name` is that of our kernel or of a rival. */
static result_row make_untimed(const bench_case *c, const char *name, const device_facts *f,
                               const char *why) {
    result_row r = result_row_new();
    shape_get_text(&c->timed.shape, r.shape, sizeof r.shape);
    snprintf(r.device, sizeof r.device, "%s", f->name);
    snprintf(r.api, sizeof r.api, "%s", f->api);
    snprintf(r.op, sizeof r.op, "%s", c->timed.op->name);
    snprintf(r.kernel, sizeof r.kernel, "%s", name);
    snprintf(r.math, sizeof r.math, "%s", math_mode_get_name(f->math));
    snprintf(r.input, sizeof r.input, "%s", distribution_get_name(c->timed.inputs));
    snprintf(r.regime, sizeof r.regime, "%s", timing_get_regime_name(c->regime));
    snprintf(r.cache, sizeof r.cache, "%s", timing_get_cache_name(c->cache));
    snprintf(r.name, sizeof r.name, "%s/%s/%s/%s/%s", name, r.shape, r.input, r.regime, r.cache);
    snprintf(r.message, sizeof r.message, "%s", why);
    return r;
}

/* NULL if the worker's answer holds, else why not. */
static const char *find_failure(const worker_outcome *o, wire_answer *a, timing_sample **samples) {
    if (o->failure[0])
        return o->failure;
    if (!wire_unpack(o->answer, o->bytes, a, samples))
        return WORKER_OTHER_BUILD;
    return a->made ? NULL : a->error.text;
}

/* Everything that is for the case: those that are right have been timed, in their order. */
static void add_others(const delivery *s, size_t number, const wire_answer *a,
                       timing_sample **samples, bench_outcome *out) {
    const bench_case *c = &s->cases->items[number];
    const bench_settings *o = s->settings;
    size_t side = 1, count = bench_count_others(o);
    for (size_t i = 0; i < count; i++) {
        const other_verdict *v = &s->verdicts[number * count + i];
        if (!(bench_get_others(o, c) >> i & 1))
            continue;
        bench_other *other = &out->others[out->other_count++];
        if (!v->refused && a && side < a->sides) {
            *other = (bench_other){.row = a->rows[side], .samples = samples[side]};
            side++;
            continue;
        }
        const char *why = v->refused ? v->why
                          : a        ? a->error.text
                                     : "not timed, because ours was not";
        const char *name = o->base_folder ? c->timed.kernel->name : o->rivals[i].name;
        other->row = make_untimed(c, name, s->facts, why);
        if (!o->base_folder)
            snprintf(other->row.variant, sizeof other->row.variant, BENCH_RIVAL);
        other->skipped = v->skipped || (!v->refused && !a);
    }
}

static bool deliver_case(const delivery *s, size_t number, const wire_answer *a,
                         timing_sample **samples, const char *failure, err *e) {
    const bench_case *c = &s->cases->items[number];
    static bench_outcome out;
    out = (bench_outcome){.samples = samples[0]};
    if (!failure)
        out.row = a->rows[0];
    else {
        out.row = make_untimed(c, c->timed.kernel->name, s->facts, failure);
        out.skipped = failure == a->error.text && a->skipped;
    }
    if (s->verdicts)
        add_others(s, number, failure ? NULL : a, samples, &out);
    bool ok = s->listener->deliver(s->listener->context, c, &out, e);
    free_outcome(&out);
    return ok;
}

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    delivery *s = context;
    static wire_answer a;
    timing_sample *samples[WIRE_SIDES] = {NULL};
    const char *failure = find_failure(o, &a, samples);
    if (task > 0)
        return deliver_case(s, task - 1, &a, samples, failure, e);
    if (!failure)
        return !s->listener->start || s->listener->start(s->listener->context, &a.roof, e);
    bool is_answered = failure == a.error.text;
    err_set(e, is_answered ? a.error.code : EXIT_CANNOT,
            "the roof cannot be measured, so nothing is timed: %.180s", failure);
    if (is_answered)
        err_set_detail(e, a.error.detail);
    return false;
}

/* What is timed with a case: those that are for it and right. */
static uint32_t find_mask(const delivery *s, size_t number) {
    size_t count = bench_count_others(s->settings);
    uint32_t mask = count > 0 ? bench_get_others(s->settings, &s->cases->items[number]) : 0;
    for (size_t i = 0; i < count; i++)
        if (s->verdicts[number * count + i].refused)
            mask &= ~(1u << i);
    return mask;
}

/* Compiling ---------------------------------------------------------------------------------- */

static bool ignore_outcome(void *context, size_t task, const worker_outcome *o, err *e) {
    (void)context, (void)task, (void)o, (void)e;
    return true;
}

static bool is_smaller(const bench_case *a, const bench_case *b) {
    return shape_count_values(&a->timed.shape) < shape_count_values(&b->timed.shape);
}

/* The smallest case of each kernel, in several workers: compilers would wait for one another in the
 * one worker that times. */
static bool compile_kernels(const bench_settings *s, const bench_list *cases, err *e) {
    char(*texts)[WIRE_TASK] = calloc(cases->count + 1, sizeof *texts);
    const char **tasks = calloc(cases->count + 1, sizeof *tasks);
    size_t count = 0;
    assert(texts && tasks);
    for (size_t i = 0, end; i < cases->count; i = end) {
        const bench_case *best = &cases->items[i];
        for (end = i; end < cases->count && cases->items[end].timed.kernel == best->timed.kernel;
             end++)
            best = is_smaller(&cases->items[end], best) ? &cases->items[end] : best;
        snprintf(texts[count], sizeof *texts, "%s%s", WIRE_PREPARE, best->name);
        tasks[count] = texts[count];
        count++;
    }
    progress shown = progress_new(stderr, "kernels compiled", count);
    worker_plan plan = {.arguments = s->arguments,
                        .tasks = tasks,
                        .count = count,
                        .jobs = worker_count_jobs(16),
                        .timeout_s = s->timeout_s,
                        .deliver = ignore_outcome,
                        .progress = &shown};
    bool ok = count < 2 || worker_run(&plan, e);
    free(tasks);
    free(texts);
    return ok;
}

static worker_scope give_up(void *context, size_t task, const worker_outcome *o, char *why,
                            size_t size) {
    const delivery *s = context;
    wire_answer a;
    if (task == 0 || o->bytes < sizeof a)
        return WORKER_NO_OTHERS;
    memcpy(&a, o->answer, sizeof a);
    snprintf(why, size, "%.50s does not compile", s->cases->items[task - 1].timed.kernel->file);
    return a.uncompiled ? WORKER_GROUP : WORKER_NO_OTHERS;
}

static bool time_cases(const bench_settings *s, const bench_list *cases, delivery *own, err *e) {
    char(*texts)[WIRE_TASK] = calloc(cases->count + 1, sizeof *texts);
    const char **tasks = calloc(cases->count + 1, sizeof *tasks);
    assert(texts && tasks);
    tasks[0] = WIRE_ROOF;
    for (size_t i = 0; i < cases->count; i++) {
        snprintf(texts[i], sizeof *texts, "%x:%s", find_mask(own, i), cases->items[i].name);
        tasks[i + 1] = texts[i];
    }
    progress shown = progress_new(stderr, "cases timed", cases->count);
    shown.uncounted = 1; /* the roof */
    worker_plan plan = {.arguments = s->arguments,
                        .tasks = tasks,
                        .count = cases->count + 1,
                        .jobs = 1,
                        .timeout_s = s->timeout_s + (own->verdicts ? s->again_s : 0),
                        .deliver = deliver,
                        .give_up = give_up,
                        .context = own,
                        .progress = &shown};
    bool ok = worker_run(&plan, e);
    free(tasks);
    free(texts);
    return ok;
}

bool bench_run(const bench_settings *s, const device_facts *f, const bench_list *cases,
               const bench_listener *listener, err *e) {
    other_verdict *verdicts = NULL;
    if (!compile_kernels(s, cases, e) ||
        (bench_count_others(s) > 0 && !(verdicts = bench_check_others(s, cases, e))))
        return false;
    delivery own = {s, cases, f, verdicts, listener};
    bool ok = time_cases(s, cases, &own, e);
    free(verdicts);
    return ok;
}
