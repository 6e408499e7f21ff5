/* lab: see lab.h. Models are in lab_model.c. */
#include "lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "kernels/roof_kernels.h"
#include "lab_parts.h"
#include "reference/quant.h"

const char *lab_get_level_name(lab_level l) {
    static const char *const names[LEVEL_COUNT] = {"full", "quick", "smoke"};
    return names[l];
}

/* A sample takes 2 ms whatever the case, so 20 of them are enough for a first look. */
static meter_options make_options(lab_level level) {
    static const double window_s[LEVEL_COUNT] = {10, 30, 0}, roof_s[LEVEL_COUNT] = {0.05, 0.02, 0},
                        sample_s[LEVEL_COUNT] = {TIMING_SAMPLE_S, TIMING_SAMPLE_S, 0.0001};
    meter_options o = {.plan = timing_plan_new(),
                       .sample_s = sample_s[level],
                       .roof_s = roof_s[level],
                       .window_s = window_s[level]};
    if (level == LEVEL_FULL)
        return o;
    bool is_quick = level == LEVEL_QUICK;
    o.plan.target = 0.02;
    o.plan.budget_s = is_quick ? 0.04 : 0.001;
    o.plan.warm_up_s = o.plan.budget_s / 10;
    o.plan.min_samples = 3; /* for slow cases; fast ones continue until the budget ends */
    o.plan.max_samples = is_quick ? 200 : 3;
    return o;
}

/* ASSAY_BUDGET: the same points with hardly any time for each, to see that they work. */
static bool limit_options(meter_options *o, double *budget_s, err *e) {
    const char *given = getenv("ASSAY_BUDGET");
    char *end;
    *budget_s = INFINITY;
    if (!given || !*given)
        return true;
    *budget_s = strtod(given, &end);
    if (*end || !(*budget_s > 0))
        return err_set(e, EXIT_USAGE, "ASSAY_BUDGET is '%.40s'; it takes seconds, such as 0.01",
                       given);
    o->plan.budget_s = fmin(o->plan.budget_s, *budget_s);
    o->plan.warm_up_s = fmin(o->plan.warm_up_s, *budget_s / 10);
    o->plan.min_samples = o->plan.max_samples = 3;
    o->sample_s = fmin(o->sample_s, *budget_s / 10);
    o->roof_s = fmin(o->roof_s, *budget_s);
    return true;
}

lab *lab_new(const lab_options *o, err *e) {
    lab *l = array_new(1, sizeof *l);
    meter_options how = make_options(o->level);
    l->options = *o;
    l->device = device_open_with(o->device, &(device_options){.cpu_clock = true}, e);
    if (l->device && limit_options(&how, &l->budget_s, e) &&
        (l->lib = library_new(l->device, NULL, e)) && tuned_open(l->lib, &l->tuned, e)) {
        l->variants = (variants_basis){.facts = lab_get_facts(l), .table = l->tuned};
        l->meter = meter_new(l->lib, &bandwidth_roof_kernels, &how);
        return l;
    }
    lab_free(l);
    return NULL;
}

void lab_free(lab *l) {
    if (!l)
        return;
    lab_close_model(l);
    meter_free(l->meter);
    tuned_free(l->tuned);
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

const variants_basis *lab_get_variants(const lab *l) {
    return &l->variants;
}

size_t lab_choose(const lab *l, size_t count, size_t quick) {
    size_t wanted[LEVEL_COUNT] = {count, quick, quick < 2 ? quick : 2};
    return wanted[l->options.level] < count ? wanted[l->options.level] : count;
}

/* Timing ------------------------------------------------------------------------------------ */

bool lab_find_roof(lab *l, roof **out, err *e) {
    return meter_find_roof(l->meter, out, e);
}

bool lab_find_cache(lab *l, size_t *bytes, err *e) {
    return meter_find_cache(l->meter, bytes, e);
}

bool lab_open_case(lab *l, measurement *c, const op *o, const kernel *k, shape s,
                   timing_regime regime, timing_cache cache, err *e) {
    kernel_case wanted = case_new(o, k, &s, INPUT_NORMAL);
    return measurement_open(c, l->lib, &wanted, l->options.seed, regime, cache, e);
}

void lab_close_cases(measurement *cases, size_t count) {
    for (size_t i = 0; i < count; i++)
        measurement_close(&cases[i]);
}

bool lab_time(lab *l, measurement *cases, size_t count, err *e) {
    for (size_t i = 0; i < count && l->options.level == LEVEL_SMOKE; i++)
        cases[i].samples = 0;
    return meter_time(l->meter, cases, count, e);
}

bool lab_time_again(lab *l, measurement *cases, size_t count, double seconds, err *e) {
    return meter_time_again(l->meter, cases, count, fmin(seconds, l->budget_s), e);
}

void lab_put(lab *l, sheet *s, const measurement *c) {
    result_row r;
    meter_fill_row(l->meter, c, &r, NULL); /* a source that can no longer be read has no hash */
    if (c->built.op && c->built.kernel->format)
        snprintf(r.format, sizeof r.format, "%s", c->built.kernel->format->name);
    sheet_put_row(s, &r);
    sheet_add_samples(s, c->key, c->result.samples, c->result.count);
}
