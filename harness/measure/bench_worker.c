/* bench_worker: the side of bench.h that times. */
#include <math.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_base.h"
#include "bench_wire.h"
#include "harness/base/worker.h"
#include "harness/check/check.h"
#include "verdict.h"

/* Answers ------------------------------------------------------------------------------------------ */

void *wire_pack(const wire_answer *a, const timing_sample *const *samples, size_t *bytes) {
    *bytes = sizeof *a;
    for (size_t i = 0; i < a->sides; i++)
        *bytes += a->rows[i].gpu.count * sizeof **samples;
    char *all = malloc(*bytes), *at = all + sizeof *a;
    assert(all);
    memcpy(all, a, sizeof *a);
    for (size_t i = 0; i < a->sides; i++) {
        size_t size = a->rows[i].gpu.count * sizeof **samples;
        if (size > 0)
            memcpy(at, samples[i], size);
        at += size;
    }
    return all;
}

bool wire_unpack(const void *data, size_t bytes, wire_answer *a, timing_sample **samples) {
    if (bytes < sizeof *a)
        return false;
    memcpy(a, data, sizeof *a);
    size_t left = bytes - sizeof *a, each = sizeof **samples;
    bool ok = a->sides <= WIRE_SIDES;
    for (size_t i = 0; ok && i < a->sides; left -= a->rows[i++].gpu.count * each)
        ok = a->rows[i].gpu.count <= left / each;
    if (!ok || left > 0)
        return false;
    const char *at = (const char *)data + sizeof *a;
    for (size_t i = 0; i < a->sides; i++) {
        size_t count = a->rows[i].gpu.count;
        samples[i] = calloc(count + 1, each);
        assert(samples[i]);
        memcpy(samples[i], at, count * each);
        at += count * each;
    }
    return true;
}

/* Samples, where a verdict depends on them. */
enum { COMPARED_LEAST = 61, COMPARED_MOST = 2000 };

#define WINDOW_S 5.0 /* a roof older than this is measured again */
#define ROOF_S 0.05  /* for each of its parts */

typedef struct {
    const bench_settings *settings;
    bench_finder *find;
    const bench_base *base;
    library *lib, *base_lib;
    library *rival_libs[BENCH_OTHERS];
    kernel rival_kernels[BENCH_OTHERS]; /* as rows name them */
    meter *meter;
} server;

/* A case and what is timed with it: sides[0] is ours. */
typedef struct {
    bench_case timed;
    measurement sides[WIRE_SIDES];
    rival_problem problems[WIRE_SIDES];
    size_t count;
} contest;

static meter *new_meter(const server *s, const roof_kernels *k) {
    meter_options o = {.plan = timing_plan_new(),
                       .sample_s = TIMING_SAMPLE_S,
                       .roof_s = fmin(ROOF_S, s->settings->budget_s),
                       .window_s = WINDOW_S};
    o.plan.budget_s = s->settings->budget_s;
    if (s->base_lib || s->settings->rival_count > 0) {
        o.plan.min_samples = COMPARED_LEAST;
        o.plan.max_samples = COMPARED_MOST;
    }
    return meter_new(s->lib, k, &o);
}

static bool open_base(server *s, contest *c, err *e) {
    measurement *ours = &c->sides[0], *base = &c->sides[c->count];
    kernel_case found;
    if (!bench_base_find(s->base, s->base_lib, &c->timed.timed, &found, e))
        return false;
    c->count++;
    if (!measurement_open(base, s->base_lib, &found, s->settings->seed, c->timed.regime,
                          c->timed.cache, e))
        return false;
    base->like = ours;
    return bench_base_share_buffers(ours->tape, base->tape, e);
}

/* The rival works on our buffers too. */
static bool open_rival(server *s, contest *c, size_t number, err *e) {
    measurement *ours = &c->sides[0], *x = &c->sides[c->count];
    rival_problem *p = &c->problems[c->count++];
    *x = (measurement){.regime = ours->regime, .cache = ours->cache, .like = ours};
    kernel_case made = case_new(c->timed.timed.op, &s->rival_kernels[number], &c->timed.timed.shape,
                                c->timed.timed.inputs);
    snprintf(x->key, sizeof x->key, "%s/%s/%s", made.name, timing_get_regime_name(x->regime),
             timing_get_cache_name(x->cache));
    made.tape = x->tape = tape_new(s->rival_libs[number]);
    x->built = made;
    return rival_record(&s->settings->rivals[number], &ours->built, x->tape, p, e);
}

static bool open_ours(server *s, contest *c, const char *name, err *e) {
    *c = (contest){.count = 1};
    return s->find(name, &c->timed, e) &&
           measurement_open(&c->sides[0], s->lib, &c->timed.timed, s->settings->seed,
                            c->timed.regime, c->timed.cache, e);
}

static void close_contest(contest *c) {
    for (size_t i = c->count; i-- > 0;)
        measurement_close(&c->sides[i]);
}

static bool open_other(server *s, contest *c, size_t number, err *e) {
    return s->base_lib ? open_base(s, c, e) : open_rival(s, c, number, e);
}

static bool open_others(server *s, contest *c, uint32_t mask, err *e) {
    for (size_t i = 0; i < bench_count_others(s->settings); i++)
        if (mask >> i & 1 && !open_other(s, c, i, e))
            return false;
    return true;
}

/* Is there a verdict, also if it is held against those of all other cases? */
static bool is_decided(const server *s, const measurement *ours, const measurement *base) {
    double *now = timing_list_clock(&ours->result, CLOCK_GPU),
           *was = timing_list_clock(&base->result, CLOCK_GPU);
    verdict_case c = {.base = was,
                      .now = now,
                      .base_count = base->result.count,
                      .now_count = ours->result.count,
                      .paired = true,
                      .looks = BENCH_LOOKS};
    verdict_decide(&c, 1, s->settings->min_effect / 100, s->settings->seed);
    free(now);
    free(was);
    return c.verdict == VERDICT_SAME ||
           (c.verdict != VERDICT_AMBIGUOUS &&
            c.p * (double)s->settings->compared < VERDICT_LEVEL / (double)BENCH_LOOKS);
}

static bool are_decided(const server *s, const contest *c) {
    for (size_t i = 1; i < c->count; i++)
        if (!is_decided(s, &c->sides[0], &c->sides[i]))
            return false;
    return true;
}

/* A case that is ambiguous is timed again until it is not, or until its time is up. */
static bool decide(server *s, contest *c, err *e) {
    bool ok = true;
    for (int look = 1; ok && look < BENCH_LOOKS && !are_decided(s, c); look++)
        ok = meter_time_again(s->meter, c->sides, c->count,
                              s->settings->again_s / (BENCH_LOOKS - 1), e);
    return ok;
}

static bool time_contest(server *s, contest *c, uint32_t mask, const char *name, err *e) {
    return open_ours(s, c, name, e) && open_others(s, c, mask, e) &&
           meter_time(s->meter, c->sides, c->count, e) && decide(s, c, e);
}

/* Then nothing more can be timed in this process. */
static bool is_lost(const server *s) {
    return device_is_lost(library_get_device(s->lib));
}

/* Another may be right alone and wrong when it is run many times: then ours is timed without, and the
 * error is about the others. */
static void *time_case(server *s, uint32_t mask, const char *name, size_t *bytes, bool *retire) {
    static wire_answer a;
    static contest c;
    err alone;
    const timing_sample *samples[WIRE_SIDES];
    a = (wire_answer){.made = false};
    a.made = time_contest(s, &c, mask, name, &a.error);
    *retire = !a.made; /* a kernel that is wrong may have written anywhere */
    if (!a.made && mask && a.error.code == EXIT_WRONG && !is_lost(s)) {
        close_contest(&c);
        a.made = time_contest(s, &c, 0, name, &alone);
        if (!a.made)
            a.error = alone;
    }
    for (size_t i = 0; a.made && i < c.count; i++) {
        samples[i] = c.sides[i].result.samples;
        a.made = meter_fill_row(s->meter, &c.sides[i], &a.rows[i], &a.error);
    }
    a.skipped = !a.made && c.sides[0].tape && !device_can_play(c.sides[0].tape, NULL);
    a.uncompiled = !a.made && library_has_failed(s->lib);
    *retire = *retire || !a.made;
    if (!a.made)
        device_tell_loss(library_get_device(s->lib), &a.error);
    a.sides = a.made ? c.count : 0;
    void *all = wire_pack(&a, samples, bytes);
    close_contest(&c);
    return all;
}

/* The base or a rival on the inputs of a case, against the oracle. What cannot be launched on them, but
 * compiles, is not for the case. */
static void *check_other(server *s, size_t number, const char *name, size_t *bytes, bool *retire) {
    static wire_answer a;
    static contest c;
    check_result result = {.verdict = CHECK_PASS};
    a = (wire_answer){.made = false};
    if (!open_ours(s, &c, name, &a.error))
        a.skipped = a.error.code == EXIT_CANNOT;
    else if (open_other(s, &c, number, &a.error)) {
        const check_options o = {.unordered = c.timed.timed.op->unordered};
        a.skipped = !device_can_play(c.sides[1].tape, &a.error);
        a.made = !a.skipped && check_tape(c.sides[1].tape, &o, &result, &a.error);
    } else
        a.skipped = s->base_lib ? s->base->error.code == EXIT_OK && !library_has_failed(s->base_lib)
                                : a.error.code == EXIT_CANNOT;
    if (a.made && result.verdict != CHECK_PASS)
        a.made = err_set(&a.error, EXIT_WRONG, "%.250s", result.message);
    *retire = is_lost(s) || (!a.made && !a.skipped);
    if (!a.made)
        device_tell_loss(library_get_device(s->lib), &a.error);
    close_contest(&c);
    return wire_pack(&a, NULL, bytes);
}

/* Errors are those of the case, which tells them when it is timed. */
static void prepare_case(const server *s, const char *name) {
    bench_case c;
    kernel_case base;
    err ignored;
    if (!s->find(name, &c, &ignored))
        return;
    bool has_base = s->base_lib && bench_base_find(s->base, s->base_lib, &c.timed, &base, &ignored);
    case_open(&c.timed, s->lib, s->settings->seed, &ignored);
    case_close(&c.timed);
    if (!has_base)
        return;
    case_open(&base, s->base_lib, s->settings->seed, &ignored);
    case_close(&base);
}

static void *run_task(void *context, const char *task, size_t *bytes, bool *retire) {
    server *s = context;
    roof *r = NULL;
    unsigned number;
    int used = 0;
    *bytes = 0;
    if (strncmp(task, WIRE_PREPARE, strlen(WIRE_PREPARE)) == 0) {
        prepare_case(s, task + strlen(WIRE_PREPARE));
        return NULL;
    }
    if (sscanf(task, "check:%u:%n", &number, &used) == 1 && used > 0)
        return check_other(s, number, task + used, bytes, retire);
    if (sscanf(task, "%x:%n", &number, &used) == 1 && used > 0)
        return time_case(s, number, task + used, bytes, retire);
    static wire_answer a;
    a = (wire_answer){.made = false};
    a.made = meter_find_roof(s->meter, &r, &a.error);
    if (a.made)
        a.roof = *roof_get_facts(r);
    *retire = !a.made;
    return wire_pack(&a, NULL, bytes);
}

static bool open_rivals(server *s, device *d, err *e) {
    for (size_t i = 0; i < s->settings->rival_count; i++) {
        s->rival_kernels[i] = (kernel){.name = s->settings->rivals[i].name, .variant = BENCH_RIVAL};
        if (!(s->rival_libs[i] = rival_new_library(&s->settings->rivals[i], d, e)))
            return false;
    }
    return true;
}

static bool open_base_library(server *s, device *d, err *e) {
    if (!s->settings->base_folder)
        return true;
    s->base_lib = s->base->sources ? library_new_of(d, s->base->sources, e)
                                   : library_new(d, s->settings->base_folder, e);
    return s->base_lib != NULL;
}

exit_code bench_serve(const bench_settings *s, bench_finder *find, const bench_base *base,
                      const roof_kernels *k, err *e) {
    server own = {.settings = s, .find = find, .base = base};
    device *d = device_open_with(s->device, &(device_options){.cpu_clock = true}, e);
    bool ok = d && (own.lib = library_new(d, NULL, e)) && open_base_library(&own, d, e) &&
              open_rivals(&own, d, e) && (own.meter = new_meter(&own, k)) &&
              worker_serve(run_task, &own, e);
    meter_free(own.meter);
    for (size_t i = 0; i < s->rival_count; i++)
        library_free(own.rival_libs[i]);
    library_free(own.base_lib);
    library_free(own.lib);
    device_close(d);
    return ok ? EXIT_OK : e->code;
}
