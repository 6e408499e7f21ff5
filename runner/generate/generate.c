#include "generate.h"

#include <assert.h>
#include <stdlib.h>

#include "harness/base/os.h"
#include "runner/model/nonfinite.h"

enum { IN_FLIGHT = 2 }; /* one runs while the CPU handles the one before */

typedef struct {
    model *model;
    sampler *sampler;
    const generate_options *options;
    generate_report *report;
    float *logits;   /* (vocab) */
    token_list seen; /* the prompt, and what was generated */
    bool from_start; /* of the model: nothing came before the prompt */
} run;

const char *end_reason_get_text(end_reason r) {
    static const char *const texts[] = {[END_COUNT] = "token limit reached",
                                        [END_TOKEN] = "end of text",
                                        [END_CONTEXT] = "context full",
                                        [END_CALLER] = "stopped"};
    return texts[r];
}

/* Logits that are not finite are an error, which names the launch that they come from. */
static bool check_logits(run *r, err *e) {
    uint32_t vocab = model_get_shape(r->model)->vocab;
    if (nonfinite_find(r->logits, vocab) == vocab)
        return true;
    nonfinite n;
    char where[220] = "";
    err ignored;
    model_rewind(r->model, 0);
    size_t room = model_get_room(r->model), count = r->seen.count < room ? r->seen.count : room;
    if (r->from_start && model_trace(r->model, r->seen.items, count, &n, &ignored) && n.found)
        nonfinite_print(&n, where, sizeof where);
    return err_set(e, EXIT_WRONG, "the logits are not finite%s%.220s",
                   where[0] ? "; first in " : "", where);
}

/* Emits a chosen token; false when it is the last. */
static bool take(run *r, uint32_t token) {
    const generate_options *o = r->options;
    if (o->tokenizer && tokenizer_is_end(o->tokenizer, token)) {
        r->report->end = END_TOKEN;
        return false;
    }
    sampler_accept(r->sampler, token);
    token_list_add(&r->seen, token);
    r->report->tokens++;
    if (!o->emit(o->context, token)) {
        r->report->end = END_CALLER;
        return false;
    }
    r->report->end = END_COUNT;
    return r->report->tokens < o->max_tokens;
}

/* Each step waits for the one before. */
static bool decode_on_cpu(run *r, uint32_t token, err *e) {
    while (model_get_room(r->model) > 0) {
        if (!model_forward_token(r->model, token, PLAY_WHOLE, r->logits, NULL, e) ||
            !check_logits(r, e))
            return false;
        r->report->decoded++;
        token = sampler_choose(r->sampler, r->logits);
        if (!take(r, token))
            return true;
    }
    r->report->end = END_CONTEXT;
    return true;
}

static bool take_decoded(void *context, uint32_t token) {
    run *r = context;
    r->report->decoded++;
    if (!take(r, token))
        return false;
    r->report->end = END_CONTEXT; /* unless another token says otherwise */
    return true;
}

/* The device feeds itself; steps submitted after the last token are waited for and dropped. */
static bool decode_on_device(run *r, uint32_t token, err *e) {
    model *m = r->model;
    uint32_t in_flight = r->options->in_flight ? r->options->in_flight : IN_FLIGHT;
    size_t left = r->options->max_tokens - r->report->tokens; /* steps that can still be of use */
    r->report->end = END_CONTEXT;
    if (model_get_room(m) == 0)
        return true;
    if (!model_keep(m, e) || !model_decode_greedy(m, token, left, in_flight, take_decoded, r, e))
        return false;
    /* A NaN stays in the cache or the state, so the last step's logits tell of all steps. */
    return r->report->decoded == 0 || (model_read_logits(m, r->logits, e) && check_logits(r, e));
}

bool generate(model *m, sampler *s, const uint32_t *prompt, size_t count, const generate_options *o,
              generate_report *out, err *e) {
    *out = (generate_report){.prompt_tokens = count, .end = END_COUNT};
    run r = {.model = m,
             .sampler = s,
             .options = o,
             .report = out,
             .logits = malloc(model_get_shape(m)->vocab * sizeof *r.logits),
             .from_start = model_get_position(m) == 0};
    assert(r.logits);
    for (size_t i = 0; i < count; i++) {
        sampler_accept(s, prompt[i]);
        token_list_add(&r.seen, prompt[i]);
    }
    uint64_t start_ns = os_now_ns();
    bool ok = model_forward_prompt(m, prompt, count, PLAY_WHOLE, r.logits, NULL, e);
    uint64_t prompt_ns = os_now_ns();
    out->prefill_ns = prompt_ns - start_ns;
    ok = ok && check_logits(&r, e);
    if (ok && o->max_tokens > 0) {
        uint32_t token = sampler_choose(s, r.logits);
        if (take(&r, token))
            ok = sampler_is_plain_greedy(s) ? decode_on_device(&r, token, e)
                                            : decode_on_cpu(&r, token, e);
        out->decode_ns = os_now_ns() - prompt_ns;
    }
    token_list_free(&r.seen);
    free(r.logits);
    return ok;
}
