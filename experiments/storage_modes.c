/* storage_modes: one greedy token of two copies of the model, one with private and one with shared
 * scratch. */
#include "decoding.h"
#include "harness/measure/plot.h"

EXPERIMENT(
    storage_modes, .order = 110,
    .question = "Does it matter whether scratch memory is shared with the CPU or private?",
    .claim = "private scratch is a few percent faster",
    .finding = "Private instead of shared scratch: {private_gain_pct|change} in tokens per "
               "second ({tok_s_private} and {tok_s_shared})",
    .how = "wall time from the call until the greedy token is known, two models interleaved; every "
           "token compared with that of a checked pass",
    .has_model = true);

static bool run(lab *l, sheet *s, err *e) {
    lab_decoder d[2] = {{.model = NULL}};
    model_options how[2] = {{.context = 64}, {.context = 64, .shared_scratch = true}};
    bool ok =
        lab_open_decoder(l, &how[0], 0, &d[0], e) && lab_open_decoder(l, &how[1], 0, &d[1], e);
    const decoding_way ways[] = {{"private", &d[0], PLAY_WHOLE, true, NULL, 0},
                                 {"shared", &d[1], PLAY_WHOLE, true, NULL, 0}};
    ok = ok && decoding_time(l, s, ways, 2, e);
    lab_close_decoder(&d[0]);
    lab_close_decoder(&d[1]);
    return ok;
}

static void conclude(sheet *s) {
    double gain = 100 * (decoding_find_ratio(s, "private", "shared") - 1), low, high;
    decoding_find_ratios(s, "private", "shared", &low, &high);
    sheet_add_metric(s, "private_gain_pct", gain, "%");
    sheet_add_spread(s, "private_gain_pct", 100 * (low - 1), 100 * (high - 1));
    decoding_add_rate(s, "tok_s_private", "private");
    decoding_add_rate(s, "tok_s_shared", "shared");
    sheet_conclude(s, "Private scratch gives %.4g tok/s, shared %.4g: %+.2g %%.",
                   sheet_get_metric(s, "tok_s_private"), sheet_get_metric(s, "tok_s_shared"), gain);
    sheet_conclude(s, "The quartiles of the two %s.",
                   decoding_is_clear(s, "private", "shared") ? "do not overlap: a clear difference"
                   : 100 * high > 100 + PLOT_SAME_PCT || 100 * low < 100 - PLOT_SAME_PCT
                       ? "are wide and overlap: too noisy to tell"
                       : "overlap: no clear difference");
}
