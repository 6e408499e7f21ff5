/* dispatch_overhead: 1 to 1000 launches of a kernel that adds 1 to a counter. In a line through GPU
 * time by number of launches the slope is the cost of a launch; in one through wall time the
 * intercept is the cost of a submit. The cost of a pipeline change comes from the same launches of
 * two kernels, sorted against alternating. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiment.h"
#include "harness/base/format.h"
#include "kernels/kernels.h"
#include "kernels/record.h"

EXPERIMENT(
    dispatch_overhead, .order = 20,
    .question = "What does a launch cost, alone, in a chain and among independent ones, and what "
                "does changing the pipeline cost?",
    .claim = "302 launches take 383 µs, 1.27 µs each, 18 % of a token",
    .finding = "A launch costs {launch_us} µs in a chain and {launch_independent_us} µs among "
               "independent ones; submitting and waiting costs {submit_us} µs",
    .how = "command buffers of n launches that add 1 to a counter, each submitted and waited for; "
           "slope and intercept of a line through the medians by n; counters checked",
    .has_model = true);

static const uint32_t counts[] = {1, 10, 30, 100, 150, 200, 302, 484, 1000};
static const uint32_t quick_counts[] = {1, 10, 30, 100, 302, 1000};
enum { MOST = 1000, STRIDE = 64 }; /* counters on cache lines of their own */

typedef enum { CHAIN, INDEPENDENT, SORTED, ALTERNATING, KINDS } arrangement;
static const char *const names[KINDS] = {"chain", "independent", "sorted", "alternating"};

/* Both kernels do next to nothing: one adds to a counter, one copies a float. */
static bool record(tape *t, arrangement a, slice counters, slice floats, uint32_t n, err *e) {
    t->order = a == INDEPENDENT ? ORDER_CONCURRENT : ORDER_SERIAL;
    for (uint32_t i = 0; i < n; i++) {
        bool is_copy = a == SORTED ? i >= n / 2 : a == ALTERNATING && i % 2 == 1;
        slice counter = slice_part(counters.buffer, a == INDEPENDENT ? i * STRIDE : 0, 4);
        slice from = slice_part(floats.buffer, 0, 4), to = slice_part(floats.buffer, STRIDE, 4);
        if (is_copy ? !buffer_copy_record(t, &buffer_copy_op.kernels[0], from, to, 1, e)
                    : !dispatch_overhead_noop_record(t, &dispatch_overhead_noop_op.kernels[0],
                                                     counter, e))
            return false;
    }
    return true;
}

static bool run_count(lab *l, sheet *s, slice counters, slice floats, uint32_t n, err *e) {
    measurement cases[KINDS] = {{.regime = TIMING_SINGLE}};
    size_t count = n > 1 ? KINDS : 2;
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        snprintf(cases[i].key, sizeof cases[i].key, "%s/%u", names[i], n);
        cases[i].tape = tape_new(lab_get_library(l));
        ok = record(cases[i].tape, (arrangement)i, counters, floats, n, e);
    }
    ok = ok && lab_time(l, cases, count, e);
    for (size_t i = 0; ok && i < count; i++) {
        sheet_add_variant(s, names[i]);
        sheet_put(s, "launches", n);
        lab_put(l, s, &cases[i]);
    }
    for (size_t i = 0; i < count; i++) {
        lab_close_cases(&cases[i], 1);
        tape_free(cases[i].tape);
    }
    return ok;
}

/* A token of the model, to compare the launches with. */
static bool run_token(lab *l, sheet *s, err *e) {
    lab_decoder d;
    model_options o = {.context = 64};
    bool ok = lab_open_decoder(l, &o, 0, &d, e);
    tape *t = ok ? model_get_token_tape(d.model, true, e) : NULL;
    measurement c = {.key = "token", .source = {lab_take_token, &d}};
    if (t && lab_time(l, &c, 1, e)) {
        sheet_add_variant(s, "token");
        sheet_put(s, "launches", (double)t->count);
        lab_put(l, s, &c);
    } else
        ok = false;
    lab_close_cases(&c, 1);
    lab_close_decoder(&d);
    return ok;
}

static bool run(lab *l, sheet *s, err *e) {
    bool is_full = lab_get_level(l) == LEVEL_FULL;
    size_t count =
        lab_choose(l, is_full ? COUNT_OF(counts) : COUNT_OF(quick_counts), COUNT_OF(quick_counts));
    device *d = library_get_device(lab_get_library(l));
    buffer *counters = device_new_buffer(d, MOST * STRIDE, STORAGE_SHARED, "counters", e);
    buffer *floats = device_new_buffer(d, 2 * STRIDE, STORAGE_SHARED, "floats", e);
    bool ok = counters && floats && buffer_fill_pattern(counters, 0, counters->bytes, 0, e) &&
              buffer_fill_pattern(floats, 0, floats->bytes, 0x3F80, e);
    for (size_t i = 0; ok && i < count; i++)
        ok = run_count(l, s, slice_whole(counters), slice_whole(floats),
                       (is_full ? counts : quick_counts)[i], e);
    buffer_free(counters);
    buffer_free(floats);
    return ok && run_token(l, s, e);
}

/* Conclusions --------------------------------------------------------------------------------- */

/* Same launches, n - 2 more changes of pipeline: of the largest n. */
static double find_switch(const sheet *s) {
    double cost = NAN;
    for (size_t r = 0; r < sheet_count_rows(s); r++)
        if (sheet_is(s, r, "variant", "alternating", NULL)) {
            double n = sheet_get(s, r, "launches");
            double sorted = sheet_find(s, "gpu_ns", "variant", "sorted", "launches",
                                       sheet_get_text(s, r, "launches"), NULL);
            if (n > 2)
                cost = 1e-3 * (sheet_get(s, r, "gpu_ns") - sorted) / (n - 2);
        }
    return cost;
}

static void conclude(sheet *s) {
    double start, submit, chain, independent, wall;
    sheet_fit_line(s, "independent", "launches", "gpu_ns", &start, &independent);
    sheet_fit_line(s, "chain", "launches", "gpu_ns", &start, &chain);
    sheet_fit_line(s, "chain", "launches", "wall_ns", &submit, &wall);
    double cost = find_switch(s);
    char chain_text[24], token_text[24];
    double t302 = sheet_find(s, "gpu_ns", "variant", "chain", "launches", "302", NULL);
    double token = sheet_find(s, "wall_ns", "variant", "token", NULL);
    double launches = sheet_find(s, "launches", "variant", "token", NULL);
    double share = 100 * launches * chain * 1e3 / token;
    sheet_add_metric(s, "launch_us", chain, "us");
    sheet_add_metric(s, "launch_independent_us", independent, "us");
    sheet_add_metric(s, "submit_us", submit, "us");
    sheet_add_metric(s, "switch_us", cost, "us");
    sheet_add_metric(s, "chain_302_us", 1e-3 * t302, "us");
    sheet_add_metric(s, "token_launches", launches, "count");
    sheet_add_metric(s, "launch_share_pct", share, "%");
    sheet_conclude(s,
                   "A launch costs %.3g µs in a chain and %.3g µs among independent ones, on the "
                   "GPU clock; submitting and waiting costs %.3g µs on the wall clock.",
                   chain, independent, submit);
    sheet_conclude(
        s,
        "302 launches take %s; the %.0f launches of a token are %.3g %% of its %s; a change of "
        "pipeline adds %.3g µs.",
        format_time(t302, chain_text, sizeof chain_text), launches, share,
        format_time(token, token_text, sizeof token_text), cost);
}
