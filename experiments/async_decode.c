/* async_decode: what is gained when the CPU is out of the loop and several tokens are in flight?
 *
 * Published: left open.
 *
 * Measured: runs of greedy tokens with 1, 2, 4 and 8 steps submitted ahead, interleaved. The device
 * finds token, position and cache length where the previous step left them. All must choose the
 * same tokens. */
#include <stdio.h>
#include <string.h>

#include "experiment.h"
#include "harness/base/os.h"
#include "kernels/record.h"

enum { MOST = 64 };
static const uint32_t lengths[LEVEL_COUNT] = {64, 8, 4};
static const uint32_t flights[] = {1, 2, 4, 8};
enum { FLIGHTS = COUNT_OF(flights) };

typedef struct {
    lab_decoder *decoder;
    uint32_t in_flight, count;
    uint32_t chosen[MOST];
    const uint32_t *expected; /* NULL: nothing yet */
} flight;

static bool fly(flight *f, play_times *sum, err *e) {
    model *m = f->decoder->model;
    uint32_t submitted = 0;
    if (!model_start_greedy(m, f->decoder->token, e))
        return false;
    for (uint32_t i = 0; i < f->count; i++) {
        play_times t;
        for (; submitted < f->count && submitted - i < f->in_flight; submitted++)
            if (!model_submit_greedy(m, e))
                return false;
        if (!model_collect_greedy(m, &f->chosen[i], &t, e))
            return false;
        play_times_add(sum, &t);
    }
    return true;
}

/* A sample is a run, divided by its tokens. */
static bool take(void *context, timing_sample *out, err *e) {
    flight *f = context;
    play_times sum = {0};
    lab_rewind_decoder(f->decoder);
    uint64_t start = os_now_ns();
    if (!fly(f, &sum, e))
        return false;
    double share = 1.0 / f->count;
    *out = (timing_sample){(double)sum.gpu_ns * share, (double)sum.encode_ns * share,
                           (double)(os_now_ns() - start) * share, sum.gpu_is_wall};
    if (f->expected && memcmp(f->expected, f->chosen, f->count * sizeof *f->chosen) != 0)
        return err_set(e, EXIT_WRONG, "%u tokens in flight choose different tokens than one",
                       f->in_flight);
    return lab_check_next(f->decoder, f->chosen[0], "in flight", e);
}

static bool run(lab *l, sheet *s, err *e) {
    lab_decoder d;
    flight all[FLIGHTS];
    measurement cases[FLIGHTS] = {{.regime = TIMING_SINGLE}};
    timing_sample ignored;
    uint32_t wanted[MOST];
    bool ok = lab_open_decoder(l, &(model_options){.context = 128}, 0, &d, e);
    size_t count = lab_choose(l, FLIGHTS, FLIGHTS);
    for (size_t i = 0; i < count; i++) {
        all[i] =
            (flight){.decoder = &d, .in_flight = flights[i], .count = lengths[lab_get_level(l)]};
        cases[i].source = (timing_source){take, &all[i]};
        snprintf(cases[i].key, sizeof cases[i].key, "%u in flight", flights[i]);
    }
    ok = ok && take(&all[0], &ignored, e);
    memcpy(wanted, all[0].chosen, sizeof wanted);
    for (size_t i = 0; i < count; i++)
        all[i].expected = wanted;
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

EXPERIMENT(
    async_decode, .order = 150,
    .question = "What is gained when the CPU is out of the loop and several tokens are in flight?",
    .claim = "left open",
    .finding = "{best_in_flight} tokens in flight are {speedup_best} times as fast as one, with "
               "which the GPU is idle for {idle_pct_1} % of the time",
    .how = "wall time of a run of greedy tokens divided by their number, all depths interleaved; "
           "tokens of all compared",
    .has_model = true);
