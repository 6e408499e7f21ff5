#include "meter.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/size.h"

enum { SIZES = 40 };
#define NO_ROOF_CACHE ((size_t)64 << 10)

struct meter {
    library *lib;
    const roof_kernels *kernels;
    meter_options options;
    roof *roof;
    /* Windows by cache state and by the size of the working set, as a power of 2. */
    struct {
        roof_window window;
        uint64_t at_ns; /* 0: not measured */
    } windows[TIMING_CACHES][SIZES];
};

meter *meter_new(library *lib, const roof_kernels *k, const meter_options *o) {
    meter *m = array_new(1, sizeof *m);
    m->lib = lib;
    m->kernels = k;
    m->options = *o;
    m->options.plan.on_cpu = device_get_facts(library_get_device(lib))->emulated;
    return m;
}

void meter_free(meter *m) {
    if (!m)
        return;
    roof_free(m->roof);
    free(m);
}

/* The roof ---------------------------------------------------------------------------------- */

bool meter_find_roof(meter *m, roof **out, err *e) {
    if (m->options.roof_s > 0 && !m->roof &&
        !(m->roof = roof_new(m->lib, m->kernels, m->options.roof_s, e)))
        return false;
    *out = m->roof;
    return true;
}

bool meter_find_cache(meter *m, size_t *bytes, err *e) {
    roof *r;
    if (!meter_find_roof(m, &r, e))
        return false;
    *bytes = r ? roof_get_facts(r)->cache_bytes : NO_ROOF_CACHE;
    return true;
}

/* Working sets within a factor of 2 share a window, until it is older than window_s. */
static bool find_window(meter *m, size_t bytes, timing_cache cache, double window_s,
                        roof_window *out, err *e) {
    size_t size = 0;
    roof *r;
    *out = (roof_window){0};
    if (!meter_find_roof(m, &r, e))
        return false;
    if (!r)
        return true;
    while (cache == TIMING_WARM && size + 1 < SIZES && (size_t)1 << size < bytes)
        size++;
    uint64_t *at_ns = &m->windows[cache][size].at_ns;
    roof_window *window = &m->windows[cache][size].window;
    if (!*at_ns || (double)(os_now_ns() - *at_ns) * 1e-9 > window_s) {
        if (!roof_measure(r, bytes, cache, window, e))
            return false;
        *at_ns = os_now_ns();
    }
    *out = *window;
    return true;
}

/* Timing ------------------------------------------------------------------------------------ */

bool measurement_open(measurement *x, library *lib, const kernel_case *c, uint64_t seed,
                      timing_regime regime, timing_cache cache, err *e) {
    x->regime = regime;
    x->cache = cache;
    x->built = *c;
    if (!case_open(&x->built, lib, seed, e))
        return false;
    snprintf(x->key, sizeof x->key, "%s/%s/%s", c->name, timing_get_regime_name(regime),
             timing_get_cache_name(cache));
    x->tape = x->built.tape;
    return true;
}

void measurement_close(measurement *x) {
    subject_free(x->subject);
    case_close(&x->built);
    timing_result_free(&x->result);
}

static bool open_subject(meter *m, measurement *x, err *e) {
    roof *r = NULL;
    subject_options o = {.regime = x->regime,
                         .cache = x->cache,
                         .sample_s = m->options.sample_s,
                         .varies = true,
                         .fresh = m->options.fresh,
                         .like = x->like ? x->like->subject : NULL,
                         .unordered = x->built.op && x->built.op->unordered};
    if (x->like)
        o.repeats = subject_get_facts(x->like->subject).repeats;
    if (!meter_find_cache(m, &o.cache_bytes, e) || !meter_find_roof(m, &r, e) ||
        (x->cache == TIMING_COLD && r && !(o.scrub = roof_get_scrub(r, e))))
        return false;
    return (x->subject = subject_new(x->tape, &o, e)) && subject_check(x->subject, e) &&
           find_window(m, subject_get_facts(x->subject).set_bytes, x->cache, m->options.window_s,
                       &x->window, e);
}

/* A kernel that does less than the work that is counted is faster than memory allows. An honest one
 * may be somewhat faster than the plain kernels that the roof is measured with; on a CPU, whose
 * compiler makes better loops of some kernels than of others, 3 times as fast was seen. The roof may
 * be of a slower moment, so it is measured again first. Arithmetic is not judged: matrix units do
 * many times as much as plain multiply-adds. */
static bool check_roof(meter *m, measurement *x, err *e) {
    const device_facts *f = device_get_facts(library_get_device(m->lib));
    double margin = f->emulated || f->is_virtual ? 10 : 1.25;
    double ns = timing_compute_stats(&x->result, CLOCK_GPU).median;
    double gb_s = (double)tape_sum_bytes(x->tape) / ns;
    roof_window now;
    if (f->validates || !(ns > 0) || !(x->window.best_gb_s > 0) ||
        gb_s <= margin * x->window.best_gb_s)
        return true;
    if (!find_window(m, subject_get_facts(x->subject).set_bytes, x->cache, 0, &now, e))
        return false;
    if (now.best_gb_s > x->window.best_gb_s)
        x->window = now;
    return gb_s <= margin * x->window.best_gb_s ||
           err_set(e, EXIT_WRONG,
                   "%.90s: %.4g GB/s is not possible where the fastest plain read, copy or triad "
                   "has %.4g: it does not move all the bytes that are counted",
                   x->key, gb_s, x->window.best_gb_s);
}

/* Labels add up; why sampling ended is what the last round says. */
static void append(timing_result *all, timing_result *more) {
    size_t count = all->count + more->count;
    all->samples = realloc(all->samples, size_multiply(count + 1, sizeof *all->samples));
    assert(all->samples);
    for (size_t i = 0; i < more->count; i++)
        all->samples[all->count + i] = more->samples[i];
    all->count = count;
    all->discarded += more->discarded;
    all->stop = more->stop;
    all->labels |= more->labels;
    timing_result_free(more);
}

static bool time_all(meter *m, timing_plan plan, measurement *items, size_t count, err *e) {
    timing_source *sources = array_new(count, sizeof *sources);
    timing_result *taken = array_new(count, sizeof *taken);
    for (size_t i = 0; i < count; i++) {
        measurement *x = &items[i];
        sources[i] = x->tape ? subject_get_source(x->subject) : x->source;
        if (x->samples > plan.min_samples)
            plan.min_samples = x->samples;
    }
    if (plan.max_samples < plan.min_samples)
        plan.max_samples = plan.min_samples;
    bool ok = timing_run(&plan, sources, count, taken, e);
    for (size_t i = 0; i < count; i++) {
        append(&items[i].result, &taken[i]);
        /* Things that are compared work on the same buffers: what one left, another has replaced. With
         * fresh inputs the first is known to be right. */
        const bool is_last = count == 1 || (m->options.fresh && items[i].like);
        ok = ok && (!items[i].tape || ((is_last ? subject_check_last(items[i].subject, e)
                                                : subject_check(items[i].subject, e)) &&
                                       check_roof(m, &items[i], e)));
    }
    free(sources);
    free(taken);
    return ok;
}

bool meter_time(meter *m, measurement *items, size_t count, err *e) {
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++)
        ok = !items[i].tape || open_subject(m, &items[i], e);
    return ok && time_all(m, m->options.plan, items, count, e);
}

bool meter_time_again(meter *m, measurement *items, size_t count, double seconds, err *e) {
    timing_plan plan = m->options.plan;
    plan.budget_s = seconds / (double)count;
    plan.target /= 4; /* steady by the rule of one kernel was not enough */
    return time_all(m, plan, items, count, e);
}

/* Rows -------------------------------------------------------------------------------------- */

static void fill_case(const kernel_case *c, result_row *r) {
    int at = op_find_batch_dim(c->op);
    snprintf(r->op, sizeof r->op, "%s", c->op->name);
    snprintf(r->kernel, sizeof r->kernel, "%s", c->kernel->name);
    snprintf(r->variant, sizeof r->variant, "%s", c->kernel->variant ? c->kernel->variant : "");
    shape_get_text(&c->shape, r->shape, sizeof r->shape);
    snprintf(r->input, sizeof r->input, "%s", distribution_get_name(c->inputs));
    r->batch = at < 0 || !c->shape.dim[at] ? NAN : (double)c->shape.dim[at];
}

static void fill_work(const measurement *x, result_row *r, unsigned *labels) {
    snprintf(r->regime, sizeof r->regime, "%s", timing_get_regime_name(x->regime));
    snprintf(r->cache, sizeof r->cache, "%s", timing_get_cache_name(x->cache));
    r->repeats = (double)subject_get_facts(x->subject).repeats;
    r->copies = (double)subject_get_facts(x->subject).copies;
    r->bytes = (double)tape_sum_bytes(x->tape);
    r->flops = (double)tape_sum_flops(x->tape);
    r->gb_s = r->bytes / r->gpu.median;
    r->gflop_s = r->flops / r->gpu.median;
    if (!(x->window.best_gb_s > 0))
        return;
    r->roof_gb_s = x->window.best_gb_s;
    r->roof_gflop_s = x->window.gflop_s;
    r->pct_roof = 100 * fmax(r->gb_s / r->roof_gb_s, r->gflop_s / r->roof_gflop_s);
    r->launch_ns = x->window.launch_ns;
    r->submit_ns = x->window.submit_ns;
    *labels |= r->pct_roof > 100 ? LABEL_ABOVE_ROOF : 0;
}

bool meter_fill_row(const meter *m, const measurement *x, result_row *r, err *e) {
    const device_facts *f = device_get_facts(library_get_device(m->lib));
    unsigned labels = x->result.labels | timing_find_labels(f);
    *r = result_row_new();
    snprintf(r->name, sizeof r->name, "%s", x->key);
    snprintf(r->device, sizeof r->device, "%s", f->name);
    snprintf(r->api, sizeof r->api, "%s", f->api);
    snprintf(r->math, sizeof r->math, "%s", math_mode_get_name(f->math));
    r->gpu = timing_compute_stats(&x->result, CLOCK_GPU);
    r->wall = timing_compute_stats(&x->result, CLOCK_WALL);
    r->encode_ns = timing_compute_stats(&x->result, CLOCK_ENCODE).median;
    if (x->built.op)
        fill_case(&x->built, r);
    if (x->tape)
        fill_work(x, r, &labels);
    snprintf(r->stop, sizeof r->stop, "%s", timing_get_stop_name(x->result.stop));
    timing_get_labels(labels, r->labels, sizeof r->labels);
    return !x->tape || made_of_add_tape(r->made_of, x->tape, x->built.op, e);
}
