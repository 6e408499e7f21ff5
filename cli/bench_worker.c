/* bench_worker: the side of bench.h that times. */
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_wire.h"
#include "harness/base/os.h"
#include "harness/base/worker.h"
#include "harness/device/source_hash.h"
#include "harness/measure/subject.h"

enum {
    COMPARED_LEAST = 61,
    COMPARED_MOST = 2000
}; /* samples, where a verdict is to come of them */

#define WINDOW_S 5.0 /* a roof older than this is another window */
#define ROOF_S 0.05  /* for each of its parts */

typedef struct {
    const bench_settings *settings;
    library *lib, *base_lib;
    roof *roof;
    /* The window that was measured last. */
    roof_window window;
    size_t window_bytes;
    timing_cache window_cache;
    uint64_t window_ns;
} server;

/* One side of a case: ours, or that of the base. */
typedef struct {
    kernel_case built;
    subject *subject;
    timing_result result;
    char hash[SOURCE_HASH_SIZE];
} side;

static bool find_roof(server *s, err *e) {
    if (!s->roof)
        s->roof = roof_new(s->lib, fmin(ROOF_S, s->settings->budget_s), e);
    return s->roof != NULL;
}

static bool find_window(server *s, size_t bytes, timing_cache cache, err *e) {
    bool is_same = s->window_ns && s->window_bytes == bytes && s->window_cache == cache;
    if (is_same && (double)(os_now_ns() - s->window_ns) * 1e-9 < WINDOW_S)
        return true;
    if (!roof_measure(s->roof, bytes, cache, &s->window, e))
        return false;
    s->window_bytes = bytes;
    s->window_cache = cache;
    s->window_ns = os_now_ns();
    return true;
}

/* The base works on our buffers, whose contents are the same: two sets would lie differently in the
 * caches, and that is seen as a difference of kernels. */
static void share_buffers(const tape *ours, tape *base) {
    for (size_t i = 0; i < ours->count && i < base->count; i++)
        for (int j = 0; j < LAUNCH_BUFFERS; j++)
            if (ours->launches[i].args[j].kind == BIND_BUFFER)
                base->launches[i].args[j].at = ours->launches[i].args[j].at;
}

/* `first` is NULL, or the side that this one is timed in turns with. */
static bool side_open(side *x, server *s, library *lib, const bench_case *c, const side *first,
                      err *e) {
    subject_options o = {.regime = c->regime,
                         .cache = c->cache,
                         .cache_bytes = roof_get_facts(s->roof)->cache_bytes,
                         .sample_s = TIMING_SAMPLE_S,
                         .unordered = c->test.op->unordered};
    char path[PATH_MAX];
    if (c->cache == TIMING_COLD && !(o.scrub = roof_get_scrub(s->roof, e)))
        return false;
    if (!case_open(&x->built, lib, c->test.op, c->test.kernel, &c->test.shape, c->test.inputs,
                   s->settings->seed, e))
        return false;
    if (first) {
        share_buffers(first->built.tape, x->built.tape);
        o.repeats = subject_get_repeats(first->subject);
    }
    const char *file = library_get_file(lib, x->built.tape->launches[0].pipeline);
    snprintf(path, sizeof path, "%s/%s", library_get_folder(lib), file);
    return source_hash_find(path, x->hash, e) && (x->subject = subject_new(x->built.tape, &o, e)) &&
           subject_check(x->subject, e);
}

static void side_close(side *x) {
    subject_free(x->subject);
    if (x->built.tape)
        case_close(&x->built);
    timing_result_free(&x->result);
}

/* Checked, timed in turns, checked again. */
static bool time_sides(server *s, const bench_case *c, side *sides, size_t count, err *e) {
    timing_source sources[2];
    timing_result timed[2] = {{0}};
    timing_plan plan = timing_plan_new();
    plan.budget_s = s->settings->budget_s;
    if (count > 1) {
        plan.min_samples = COMPARED_LEAST;
        plan.max_samples = COMPARED_MOST;
    }
    for (size_t i = 0; i < count; i++) {
        if (!side_open(&sides[i], s, i == 0 ? s->lib : s->base_lib, c, i == 0 ? NULL : &sides[0],
                       e))
            return false;
        sources[i] = subject_get_source(sides[i].subject);
    }
    bool ok = find_window(s, subject_get_working_set(sides[0].subject), c->cache, e) &&
              timing_run(&plan, sources, count, timed, e);
    for (size_t i = 0; i < count; i++) {
        sides[i].result = timed[i];
        ok = ok && subject_check(sides[i].subject, e);
    }
    return ok;
}

static void fill_row(const server *s, const side *x, result_row *r) {
    const tape *t = x->built.tape;
    r->gpu = timing_compute_stats(&x->result, CLOCK_GPU);
    r->encode_ns = timing_compute_stats(&x->result, CLOCK_ENCODE).median;
    r->wall_ns = timing_compute_stats(&x->result, CLOCK_WALL).median;
    r->repeats = subject_get_repeats(x->subject);
    r->copies = subject_get_copies(x->subject);
    r->bytes = tape_sum_bytes(t);
    r->flops = tape_sum_flops(t);
    r->gb_s = (double)r->bytes / r->gpu.median;
    r->gflop_s = (double)r->flops / r->gpu.median;
    r->roof_gb_s = s->window.best_gb_s;
    r->pct_roof = 100 * r->gb_s / r->roof_gb_s;
    r->launch_ns = s->window.launch_ns;
    r->submit_ns = s->window.submit_ns;
    snprintf(r->stop, sizeof r->stop, "%s", timing_get_stop_name(x->result.stop));
    unsigned labels = x->result.labels |
                      timing_find_labels(device_get_facts(library_get_device(s->lib))) |
                      (r->pct_roof > 100 ? LABEL_ABOVE_ROOF : 0);
    timing_get_labels(labels, r->label, sizeof r->label);
    snprintf(r->hash, sizeof r->hash, "%s", x->hash);
}

static void *time_case(server *s, const char *name, size_t *bytes, bool *retire) {
    wire_answer a = {.made = false};
    bench_case c;
    side sides[2] = {{.subject = NULL}};
    size_t count = s->base_lib ? 2 : 1;
    a.made = bench_cases_parse(name, &c, &a.error) && find_roof(s, &a.error) &&
             time_sides(s, &c, sides, count, &a.error);
    if (a.made) {
        fill_row(s, &sides[0], &a.row);
        a.base_count = sides[1].result.count;
        snprintf(a.base_hash, sizeof a.base_hash, "%s", sides[1].hash);
    }
    a.skipped = !a.made && sides[0].built.tape && !device_can_play(sides[0].built.tape, NULL);
    *retire = !a.made; /* a kernel that is wrong may have written anywhere */
    void *all = wire_pack(&a, sides[0].result.samples, sides[1].result.samples, bytes);
    for (size_t i = count; i-- > 0;)
        side_close(&sides[i]);
    return all;
}

static void *run_task(void *context, const char *task, size_t *bytes, bool *retire) {
    server *s = context;
    if (strcmp(task, WIRE_ROOF) != 0)
        return time_case(s, task, bytes, retire);
    wire_answer a = {.made = false};
    a.made = find_roof(s, &a.error);
    if (a.made)
        a.roof = *roof_get_facts(s->roof);
    return wire_pack(&a, NULL, NULL, bytes);
}

exit_code bench_serve(const bench_settings *s, err *e) {
    server own = {.settings = s};
    device *d = device_open_with(s->device, &(device_options){.math = s->math}, e);
    bool ok = d && (own.lib = library_new(d, NULL, e)) &&
              (!s->base_folder || (own.base_lib = library_new(d, s->base_folder, e))) &&
              worker_serve(run_task, &own, e);
    roof_free(own.roof);
    library_free(own.base_lib);
    library_free(own.lib);
    device_close(d);
    return ok ? EXIT_OK : e->code;
}
