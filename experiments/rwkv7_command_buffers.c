/* rwkv7_command_buffers: the same greedy token with one launch per op, as one command buffer per
 * op, per layer and per token, each waited for; and with fused launches as one command buffer. Then
 * a prompt in one pass, and a short prompt to its first token. What was published is a plan for
 * RWKV-7 2.9B, 50 ops in each of 32 layers. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decoding.h"
#include "harness/base/array.h"
#include "harness/measure/fit.h"

EXPERIMENT(
    rwkv7_command_buffers, .order = 105,
    .question = "What do synchronisations cost an RWKV-7, and what does fusing its ops save?",
    .claim =
        "1600 syncs per token leave 10 tok/s, the kernels alone would give 207; targets are 150 "
        "and 200 tok/s, prefill 200 and 400, first token 20 and 10 ms, 2.5 GB",
    .finding = "RWKV-7 writes {rwkv_tok_s_one} tokens per second with fused launches in one "
               "command buffer, {rwkv_tok_s_many} with one command buffer per op",
    .how =
        "wall time from the call until the token is known, the variants interleaved; every token "
        "compared with the argmax of logits that were checked launch by launch",
    .has_model = true, .family = "rwkv7");

enum { PUBLISHED_LAYERS = 32, SHORT_PROMPT = 16 };
static const uint32_t prompts[LEVEL_COUNT] = {512, 64, 8};

/* --- prompts --- */

static void put_prompt(lab *l, sheet *s, const measurement *c, const char *variant, size_t count) {
    sheet_add_variant(s, variant);
    sheet_put_text(s, "model", lab_get_model_name(l));
    sheet_put(s, "tokens", (double)count);
    lab_put(l, s, c);
    double wall_ns = sheet_get(s, sheet_count_rows(s) - 1, "wall_ns");
    sheet_put(s, "tok_s", 1e9 * (double)count / wall_ns);
}

static bool time_prompts(lab *l, sheet *s, model *m, err *e) {
    static const char *const names[] = {"prompt", "first_token"};
    const size_t counts[] = {prompts[lab_get_level(l)], SHORT_PROMPT};
    uint32_t vocab = model_get_shape(m)->vocab, tokens[512 > SHORT_PROMPT ? 512 : SHORT_PROMPT];
    decoding_prompt p[2];
    float *want[2];
    measurement cases[2] = {{.source = {decoding_take_prompt, &p[0]}},
                            {.source = {decoding_take_prompt, &p[1]}}};
    lab_draw_tokens(l, vocab, tokens, sizeof tokens / sizeof *tokens);
    bool ok = true;
    for (size_t i = 0; i < 2; i++) {
        want[i] = array_new(vocab, sizeof(float));
        p[i] = (decoding_prompt){m,      tokens, counts[i], false, array_new(vocab, sizeof(float)),
                                 want[i]};
        strcpy(cases[i].key, names[i]);
        model_rewind(m, 0);
        ok = ok && model_forward_prompt(m, tokens, counts[i], PLAY_WHOLE, want[i], NULL, e);
    }
    ok = ok && lab_time(l, cases, 2, e);
    for (size_t i = 0; ok && i < 2; i++)
        put_prompt(l, s, &cases[i], names[i], counts[i]);
    lab_close_cases(cases, 2);
    for (size_t i = 0; i < 2; i++) {
        free(p[i].logits);
        free(want[i]);
    }
    return ok;
}

/* --- tokens --- */

/* Launches of the last layer, which stands before the head. */
static double count_launches(const tape *t) {
    size_t head = t->mark_count - 1;
    while (head > 1 && strcmp(t->marks[head].name, "head") != 0)
        head--;
    return (double)(t->marks[head].at - t->marks[head - 1].at);
}

/* What the model is, in every row. */
static void put_model(sheet *s, model *ops, model *fused, err *e) {
    const tape *t = model_get_token_tape(ops, true, e), *f = model_get_token_tape(fused, true, e);
    assert(t && f); /* they were played */
    model_memory memory = model_get_memory(fused);
    uint64_t bytes = memory.weights + memory.state + memory.scratch;
    for (size_t r = 0; r < sheet_count_rows(s); r++) {
        sheet_put_at(s, r, "layers", model_get_shape(ops)->layers);
        sheet_put_at(s, r, "ops_per_layer", count_launches(t));
        sheet_put_at(s, r, "fused_per_layer", count_launches(f));
        sheet_put_at(s, r, "memory_bytes", (double)bytes);
    }
}

static bool run(lab *l, sheet *s, err *e) {
    lab_decoder ops = {.model = NULL}, fused = {.model = NULL};
    model_options unfused = {.fusion = FUSION_NONE}, plain = {.fusion = FUSION_BEST};
    bool ok =
        lab_open_decoder(l, &unfused, 0, &ops, e) && lab_open_decoder(l, &plain, 0, &fused, e);
    const decoding_way ways[] = {{"op", &ops, PLAY_LAUNCHES, true, NULL, 0},
                                 {"layer", &ops, PLAY_MARKS, true, NULL, 0},
                                 {"token", &ops, PLAY_WHOLE, true, NULL, 0},
                                 {"fused", &fused, PLAY_WHOLE, true, NULL, 0}};
    ok = ok && decoding_time(l, s, ways, sizeof ways / sizeof *ways, e) &&
         time_prompts(l, s, fused.model, e);
    if (ok)
        put_model(s, ops.model, fused.model, e);
    lab_close_decoder(&ops);
    lab_close_decoder(&fused);
    return ok;
}

static void conclude(sheet *s) {
    static const char *const variants[] = {"op", "layer", "token"};
    double rows[6], times[3];
    for (int i = 0; i < 3; i++) {
        rows[2 * i] = 1;
        rows[2 * i + 1] = sheet_find(s, "command_buffers", "variant", variants[i], NULL);
        times[i] = 1e-6 * sheet_find(s, "wall_ns", "variant", variants[i], NULL);
    }
    fit f;
    double sync = fit_parts(rows, times, 3, 2, &f, NULL) ? f.value[1] : NAN;
    double by_op = sheet_find(s, "tok_s", "variant", "op", NULL);
    double layer = sheet_find(s, "tok_s", "variant", "layer", NULL);
    double token = sheet_find(s, "tok_s", "variant", "token", NULL);
    double fused = sheet_find(s, "tok_s", "variant", "fused", NULL);
    double read = sheet_find(s, "tok_s", "variant", "prompt", NULL);
    double first = 1e-6 * sheet_find(s, "wall_ns", "variant", "first_token", NULL);
    double per_layer = sheet_get(s, 0, "ops_per_layer");
    decoding_add_rate(s, "rwkv_tok_s_many", "op");
    decoding_add_rate(s, "rwkv_tok_s_layer", "layer");
    decoding_add_rate(s, "rwkv_tok_s_unfused", "token");
    decoding_add_rate(s, "rwkv_tok_s_one", "fused");
    sheet_add_metric(s, "rwkv_syncs", (double)PUBLISHED_LAYERS * per_layer, "count");
    sheet_add_metric(s, "rwkv_syncs_few", rows[5], "count");
    sheet_add_metric(s, "rwkv_sync_ms", sync, "ms");
    sheet_add_metric(s, "rwkv_prefill_tok_s", read, "tok/s");
    sheet_add_metric(s, "rwkv_first_token_ms", first, "ms");
    sheet_add_metric(s, "rwkv_memory_gb", 1e-9 * sheet_get(s, 0, "memory_bytes"), "GB");
    sheet_conclude(
        s,
        "%.0f ops per layer: waited for one by one (%.0f per token) %.4g tok/s, per layer "
        "%.4g, per token %.4g; fused into %.0f launches per layer %.4g. A "
        "synchronisation costs %.3g µs.",
        per_layer, rows[1], by_op, layer, token, sheet_get(s, 0, "fused_per_layer"), fused,
        1e3 * sync);
    sheet_conclude(
        s,
        "A prompt is read at %.4g tok/s, %.3g times as fast as it is generated; the first "
        "token after %d takes %.3g ms.",
        read, read / fused, SHORT_PROMPT, first);
}
