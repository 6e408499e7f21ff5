/* command_buffers: one command buffer, one per layer, three per layer and one for the rest (91 for
 * 30 layers), and one per launch, each waited for. What was published for RWKV-7 is the question of
 * rwkv7_command_buffers.c. */
#include <stdlib.h>

#include "decoding.h"
#include "harness/base/array.h"

EXPERIMENT(
    command_buffers, .order = 100,
    .question = "What does it cost to run a token as many command buffers instead of one?",
    .claim = "91 per token give 75 tok/s, 1 gives 257",
    .finding = "One command buffer per token is {one_over_many} times as fast as one per launch; "
               "each additional one costs {sync_us} µs",
    .how = "wall time from the call until the token is known, the four variants interleaved; every "
           "token compared with the argmax of logits that were checked launch by launch",
    .has_model = true);

enum { THIRDS = 3 };

/* Marks at each third of each layer and at the end of the last one. What stands before the first layer
 * goes with it. The caller frees them. */
static mark *split_layers(const tape *t, uint32_t layers, size_t *count) {
    mark *all = array_new(THIRDS * (size_t)layers + 1, sizeof *all);
    *count = 0;
    for (uint32_t i = 0; i < layers; i++) {
        size_t first, end;
        if (!model_find_layer(t, i, &first, &end))
            continue;
        for (size_t k = i == 0 ? 1 : 0; k < THIRDS; k++)
            all[(*count)++].at = first + k * (end - first) / THIRDS;
        if (i + 1 == layers)
            all[(*count)++].at = end;
    }
    return all;
}

static bool run(lab *l, sheet *s, err *e) {
    lab_decoder d;
    model_options o = {.context = 64};
    bool ok = lab_open_decoder(l, &o, 0, &d, e);
    tape *t = ok ? model_get_token_tape(d.model, true, e) : NULL;
    size_t count = 0;
    mark *thirds = t ? split_layers(t, model_get_shape(d.model)->layers, &count) : NULL;
    const decoding_way ways[] = {{"token", &d, PLAY_WHOLE, true, NULL, 0},
                                 {"layer", &d, PLAY_MARKS, true, NULL, 0},
                                 {"third", &d, PLAY_MARKS, true, thirds, count},
                                 {"launch", &d, PLAY_LAUNCHES, true, NULL, 0}};
    ok = t && decoding_time(l, s, ways, sizeof ways / sizeof *ways, e);
    free(thirds);
    lab_close_decoder(&d);
    return ok;
}

static void conclude(sheet *s) {
    double one = sheet_find(s, "tok_s", "variant", "token", NULL);
    double layer = sheet_find(s, "tok_s", "variant", "layer", NULL);
    double many = sheet_find(s, "tok_s", "variant", "launch", NULL);
    double buffers = sheet_find(s, "command_buffers", "variant", "launch", NULL);
    double third = sheet_find(s, "tok_s", "variant", "third", NULL);
    double thirds = sheet_find(s, "command_buffers", "variant", "third", NULL);
    double token_us = 1e-3 * sheet_find(s, "wall_ns", "variant", "token", NULL), rest_us, sync;
    sheet_fit_line(s, NULL, "command_buffers", "wall_ns", &rest_us, &sync);
    decoding_add_rate(s, "tok_s_one", "token");
    decoding_add_rate(s, "tok_s_layer", "layer");
    decoding_add_rate(s, "tok_s_many", "launch");
    decoding_add_rate(s, "tok_s_three_per_layer", "third");
    sheet_add_metric(s, "buffers_three_per_layer", thirds, "count");
    sheet_add_metric(s, "buffers_a_token_per_op", buffers, "count");
    sheet_add_metric(s, "sync_us", sync, "us");
    sheet_add_metric(s, "one_over_many", one / many, "x");
    sheet_conclude(s,
                   "One command buffer per token: %.4g tok/s; one per layer: %.4g; three per layer "
                   "(%.0f): %.4g; "
                   "one per launch (%.0f): %.4g. One is %.3g times as fast as %.0f.",
                   one, layer, thirds, third, buffers, many, one / many, buffers);
    sheet_conclude(s, "Each additional command buffer costs %.3g µs, %.3g %% of a token.", sync,
                   100 * sync / token_us);
}
