/* async_decode: runs of greedy tokens with 1, 2, 4 and 8 steps submitted ahead. The device finds
 * token, position and cache length where the previous step left them. */
#include <stdio.h>
#include <string.h>

#include "decoding.h"
#include "kernels/record.h"

EXPERIMENT(
    async_decode, .order = 150,
    .question = "What is gained when the CPU is out of the loop and several tokens are in flight?",
    .claim = "left open",
    .finding = "{best_in_flight} tokens in flight are {speedup_best} times as fast as one, with "
               "which the GPU is idle for {idle_pct_1} % of the time",
    .how = "wall time of a run of greedy tokens divided by their number, all depths interleaved; "
           "tokens of all compared",
    .has_model = true);

static const uint32_t lengths[LEVEL_COUNT] = {64, 8, 4};
static const uint32_t flights[] = {1, 2, 4, 8};
enum { FLIGHTS = COUNT_OF(flights) };

static bool run(lab *l, sheet *s, err *e) {
    lab_decoder d;
    decoding_run all[FLIGHTS];
    measurement cases[FLIGHTS] = {{.regime = TIMING_SINGLE}};
    timing_sample ignored;
    uint32_t wanted[DECODING_MOST];
    bool ok = lab_open_decoder(l, &(model_options){.context = 128}, 0, &d, e);
    size_t count = lab_choose(l, FLIGHTS, FLIGHTS);
    for (size_t i = 0; i < count; i++) {
        snprintf(cases[i].key, sizeof cases[i].key, "%u in flight", flights[i]);
        cases[i].source = (timing_source){decoding_take_run, &all[i]};
        all[i] = (decoding_run){.name = cases[i].key,
                                .decoder = &d,
                                .in_flight = flights[i],
                                .count = lengths[lab_get_level(l)]};
    }
    ok = ok && decoding_take_run(&all[0], &ignored, e);
    memcpy(wanted, all[0].chosen, sizeof wanted);
    for (size_t i = 0; i < count; i++)
        all[i].wanted = wanted;
    ok = ok && lab_time(l, cases, count, e);
    for (size_t i = 0; ok && i < count; i++) {
        sheet_add_row(s);
        sheet_put_text(s, "model", lab_get_model_name(l));
        sheet_put(s, "in_flight", flights[i]);
        sheet_put(s, "tokens", all[i].count);
        lab_put(l, s, &cases[i]);
        sheet_put(s, "tok_s", 1e9 / sheet_get(s, sheet_count_rows(s) - 1, "wall_ns"));
    }
    lab_close_cases(cases, count);
    lab_close_decoder(&d);
    return ok;
}

/* Conclusions --------------------------------------------------------------------------------- */

static void conclude(sheet *s) {
    double one = sheet_find(s, "tok_s", "in_flight", "1", NULL), best = 0, at = 1;
    for (size_t r = 0; r < sheet_count_rows(s); r++)
        if (sheet_get(s, r, "tok_s") > best) {
            best = sheet_get(s, r, "tok_s");
            at = sheet_get(s, r, "in_flight");
        }
    double wall = sheet_find(s, "wall_ns", "in_flight", "1", NULL);
    double gpu = sheet_find(s, "gpu_ns", "in_flight", "1", NULL);
    sheet_add_metric(s, "tok_s_1", one, "tok/s");
    sheet_add_metric(s, "tok_s_2", sheet_find(s, "tok_s", "in_flight", "2", NULL), "tok/s");
    sheet_add_metric(s, "tok_s_4", sheet_find(s, "tok_s", "in_flight", "4", NULL), "tok/s");
    sheet_add_metric(s, "speedup_best", best / one, "x");
    sheet_add_metric(s, "best_in_flight", at, "count");
    sheet_add_metric(s, "idle_pct_1", 100 * (wall - gpu) / wall, "%");
    sheet_conclude(
        s,
        "One token in flight gives %.4g tok/s; the best, %.0f, gives %.4g tok/s, which is "
        "%.3g times as fast.",
        one, at, best, best / one);
    sheet_conclude(
        s,
        "With one in flight the device is idle for %.3g %% of the time, which is the most that "
        "more in flight can hide.",
        100 * (wall - gpu) / wall);
}
