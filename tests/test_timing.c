/* Tests of harness/measure/timing and subject. The engine is fed times out of models and a clock
 * that the models move, so that nothing here depends on how fast or quiet this machine is; subjects
 * run real kernels, and what is looked at is what they compute. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/host.h"
#include "harness/base/os.h"
#include "harness/check/fill.h"
#include "harness/measure/comparison.h"
#include "harness/measure/results.h"
#include "harness/measure/roof.h"
#include "harness/measure/timing.h"

SUITE(timing_suite);

static err e;

/* A machine out of a model: every sample moves its clock by as long as it took. */
static uint64_t clock_ns;

static uint64_t get_clock(void) {
    return clock_ns;
}

typedef struct {
    double ns, noise;   /* what a sample takes, and how much of it is chance */
    double cold_factor; /* the first sample takes this many times as long, later ones less */
    size_t cold_samples, taken;
    double drift;       /* part by which each sample is longer than the one before */
    double after_pause; /* a sample after a pause takes this many times as long */
    bool has_paused;
    rng random;
    char *order; /* a letter for each sample, where the order is looked at */
    char letter;
} model;

static bool take(void *context, timing_sample *out, err *why) {
    (void)why;
    model *m = context;
    double ns = m->ns * (1 + m->noise * rng_uniform(&m->random));
    ns *= 1 + m->drift * (double)m->taken;
    if (m->taken < m->cold_samples)
        ns *= 1 + (m->cold_factor - 1) * (1 - (double)m->taken / (double)m->cold_samples);
    if (m->has_paused)
        ns *= m->after_pause;
    m->has_paused = false;
    m->taken++;
    clock_ns += (uint64_t)ns;
    if (m->order)
        m->order[strlen(m->order)] = m->letter;
    *out = (timing_sample){.gpu_ns = ns, .encode_ns = 10, .wall_ns = ns + 100};
    return true;
}

static timing_plan make_plan(void) {
    timing_plan p = timing_plan_new();
    p.now_ns = get_clock;
    return p;
}

/* The result stands until the next. */
static timing_result run_model(model *m, const timing_plan *p) {
    timing_source source = {take, m};
    static timing_result r;
    timing_result_free(&r);
    m->random = rng_new(1, "model");
    if (!timing_run(p, &source, 1, &r, &e))
        abort();
    return r;
}

TEST steady_samples_end_it_early(void) {
    timing_plan p = make_plan();
    model m = {.ns = 1e6, .noise = 0.001};
    timing_result r = run_model(&m, &p);
    ASSERT_EQ(STOP_STEADY, r.stop);
    ASSERT_EQ_FMT(p.min_samples, r.count, "%zu");
    ASSERT_EQ(0u, r.labels);
    ASSERT(r.discarded >= 50); /* 50 ms of warm-up, 1 ms each */
    PASS();
}

TEST noise_takes_more_samples_until_the_budget_ends(void) {
    timing_plan p = make_plan();
    model m = {.ns = 1e6, .noise = 0.1};
    timing_result r = run_model(&m, &p);
    ASSERT_EQ(STOP_STEADY, r.stop); /* 0.1 * 0.67 / sqrt(n) < 0.005 needs about 170 */
    ASSERT(r.count > 80 && r.count < 350);
    m = (model){.ns = 1e7, .noise = 1};
    r = run_model(&m, &p);
    ASSERT_EQ(STOP_BUDGET, r.stop);
    ASSERT(r.labels & LABEL_UNSTEADY);
    ASSERT(r.count < 100);
    m = (model){.ns = 1000, .noise = 1};
    r = run_model(&m, &p);
    ASSERT_EQ(STOP_MAX, r.stop);
    ASSERT_EQ_FMT(p.max_samples, r.count, "%zu");
    PASS();
}

TEST what_is_slow_gets_five_samples_all_the_same(void) {
    timing_plan p = make_plan();
    model m = {.ns = 3e9};
    timing_result r = run_model(&m, &p);
    ASSERT_EQ_FMT((size_t)5, r.count, "%zu");
    ASSERT_EQ(STOP_BUDGET, r.stop);
    PASS();
}

TEST warm_up_lasts_until_times_have_settled(void) {
    timing_plan p = make_plan();
    model m = {.ns = 1e6, .noise = 0.001, .cold_factor = 1.5, .cold_samples = 95};
    timing_result r = run_model(&m, &p);
    for (size_t i = 0; i < r.count; i++)
        ASSERT(r.samples[i].gpu_ns < 1.04e6);
    PASS();
}

TEST a_machine_that_slows_down_is_labelled_throttled(void) {
    timing_plan p = make_plan();
    p.target = 1e-6;
    model m = {.ns = 1e6, .noise = 0.001, .drift = 0.0005};
    timing_result r = run_model(&m, &p);
    ASSERT(r.labels & LABEL_THROTTLED);
    m = (model){.ns = 1e6, .noise = 0.001, .drift = -0.0005};
    r = run_model(&m, &p);
    ASSERT(r.labels & LABEL_RAMP);
    PASS();
}

/* A clock that jumps by a fifth of a second after every tenth sample, when it is asked for the
 * second time: the machine slept between two samples. */
static model sleeper;
static int asked;

static uint64_t get_clock_of_sleeper(void) {
    if (++asked == 2 && sleeper.taken % 10 == 0) {
        clock_ns += 200000000;
        sleeper.has_paused = true;
    }
    return clock_ns;
}

static bool take_of_sleeper(void *context, timing_sample *out, err *why) {
    asked = 0;
    return take(context, out, why);
}

static size_t count_sleepy_samples(double idle_s) {
    timing_plan p = make_plan();
    p.now_ns = get_clock_of_sleeper;
    p.min_samples = p.max_samples = 60;
    p.budget_s = 1000;
    p.idle_s = idle_s;
    sleeper =
        (model){.ns = 1e6, .noise = 0.001, .after_pause = 1.5, .random = rng_new(1, "sleeper")};
    timing_source source = {take_of_sleeper, &sleeper};
    timing_result r;
    size_t slow = 0;
    if (!timing_run(&p, &source, 1, &r, &e))
        abort();
    for (size_t i = 0; i < r.count; i++)
        slow += r.samples[i].gpu_ns > 1.4e6;
    timing_result_free(&r);
    return slow;
}

TEST after_a_pause_the_device_is_woken_up_again(void) {
    ASSERT(count_sleepy_samples(10) >= 5); /* never thought to be idle: it shows */
    ASSERT_EQ_FMT((size_t)0, count_sleepy_samples(0.05), "%zu");
    PASS();
}

TEST two_sources_take_turns_abba_baab(void) {
    char order[4096] = "";
    timing_plan p = make_plan();
    p.warm_up_s = 1e-9;
    p.min_samples = 8;
    p.max_samples = 8;
    model a = {.ns = 1e6, .noise = 0.001, .order = order, .letter = 'A'}, b = a;
    b.letter = 'B';
    a.random = b.random = rng_new(1, "model");
    timing_source sources[2] = {{take, &a}, {take, &b}};
    timing_result r[2];
    ASSERT(timing_run(&p, sources, 2, r, &e));
    ASSERT_EQ(r[0].count, r[1].count);
    ASSERT(strlen(order) > 16);
    ASSERT_STR_EQ("ABBABAABABBABAAB", order + strlen(order) - 16);
    timing_result_free(&r[0]);
    timing_result_free(&r[1]);
    PASS();
}

static verdict_kind compare_models(double slowdown, uint64_t seed) {
    timing_plan p = make_plan();
    model a = {.ns = 1e6, .noise = 0.05, .random = rng_new(seed, "a")}, b = a;
    b.ns *= slowdown;
    b.random = rng_new(seed, "b");
    timing_source sources[2] = {{take, &a}, {take, &b}};
    timing_result r[2];
    if (!timing_run(&p, sources, 2, r, &e))
        abort();
    double *base = timing_list_clock(&r[0], CLOCK_GPU), *now = timing_list_clock(&r[1], CLOCK_GPU);
    verdict_case c = {
        .base = series_new(base, r[0].count), .now = series_new(now, r[1].count), .paired = true};
    verdict_decide(&c, 1, 0.03, seed);
    free(base);
    free(now);
    timing_result_free(&r[0]);
    timing_result_free(&r[1]);
    return c.verdict;
}

/* The whole path: warm-up, turns, the rule to stop, the verdict. */
TEST the_instrument_tells_a_planted_slowdown_from_none(void) {
    size_t same = 0, slower = 0, much = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        same += compare_models(1, seed) == VERDICT_SAME;
        slower += compare_models(1.05, seed) == VERDICT_SLOWER;
        much += compare_models(1.3, seed) == VERDICT_SLOWER;
    }
    ASSERT(same >= 38);
    ASSERT(slower >= 38);
    ASSERT_EQ_FMT((size_t)40, much, "%zu");
    PASS();
}

TEST labels_have_names(void) {
    char text[128];
    timing_get_labels(LABEL_EMULATED | LABEL_BUSY | LABEL_VALIDATED, text, sizeof text);
    ASSERT_STR_EQ("emulated+busy+validated", text);
    timing_get_labels(LABEL_HOT | LABEL_LOW_POWER | LABEL_BATTERY | LABEL_OVERLAP, text,
                      sizeof text);
    ASSERT_STR_EQ("hot+low_power+battery+overlap", text);
    timing_get_labels((1u << LABEL_COUNT) - 1, text, sizeof text);
    ASSERTm("all labels fit into a row", strlen(text) < sizeof((result_row *)0)->labels);
    timing_get_labels(0, text, sizeof text);
    ASSERT_STR_EQ("", text);
    timing_regime r;
    timing_cache c;
    ASSERT(timing_find_regime("independent", &r) && r == TIMING_INDEPENDENT);
    ASSERT(timing_find_cache("cold", &c) && c == TIMING_COLD);
    ASSERT(!timing_find_regime("Chained", &r) && !timing_find_cache("", &c));
    PASS();
}

static bool write_line(const char *folder, const char *file, const char *line) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    *strrchr(path, '/') = 0;
    return os_make_folder(path, NULL) &&
           snprintf(path, sizeof path, "%s/%s", folder, file) < (int)sizeof path &&
           os_write_file(path, line, strlen(line), NULL);
}

TEST heat_low_power_and_battery_are_read_from_the_system(void) {
    char sys[256];
    ASSERT(os_make_scratch(sys, sizeof sys, &e));
    power_state s = power_read_files(sys);
    ASSERT(!s.on_battery && !s.low_power && !s.is_hot);
    ASSERT(write_line(sys, "class/power_supply/AC/type", "Mains\n") &&
           write_line(sys, "class/power_supply/BAT0/type", "Battery\n") &&
           write_line(sys, "class/power_supply/BAT0/status", "Charging\n") &&
           write_line(sys, "class/power_supply/mouse/type", "Battery\n") &&
           write_line(sys, "class/power_supply/mouse/scope", "Device\n") &&
           write_line(sys, "class/power_supply/mouse/status", "Discharging\n") &&
           write_line(sys, "class/thermal/cooling_device0/type", "Processor\n") &&
           write_line(sys, "class/thermal/cooling_device0/cur_state", "0\n") &&
           write_line(sys, "class/thermal/cooling_device1/type", "Fan\n") &&
           write_line(sys, "class/thermal/cooling_device1/cur_state", "3\n") &&
           write_line(sys, "firmware/acpi/platform_profile", "balanced\n"));
    s = power_read_files(sys);
    ASSERT(!s.on_battery && !s.low_power && !s.is_hot);
    ASSERT(write_line(sys, "class/power_supply/BAT0/status", "Discharging\n"));
    s = power_read_files(sys);
    ASSERT(s.on_battery && !s.low_power && !s.is_hot);
    ASSERT(write_line(sys, "class/thermal/cooling_device0/cur_state", "2\n") &&
           write_line(sys, "firmware/acpi/platform_profile", "low-power\n"));
    s = power_read_files(sys);
    ASSERT(s.on_battery && s.low_power && s.is_hot);
    os_remove_folder(sys);
    PASS();
}

TEST the_last_cache_is_where_bandwidth_steps_down_to_memory(void) {
    const size_t sizes[] = {1, 2, 4, 8, 16, 32, 64, 128};
    const double steps[] = {400, 400, 390, 200, 195, 101, 100, 99};
    const double flat[] = {100, 101, 99, 100, 100, 101, 99, 100};
    const double bump[] = {100, 101, 99, 100, 180, 101, 99, 100}; /* noise: nothing beside it */
    ASSERT_EQ_FMT((size_t)16, caches_find_last(sizes, steps, 8), "%zu");
    ASSERT_EQ_FMT((size_t)0, caches_find_last(sizes, flat, 8), "%zu");
    ASSERT_EQ_FMT((size_t)0, caches_find_last(sizes, bump, 8), "%zu");
    PASS();
}

SUITE(timing_suite) {
    RUN_TEST(steady_samples_end_it_early);
    RUN_TEST(noise_takes_more_samples_until_the_budget_ends);
    RUN_TEST(what_is_slow_gets_five_samples_all_the_same);
    RUN_TEST(warm_up_lasts_until_times_have_settled);
    RUN_TEST(a_machine_that_slows_down_is_labelled_throttled);
    RUN_TEST(after_a_pause_the_device_is_woken_up_again);
    RUN_TEST(two_sources_take_turns_abba_baab);
    RUN_TEST(the_instrument_tells_a_planted_slowdown_from_none);
    RUN_TEST(labels_have_names);
    RUN_TEST(heat_low_power_and_battery_are_read_from_the_system);
    RUN_TEST(the_last_cache_is_where_bandwidth_steps_down_to_memory);
}
