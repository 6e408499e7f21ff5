/* timing: see timing.h. Owns when to sample and when to stop. Between the first and the last sample
 * nothing is allocated. */
#include "timing.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/host.h"
#include "harness/base/os.h"
#include "significance.h"

/* Disturbances ------------------------------------------------------------------------------ */

enum {
    ROUNDS = 40000,  /* of a spin loop: about a tenth of a millisecond */
    AT_EACH_END = 4, /* spin loops before the first sample and after the last */
    FEWEST_SPINS = 5,
};

#define FEW_SWITCHES 5   /* involuntary ones that any run may have */
#define MOST_SWITCHES 20 /* per second of CPU time: beside a busy neighbour there are hundreds */
#define MOST_STEAL 0.02  /* of the cores' time */
#define MOST_WAIT 0.05   /* waiting for a core, per second of CPU time */
#define FEW_WAIT_S 0.005 /* that any run may wait */
#define MOST_LOST 1.1    /* wall time of a spin loop over its CPU time */
#define MOST_SLOWER 1.2  /* CPU time of a spin loop over the shortest */
#define MOST_BAD_SPINS 0.2

static disturbance_spin spin(void) {
    static volatile uint64_t sink;
    uint64_t x = sink | 1, start = os_now_ns(), cpu = os_thread_ns();
    for (int i = 0; i < ROUNDS; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
    cpu = os_thread_ns() - cpu;
    return (disturbance_spin){(double)(os_now_ns() - start), (double)cpu};
}

void disturbance_probe(disturbance *d) {
    if (d->count < DISTURBANCE_SPINS)
        d->spins[d->count++] = spin();
}

void disturbance_start(disturbance *d) {
    d->count = 0;
    for (int i = 0; i < AT_EACH_END; i++)
        disturbance_probe(d);
    d->start_ns = os_now_ns();
    d->before = host_get_usage();
}

static bool has_bad_spins(const disturbance_facts *f) {
    double least = INFINITY, bad = 0;
    for (size_t i = 0; i < f->spin_count; i++)
        least = fmin(least, f->spins[i].cpu_ns);
    for (size_t i = 0; i < f->spin_count; i++) {
        const disturbance_spin *s = &f->spins[i];
        bool is_known = s->cpu_ns > 0;
        bad += is_known && (s->wall_ns > MOST_LOST * s->cpu_ns ||
                            (f->on_cpu && s->cpu_ns > MOST_SLOWER * least));
    }
    return f->spin_count >= FEWEST_SPINS && bad > MOST_BAD_SPINS * (double)f->spin_count;
}

bool disturbance_judge(const disturbance_facts *f) {
    return (f->switches > FEW_SWITCHES && f->switches > MOST_SWITCHES * f->cpu_s) ||
           (f->wait_s > FEW_WAIT_S && f->wait_s > MOST_WAIT * f->cpu_s) ||
           f->steal_s > MOST_STEAL * f->seconds * f->cores || has_bad_spins(f);
}

bool disturbance_end(disturbance *d, bool on_cpu) {
    host_usage after = host_get_usage();
    disturbance_facts f = {.seconds = (double)(os_now_ns() - d->start_ns) * 1e-9,
                           .cpu_s = after.cpu_s - d->before.cpu_s,
                           .switches = after.switches - d->before.switches,
                           .wait_s = after.wait_s - d->before.wait_s,
                           .steal_s = after.steal_s - d->before.steal_s,
                           .cores = os_count_cpus(),
                           .on_cpu = on_cpu};
    for (int i = 0; i < AT_EACH_END; i++)
        disturbance_probe(d);
    f.spins = d->spins;
    f.spin_count = d->count;
    return disturbance_judge(&f);
}

/* Sampling ---------------------------------------------------------------------------------- */

enum {
    WINDOW = 5,         /* samples whose medians are compared while warming up */
    PROBE_EVERY = 8,    /* rounds of samples */
    FEWEST_SAMPLES = 5, /* even for something so slow that it exceeds the budget */
};

#define WARM_CHANGE 0.02  /* two successive windows closer than this: warm */
#define TREND_CHANGE 0.03 /* the last third against the first */
#define TREND_LEVEL 1e-3  /* by a rank test, so that noise is no trend */

typedef struct {
    const timing_plan *plan;
    const timing_source *sources;
    timing_result *results;
    size_t count;
    double *room;                 /* max_samples */
    uint64_t start_ns, worked_ns; /* when it began; when the device last ended something */
    disturbance disturbance;
} run;

timing_plan timing_plan_new(void) {
    return (timing_plan){.target = 0.005,
                         .budget_s = 1,
                         .warm_up_s = 0.05,
                         .min_samples = 21,
                         .max_samples = 500,
                         .idle_s = 0.05};
}

static uint64_t now(const run *r) {
    return r->plan->now_ns ? r->plan->now_ns() : os_now_ns();
}

static double find_seconds_since(const run *r, uint64_t then) {
    return (double)(now(r) - then) * 1e-9;
}

static double sort_gpu(run *r, const timing_sample *samples, size_t count) {
    for (size_t i = 0; i < count; i++)
        r->room[i] = samples[i].gpu_ns;
    stats_sort(r->room, count);
    return stats_get_quantile(r->room, count, 0.5);
}

static bool take(run *r, size_t source, timing_sample *out, err *e) {
    const timing_source *s = &r->sources[source];
    bool ok = s->take(s->context, out, e);
    r->worked_ns = now(r);
    return ok;
}

/* Warm-up: until it has lasted long enough and the last two windows agree. */
static bool warm_up(run *r, size_t source, double most_s, err *e) {
    timing_result *t = &r->results[source];
    timing_sample recent[2 * WINDOW];
    uint64_t start = now(r);
    for (size_t i = 0;; i++) {
        if (!take(r, source, &recent[i % (2 * WINDOW)], e))
            return false;
        t->discarded++;
        double spent = find_seconds_since(r, start);
        if (spent >= most_s)
            return true;
        if (spent < r->plan->warm_up_s || (i + 1) % (2 * WINDOW) != 0)
            continue;
        double first = sort_gpu(r, recent, WINDOW);
        if (fabs(sort_gpu(r, recent + WINDOW, WINDOW) / first - 1) < WARM_CHANGE)
            return true;
    }
}

/* After a pause the first samples would be those of a device that has clocked down. */
static bool wake_up(run *r, size_t source, err *e) {
    timing_sample ignored;
    for (int i = 0; i < 2 && find_seconds_since(r, r->worked_ns) > r->plan->idle_s; i++) {
        if (!take(r, source, &ignored, e))
            return false;
        r->results[source].discarded++;
    }
    return true;
}

/* Is the median of a single source steady? Of interleaved sources: is their ratio, even if
 * something slows all of them down together? */
static bool is_steady(run *r, size_t source) {
    const timing_result *t = &r->results[source], *other = &r->results[source == 0 ? 1 : 0];
    for (size_t i = 0; i < t->count; i++)
        r->room[i] =
            r->count == 1 ? t->samples[i].gpu_ns : t->samples[i].gpu_ns / other->samples[i].gpu_ns;
    stats_sort(r->room, t->count);
    return stats_get_median_iqr(r->room, t->count) <=
           r->plan->target * stats_get_quantile(r->room, t->count, 0.5);
}

static bool is_over(const run *r) {
    return find_seconds_since(r, r->start_ns) >= r->plan->budget_s * (double)r->count;
}

/* True when there is no reason for another round; the results then say why. */
static bool is_done(run *r) {
    const timing_plan *p = r->plan;
    size_t taken = r->results[0].count;
    bool over = is_over(r), has_enough = taken >= p->min_samples, all_steady = true;
    if (taken < FEWEST_SAMPLES && taken < p->min_samples)
        return false;
    for (size_t i = 0; i < r->count; i++) {
        timing_result *t = &r->results[i];
        bool steady = has_enough && is_steady(r, i);
        t->stop = steady ? STOP_STEADY : over ? STOP_BUDGET : STOP_MAX;
        all_steady = all_steady && steady;
    }
    return all_steady || over || taken >= p->max_samples;
}

/* Every source once, forwards or backwards. */
static bool take_turn(run *r, bool backwards, err *e) {
    for (size_t i = 0; i < r->count; i++) {
        size_t source = backwards ? r->count - 1 - i : i;
        timing_result *t = &r->results[source];
        if (!wake_up(r, source, e) || !take(r, source, &t->samples[t->count], e))
            return false;
        t->count++;
    }
    return true;
}

/* A B, B A, then B A, A B: each comes first as often as last, and linear drift favours neither.
 * Steadiness is tested less and less often: sorting takes time too. */
static bool take_samples(run *r, err *e) {
    size_t ask_at = r->plan->min_samples;
    for (size_t turn = 0;; turn++) {
        bool backwards = turn % 4 == 1 || turn % 4 == 2;
        if (!take_turn(r, backwards, e))
            return false;
        size_t taken = turn + 1;
        if (taken % PROBE_EVERY == 0)
            disturbance_probe(&r->disturbance);
        if (taken < ask_at && taken < r->plan->max_samples && !is_over(r))
            continue;
        if (is_done(r))
            return true;
        ask_at = taken + taken / 8 + 1;
    }
}

/* Labels ------------------------------------------------------------------------------------ */

/* Did it become slower or faster from the first third to the last? */
static unsigned find_trend(const timing_result *t) {
    size_t third = t->count / 3;
    if (third < 4)
        return 0;
    double *gpu = timing_list_clock(t, CLOCK_GPU);
    const double *last = gpu + t->count - third;
    double change = stats_compute(last, third).median / stats_compute(gpu, third).median;
    double p = significance_test_ranks(gpu, third, last, third).p;
    free(gpu);
    if (!(p < TREND_LEVEL))
        return 0;
    return change > 1 + TREND_CHANGE         ? LABEL_THROTTLED
           : change < 1 / (1 + TREND_CHANGE) ? LABEL_RAMP
                                             : 0;
}

static unsigned find_result_labels(const timing_result *t) {
    unsigned labels = find_trend(t) | (t->stop != STOP_STEADY ? LABEL_UNSTEADY : 0);
    for (size_t i = 0; i < t->count; i++)
        if (t->samples[i].gpu_is_wall)
            labels |= LABEL_GPU_IS_WALL;
    return labels;
}

unsigned timing_find_labels(const device_facts *f) {
    const power_state power = power_get_state();
    return (f->emulated ? LABEL_EMULATED : 0u) | (f->validates ? LABEL_VALIDATED : 0u) |
           (f->is_virtual ? LABEL_VIRTUAL : 0u) | (power.is_hot ? LABEL_HOT : 0u) |
           (power.low_power ? LABEL_LOW_POWER : 0u) | (power.on_battery ? LABEL_BATTERY : 0u);
}

bool timing_run(const timing_plan *plan, const timing_source *sources, size_t count,
                timing_result *results, err *e) {
    assert(count > 0 && plan->min_samples > 0 && plan->max_samples >= plan->min_samples);
    run r = {.plan = plan, .sources = sources, .results = results, .count = count};
    r.room = array_new(plan->max_samples + 2 * WINDOW, sizeof *r.room);
    for (size_t i = 0; i < count; i++) {
        results[i] = (timing_result){.samples = calloc(plan->max_samples, sizeof(timing_sample))};
        assert(results[i].samples);
    }
    r.start_ns = now(&r);
    disturbance_start(&r.disturbance);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++)
        ok = warm_up(&r, i, plan->budget_s / 3, e);
    ok = ok && take_samples(&r, e);
    /* Times that a test makes up are not the machine's. */
    bool is_busy = disturbance_end(&r.disturbance, plan->on_cpu) && !plan->now_ns;
    for (size_t i = 0; ok && i < count; i++)
        results[i].labels = find_result_labels(&results[i]) | (is_busy ? LABEL_BUSY : 0);
    free(r.room);
    return ok;
}

void timing_result_free(timing_result *r) {
    free(r->samples);
    *r = (timing_result){0};
}

double *timing_list_clock(const timing_result *r, timing_clock c) {
    double *all = array_new(r->count + 1, sizeof *all);
    for (size_t i = 0; i < r->count; i++)
        all[i] = timing_get_clock(&r->samples[i], c);
    return all;
}

stats timing_compute_stats(const timing_result *r, timing_clock c) {
    double *all = timing_list_clock(r, c);
    stats s = stats_compute(all, r->count);
    free(all);
    return s;
}

/* Names, as spelled on the command line and in files ------------------------------------------- */

static const char *const regimes[TIMING_REGIMES] = {"single", "chained", "independent"};
static const char *const caches[TIMING_CACHES] = {"warm", "cold"};
static const char *const clocks[CLOCK_COUNT] = {"gpu", "encode", "wall"};
static const char *const stops[STOP_COUNT] = {"steady", "budget", "max"};
static const char *const labels_by_bit[LABEL_COUNT] = {
    "emulated",   "virtual",   "throttled", "ramp",      "busy",    "gpu_is_wall", "unsteady",
    "above_roof", "validated", "hot",       "low_power", "battery", "overlap"};

const char *timing_get_regime_name(timing_regime r) {
    return regimes[r];
}

const char *timing_get_cache_name(timing_cache c) {
    return caches[c];
}

const char *timing_get_clock_name(timing_clock c) {
    return clocks[c];
}

const char *timing_get_stop_name(timing_stop s) {
    return stops[s];
}

static int find_name(const char *const *names, int count, const char *name) {
    int i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i;
}

bool timing_find_regime(const char *name, timing_regime *out) {
    return (*out = (timing_regime)find_name(regimes, TIMING_REGIMES, name)) < TIMING_REGIMES;
}

bool timing_find_cache(const char *name, timing_cache *out) {
    return (*out = (timing_cache)find_name(caches, TIMING_CACHES, name)) < TIMING_CACHES;
}

double timing_get_clock(const timing_sample *s, timing_clock c) {
    return c == CLOCK_GPU ? s->gpu_ns : c == CLOCK_ENCODE ? s->encode_ns : s->wall_ns;
}

const char *timing_find_suspicion(const char *labels) {
    static const char *const suspect[] = {"busy", "throttled", "ramp"};
    for (size_t i = 0; i < sizeof suspect / sizeof *suspect; i++)
        if (strstr(labels, suspect[i]))
            return suspect[i];
    return NULL;
}

void timing_get_labels(unsigned labels, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < LABEL_COUNT; i++)
        if (labels >> i & 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "+" : "",
                                     labels_by_bit[i]);
}
