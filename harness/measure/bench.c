/* bench: see bench.h. The side that hands out cases. */
#include "bench.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_wire.h"
#include "harness/base/worker.h"

/* The wire ---------------------------------------------------------------------------------- */

void *wire_pack(const wire_answer *a, const timing_sample *samples, const timing_sample *base,
                size_t *bytes) {
    size_t count = a->row.gpu.count, each = sizeof *samples;
    *bytes = sizeof *a + (count + a->base_count) * each;
    char *all = malloc(*bytes);
    assert(all);
    memcpy(all, a, sizeof *a);
    if (count > 0)
        memcpy(all + sizeof *a, samples, count * each);
    if (a->base_count > 0)
        memcpy(all + sizeof *a + count * each, base, a->base_count * each);
    return all;
}

static timing_sample *copy_samples(const char *from, size_t count) {
    timing_sample *all = calloc(count + 1, sizeof *all);
    assert(all);
    memcpy(all, from, count * sizeof *all);
    return all;
}

bool wire_unpack(const void *data, size_t bytes, wire_answer *a, timing_sample **samples,
                 timing_sample **base) {
    size_t each = sizeof **samples;
    if (bytes < sizeof *a)
        return false;
    memcpy(a, data, sizeof *a);
    size_t left = bytes - sizeof *a, count = a->row.gpu.count;
    if (left % each != 0 || count > left / each || a->base_count != left / each - count)
        return false;
    const char *at = (const char *)data + sizeof *a;
    *samples = copy_samples(at, count);
    *base = copy_samples(at + count * each, a->base_count);
    return true;
}

void bench_outcome_free(bench_outcome *o) {
    free(o->samples);
    free(o->base_samples);
    *o = (bench_outcome){.base_count = 0};
}

/* Handing out ------------------------------------------------------------------------------- */

typedef struct {
    const bench_list *cases;
    const device_facts *facts;
    const bench_listener *listener;
} delivery;

/* A case that was not timed, and why. */
static result_row make_untimed(const bench_case *c, const device_facts *f, const char *why) {
    result_row r = result_row_new();
    snprintf(r.name, sizeof r.name, "%s", c->name);
    snprintf(r.device, sizeof r.device, "%s", f->name);
    snprintf(r.api, sizeof r.api, "%s", f->api);
    snprintf(r.op, sizeof r.op, "%s", c->timed.op->name);
    snprintf(r.kernel, sizeof r.kernel, "%s", c->timed.kernel->name);
    shape_get_text(&c->timed.shape, r.shape, sizeof r.shape);
    snprintf(r.math, sizeof r.math, "%s", math_mode_get_name(f->math));
    snprintf(r.input, sizeof r.input, "%s", distribution_get_name(c->timed.inputs));
    snprintf(r.regime, sizeof r.regime, "%s", timing_get_regime_name(c->regime));
    snprintf(r.cache, sizeof r.cache, "%s", timing_get_cache_name(c->cache));
    snprintf(r.message, sizeof r.message, "%s", why);
    return r;
}

/* NULL if the worker's answer holds, else why not. */
static const char *find_failure(const worker_outcome *o, wire_answer *a, bench_outcome *out) {
    if (o->failure[0])
        return o->failure;
    if (!wire_unpack(o->answer, o->bytes, a, &out->samples, &out->base_samples))
        return WORKER_OTHER_BUILD;
    return a->made ? NULL : a->error.text;
}

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    delivery *s = context;
    static wire_answer a;
    bench_outcome out = {.base_count = 0};
    const char *failure = find_failure(o, &a, &out);
    bool ok;
    if (task == 0 && failure) {
        bool is_answered = failure == a.error.text;
        ok = err_set(e, is_answered ? a.error.code : EXIT_CANNOT,
                     "the roof cannot be measured, so nothing is timed: %.180s", failure);
        if (is_answered)
            err_set_detail(e, a.error.detail);
    } else if (task == 0)
        ok = s->listener->start(s->listener->context, &a.roof, e);
    else {
        const bench_case *c = &s->cases->items[task - 1];
        if (!failure) {
            out.row = a.row;
            out.base_count = a.base_count;
            snprintf(out.base_hash, sizeof out.base_hash, "%s", a.base_hash);
        } else {
            out.row = make_untimed(c, s->facts, failure);
            out.skipped = failure == a.error.text && a.skipped;
        }
        ok = s->listener->deliver(s->listener->context, c, &out, e);
    }
    bench_outcome_free(&out);
    return ok;
}

bool bench_run(const bench_settings *s, const device_facts *f, const bench_list *cases,
               const bench_listener *listener, err *e) {
    const char **names = calloc(cases->count + 1, sizeof *names);
    assert(names);
    names[0] = WIRE_ROOF;
    for (size_t i = 0; i < cases->count; i++)
        names[i + 1] = cases->items[i].name;
    delivery own = {.cases = cases, .facts = f, .listener = listener};
    progress shown = progress_new(stderr, "cases timed", cases->count);
    shown.uncounted = 1; /* the roof */
    char seed[32], budget[32], effect[32], again[32], compared[32];
    snprintf(seed, sizeof seed, "%" PRIu64, s->seed);
    snprintf(budget, sizeof budget, "%g", s->budget_s);
    snprintf(effect, sizeof effect, "%g", s->min_effect);
    snprintf(again, sizeof again, "%g", s->again_s);
    snprintf(compared, sizeof compared, "%zu", cases->count);
    const char *arguments[] = {"bench",
                               "--worker",
                               "--device",
                               f->spec,
                               "--seed",
                               seed,
                               "--budget",
                               budget,
                               "--math",
                               math_mode_get_name(s->math),
                               "--min-effect",
                               effect,
                               "--again",
                               again,
                               "--compared",
                               compared,
                               s->base_folder ? "--baseline" : NULL,
                               s->base_folder,
                               NULL};
    worker_plan plan = {.arguments = arguments,
                        .tasks = names,
                        .count = cases->count + 1,
                        .jobs = 1,
                        .timeout_s = s->timeout_s + (s->base_folder ? s->again_s : 0),
                        .deliver = deliver,
                        .context = &own,
                        .progress = &shown};
    bool ok = worker_run(&plan, e);
    free(names);
    return ok;
}
