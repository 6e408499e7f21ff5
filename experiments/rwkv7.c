/* rwkv7: how fast does RWKV-7 write, and what do its synchronisations cost?
 *
 * Published for an Apple M4: 55 tok/s on WebGPU, 10 with a sync after every op (1600 per token: 50 ops
 * in 32 layers), 207 by its kernels alone; targets of 150 tok/s with 64 syncs, 200 tok/s for
 * prompts, 20 ms to the first token and 2.5 GB.
 *
 * Measured: the same greedy token as one command buffer, one per layer and one per launch, each waited
 * for, interleaved; then a prompt in one pass, up to its last logits. The model is the RWKV-7 given
 * with -m, else the small one that ships. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoding.h"
#include "harness/base/os.h"
#include "harness/measure/fit.h"

enum { PROMPT = 32, SMOKE_PROMPT = 4, WAYS = 3 };
static const char *const variants[WAYS] = {"token", "layer", "launch"};

typedef struct {
    model *model;
    uint32_t tokens[PROMPT];
    size_t count;
    float *logits;
} prompt;

static bool take(void *context, timing_sample *out, err *e) {
    prompt *p = context;
    play_times t = {0};
    model_rewind(p->model, 0);
    if (!model_settle(p->model, e))
        return false;
    uint64_t start = os_now_ns();
    bool ok = model_forward_prompt(p->model, p->tokens, p->count, PLAY_WHOLE, p->logits, &t, e);
    *out = (timing_sample){(double)t.gpu_ns, (double)t.encode_ns, (double)(os_now_ns() - start),
                           t.gpu_is_wall};
    return ok;
}

static bool time_prompt(lab *l, sheet *s, model *m, err *e) {
    uint32_t vocab = model_get_shape(m)->vocab;
    prompt p = {.model = m, .count = lab_get_level(l) == LEVEL_SMOKE ? SMOKE_PROMPT : PROMPT};
    measurement c = {.source = {take, &p}, .samples = 5};
    p.logits = malloc(vocab * sizeof *p.logits);
    assert(p.logits);
    lab_draw_tokens(l, vocab, p.tokens, p.count);
    snprintf(c.key, sizeof c.key, "prompt");
    bool ok = lab_time(l, &c, 1, e);
    if (ok) {
        sheet_add_row(s);
        sheet_put_text(s, "variant", "prompt");
        sheet_put_text(s, "model", lab_get_model_name(l));
        sheet_put(s, "tokens", (double)p.count);
        lab_put(l, s, &c);
        sheet_put(s, "tok_s",
                  1e9 * (double)p.count / sheet_get(s, sheet_count_rows(s) - 1, "wall_ns"));
    }
    lab_close_cases(&c, 1);
    free(p.logits);
    return ok;
}

static bool run(lab *l, sheet *s, err *e) {
    lab_decoder d;
    model_options o = {.context = 64};
    bool ok = lab_open_decoder(l, &o, 0, &d, e);
    const decoding_way ways[WAYS] = {{variants[0], &d, PLAY_WHOLE, true, NULL, 0},
                                     {variants[1], &d, PLAY_MARKS, true, NULL, 0},
                                     {variants[2], &d, PLAY_LAUNCHES, true, NULL, 0}};
    ok = ok && decoding_time(l, s, ways, WAYS, e) && time_prompt(l, s, d.model, e);
    if (ok) {
        model_memory m = model_get_memory(d.model);
        sheet_put(s, "memory_gb", 1e-9 * (double)(m.weights + m.state + m.scratch));
    }
    lab_close_decoder(&d);
    return ok;
}

static void conclude(sheet *s) {
    double rows[2 * WAYS], times[WAYS], buffers[WAYS];
    for (int i = 0; i < WAYS; i++) {
        buffers[i] = sheet_find(s, "command_buffers", "variant", variants[i], NULL);
        rows[2 * i] = 1;
        rows[2 * i + 1] = buffers[i];
        times[i] = 1e-6 * sheet_find(s, "wall_ns", "variant", variants[i], NULL);
    }
    fit f;
    double sync = fit_parts(rows, times, WAYS, 2, &f, NULL) ? f.value[1] : NAN;
    double reads = sheet_find(s, "tok_s", "variant", "prompt", NULL);
    double first = 1e-6 * sheet_find(s, "wall_ns", "variant", "prompt", NULL);
    double memory = sheet_find(s, "memory_gb", "variant", "prompt", NULL);
    decoding_add_rate(s, "rwkv_tok_s_one", "token");
    decoding_add_rate(s, "rwkv_tok_s_many", "launch");
    sheet_add_metric(s, "rwkv_syncs", buffers[2], "count");
    sheet_add_metric(s, "rwkv_syncs_few", buffers[1], "count");
    sheet_add_metric(s, "rwkv_sync_ms", sync, "ms");
    sheet_add_metric(s, "rwkv_tok_s", reads, "tok/s");
    sheet_add_metric(s, "rwkv_first_token_ms", first, "ms");
    sheet_add_metric(s, "rwkv_memory_gb", memory, "GB");
    sheet_conclude(s,
                   "One command buffer per token: %.4g tok/s; one per layer (%.0f): %.4g; one per "
                   "launch (%.0f): %.4g. Each additional one costs %.3g ms.",
                   1e3 / times[0], buffers[1], 1e3 / times[1], buffers[2], 1e3 / times[2], sync);
    sheet_conclude(s,
                   "A prompt of %.0f tokens is read at %.4g tok/s, its first token is known after "
                   "%.3g ms, and the model takes %.3g GB.",
                   sheet_find(s, "tokens", "variant", "prompt", NULL), reads, first, memory);
}

EXPERIMENT(rwkv7) = {
    .name = "rwkv7",
    .order = 145,
    .question = "How fast does RWKV-7 write, and what do its synchronisations cost?",
    .claim = "10 tok/s with 1600 syncs per token of about 1 ms, 207 by its kernels alone; 64 syncs "
             "are enough",
    .how = "wall time from the call until the token is known, the three variants interleaved; "
           "prompts from the call until the last logits are read; every token compared with the "
           "argmax of logits that were checked launch by launch",
    .has_model = true,
    .family = "rwkv7",
    .run = run,
    .conclude = conclude,
};
