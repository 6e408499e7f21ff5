/* bench_worker: the side of bench.h that times. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_wire.h"
#include "harness/base/worker.h"
#include "verdict.h"

/* Samples, where a verdict depends on them. */
enum { COMPARED_LEAST = 61, COMPARED_MOST = 2000 };

#define WINDOW_S 5.0 /* a roof older than this is measured again */
#define ROOF_S 0.05  /* for each of its parts */

typedef struct {
    const bench_settings *settings;
    bench_finder *find;
    library *lib, *base_lib;
    meter *meter;
} server;

static meter *new_meter(const server *s, const roof_kernels *k) {
    meter_options o = {.plan = timing_plan_new(),
                       .sample_s = TIMING_SAMPLE_S,
                       .roof_s = fmin(ROOF_S, s->settings->budget_s),
                       .window_s = WINDOW_S};
    o.plan.budget_s = s->settings->budget_s;
    if (s->base_lib) {
        o.plan.min_samples = COMPARED_LEAST;
        o.plan.max_samples = COMPARED_MOST;
    }
    return meter_new(s->lib, k, &o);
}

/* The base works on our buffers, whose contents are the same: a second set would map to the caches
 * differently, and that would look like a difference between kernels. */
static void share_buffers(const tape *ours, tape *base) {
    for (size_t i = 0; i < ours->count && i < base->count; i++)
        for (int j = 0; j < LAUNCH_BUFFERS; j++)
            if (ours->launches[i].args[j].kind == BIND_BUFFER)
                base->launches[i].args[j].at = ours->launches[i].args[j].at;
}

/* sides[0] is ours, sides[1] that of the base. */
static bool time_sides(server *s, const bench_case *c, measurement *sides, size_t count, err *e) {
    for (size_t i = 0; i < count; i++)
        if (!measurement_open(&sides[i], i == 0 ? s->lib : s->base_lib, &c->timed,
                              s->settings->seed, c->regime, c->cache, e))
            return false;
    if (count > 1) {
        share_buffers(sides[0].tape, sides[1].tape);
        sides[1].like = &sides[0];
    }
    return meter_time(s->meter, sides, count, e);
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

/* A case that is ambiguous is timed again until it is not, or until its time is up. */
static bool decide(server *s, measurement *sides, err *e) {
    bool ok = true;
    for (int look = 1; ok && look < BENCH_LOOKS && !is_decided(s, &sides[0], &sides[1]); look++)
        ok = meter_time_again(s->meter, sides, 2, s->settings->again_s / (BENCH_LOOKS - 1), e);
    return ok;
}

static void *time_case(server *s, const char *name, size_t *bytes, bool *retire) {
    wire_answer a = {.made = false};
    bench_case c;
    measurement sides[2] = {{.subject = NULL}};
    size_t count = s->base_lib ? 2 : 1;
    result_row base;
    a.made = s->find(name, &c, &a.error) && time_sides(s, &c, sides, count, &a.error) &&
             (count == 1 || decide(s, sides, &a.error)) &&
             meter_fill_row(s->meter, &sides[0], &a.row, &a.error);
    if (a.made && count > 1) {
        a.made = meter_fill_row(s->meter, &sides[1], &base, &a.error);
        a.base_count = base.gpu.count;
        snprintf(a.base_hash, sizeof a.base_hash, "%s", base.hash);
    }
    a.skipped = !a.made && sides[0].tape && !device_can_play(sides[0].tape, NULL);
    *retire = !a.made; /* a kernel that is wrong may have written anywhere */
    if (!a.made)
        a.row.gpu.count = a.base_count = 0;
    void *all = wire_pack(&a, sides[0].result.samples, sides[1].result.samples, bytes);
    for (size_t i = count; i-- > 0;)
        measurement_close(&sides[i]);
    return all;
}

static void *run_task(void *context, const char *task, size_t *bytes, bool *retire) {
    server *s = context;
    roof *r = NULL;
    if (strcmp(task, WIRE_ROOF) != 0)
        return time_case(s, task, bytes, retire);
    wire_answer a = {.made = false};
    a.made = meter_find_roof(s->meter, &r, &a.error);
    if (a.made)
        a.roof = *roof_get_facts(r);
    return wire_pack(&a, NULL, NULL, bytes);
}

exit_code bench_serve(const bench_settings *s, bench_finder *find, const roof_kernels *k, err *e) {
    server own = {.settings = s, .find = find};
    device *d = device_open_with(s->device, &(device_options){.math = s->math}, e);
    bool ok = d && (own.lib = library_new(d, NULL, e)) &&
              (!s->base_folder || (own.base_lib = library_new(d, s->base_folder, e))) &&
              (own.meter = new_meter(&own, k)) && worker_serve(run_task, &own, e);
    meter_free(own.meter);
    library_free(own.base_lib);
    library_free(own.lib);
    device_close(d);
    return ok ? EXIT_OK : e->code;
}
