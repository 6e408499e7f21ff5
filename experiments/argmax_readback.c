/* argmax_readback: a token with the argmax on the device against one whose logits, 192 KB of a
 * SmolLM, are read and searched by the CPU, with private and with shared scratch. */
#include "decoding.h"

EXPERIMENT(
    argmax_readback, .order = 120,
    .question = "Is it faster to choose the token on the GPU than to read the logits?",
    .claim = "with private scratch 257 to 291.9 tok/s",
    .finding = "Choosing the token on the GPU is {speedup_argmax} times as fast as reading the "
               "logits: {tok_s_argmax} against {tok_s_readback} tokens per second",
    .how = "wall time from the call until the token is known, all variants interleaved; tokens and "
           "logits compared with those of a checked pass",
    .has_model = true);

static bool run(lab *l, sheet *s, err *e) {
    lab_decoder d[2] = {{.model = NULL}};
    model_options how[2] = {{.context = 64}, {.context = 64, .shared_scratch = true}};
    bool ok =
        lab_open_decoder(l, &how[0], 0, &d[0], e) && lab_open_decoder(l, &how[1], 0, &d[1], e);
    const decoding_way ways[] = {{"argmax", &d[0], PLAY_WHOLE, true, NULL, 0},
                                 {"readback", &d[0], PLAY_WHOLE, false, NULL, 0},
                                 {"argmax_shared", &d[1], PLAY_WHOLE, true, NULL, 0},
                                 {"readback_shared", &d[1], PLAY_WHOLE, false, NULL, 0}};
    ok = ok && decoding_time(l, s, ways, 4, e);
    if (ok)
        sheet_add_note(s, "logits", "%zu bytes per token",
                       model_get_shape(d[0].model)->vocab * sizeof(float));
    lab_close_decoder(&d[0]);
    lab_close_decoder(&d[1]);
    return ok;
}

static void conclude(sheet *s) {
    double gain = decoding_find_ratio(s, "argmax", "readback");
    double both = decoding_find_ratio(s, "argmax", "readback_shared");
    double argmax = sheet_find(s, "tok_s", "variant", "argmax", NULL);
    double readback = sheet_find(s, "tok_s", "variant", "readback", NULL);
    double low, high;
    decoding_add_rate(s, "tok_s_argmax", "argmax");
    decoding_add_rate(s, "tok_s_readback", "readback");
    decoding_add_rate(s, "tok_s_argmax_shared", "argmax_shared");
    decoding_add_rate(s, "tok_s_readback_shared", "readback_shared");
    sheet_add_metric(s, "speedup_argmax", gain, "x");
    sheet_add_metric(s, "speedup_argmax_and_private", both, "x");
    decoding_find_ratios(s, "argmax", "readback_shared", &low, &high);
    sheet_add_spread(s, "speedup_argmax_and_private", low, high);
    sheet_conclude(s,
                   "Argmax on the device: %.4g tok/s; logits read and searched by the CPU: %.4g "
                   "tok/s. The ratio is %.3g, and the quartiles %s.",
                   argmax, readback, gain,
                   decoding_is_clear(s, "argmax", "readback") ? "do not overlap"
                                                              : "overlap: too noisy to tell");
    sheet_conclude(s, "With private instead of shared scratch as well, the ratio is %.3g.", both);
}
