/* command_buffers: what do many command buffers per token cost?
 *
 * Published for an Apple M4: SmolLM-135M with 91 command buffers per token generates 75 tok/s, with
 * one 257; an RWKV with 1600 syncs per token 10 tok/s where its kernels alone would give 207.
 *
 * Measured: the same greedy token as one command buffer, one per layer and one per launch, each
 * waited for, interleaved. RWKV-7 has no runner here yet: its row says so and has no numbers. */
#include <math.h>
#include <stdio.h>

#include "decoding.h"
#include "harness/measure/fit.h"

static bool run(lab *l, sheet *s, err *e) {
    lab_decoder d;
    model_options o = {.context = 64};
    bool ok = lab_open_decoder(l, &o, 0, &d, e);
    const decoding_way ways[] = {{"token", &d, PLAY_WHOLE, true},
                                 {"layer", &d, PLAY_MARKS, true},
                                 {"launch", &d, PLAY_LAUNCHES, true}};
    ok = ok && decoding_time(l, s, ways, 3, e);
    lab_close_decoder(&d);
    if (!ok)
        return false;
    sheet_add_row(s);
    sheet_put_text(s, "case", "rwkv7");
    sheet_put_text(s, "variant", "rwkv7");
    sheet_put_text(s, "message", "not measured: there is no runner for RWKV-7 yet");
    return true;
}

static void conclude(sheet *s) {
    static const char *const variants[] = {"token", "layer", "launch"};
    double rows[2 * 3], times[3], one = sheet_find(s, "tok_s", "variant", "token", NULL);
    double layer = sheet_find(s, "tok_s", "variant", "layer", NULL);
    double many = sheet_find(s, "tok_s", "variant", "launch", NULL);
    double buffers = sheet_find(s, "command_buffers", "variant", "launch", NULL);
    for (int i = 0; i < 3; i++) {
        rows[2 * i] = 1;
        rows[2 * i + 1] = sheet_find(s, "command_buffers", "variant", variants[i], NULL);
        times[i] = 1e-3 * sheet_find(s, "wall_ns", "variant", variants[i], NULL);
    }
    fit f;
    double sync = fit_parts(rows, times, 3, 2, &f, NULL) ? f.value[1] : NAN;
    decoding_add_rate(s, "tok_s_one", "token");
    decoding_add_rate(s, "tok_s_layer", "layer");
    decoding_add_rate(s, "tok_s_many", "launch");
    /* Three per layer and one, as published: between one per layer and one per launch. */
    if (!isnan(sync) && buffers > 91)
        sheet_add_metric(s, "tok_s_91", 1e6 / (f.value[0] + 91 * sync), "tok/s");
    sheet_add_metric(s, "buffers_a_token_per_op", buffers, "count");
    sheet_add_metric(s, "sync_us", sync, "us");
    sheet_add_metric(s, "one_over_many", one / many, "x");
    sheet_conclude(
        s,
        "One command buffer per token: %.4g tok/s; one per layer: %.4g; one per launch (%.0f): "
        "%.4g. One is %.3g times as fast as %.0f.",
        one, layer, buffers, many, one / many, buffers);
    sheet_conclude(s, "Each additional command buffer costs %.3g us, %.3g %% of a token.", sync,
                   100 * sync / times[0]);
}

EXPERIMENT(command_buffers) = {
    .name = "command_buffers",
    .order = 100,
    .question = "What does it cost to run a token as many command buffers instead of one?",
    .claim = "91 per token give 75 tok/s, 1 gives 257; RWKV with 1600 syncs gives 10 tok/s, its "
             "kernels alone 207",
    .how =
        "wall time from the call until the token is known, the three variants interleaved; every "
        "token compared with the argmax of logits that were checked launch by launch",
    .has_model = true,
    .run = run,
    .conclude = conclude,
};
