#include "model_bench.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/check/fill.h"
#include "tokenizer.h"

void bench_test_get_name(const bench_test *t, char *text, size_t size) {
    char depth[24] = "";
    if (t->depth)
        snprintf(depth, sizeof depth, " @ d%u", t->depth);
    snprintf(text, size, "%s%u%s", t->prompt ? "pp" : "tg", t->prompt ? t->prompt : t->generate,
             depth);
}

typedef struct {
    model *model;
    rng random;
    uint32_t bos;
    uint32_t *tokens; /* room for the longest prompt of the test */
    float *logits;
} bench;

static void draw_tokens(bench *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        b->tokens[i] = rng_below(&b->random, model_get_shape(b->model)->vocab);
    if (b->bos != TOKEN_NONE && model_get_position(b->model) == 0)
        b->tokens[0] = b->bos;
}

static bool play_prompt(bench *b, uint32_t count, err *e) {
    draw_tokens(b, count);
    return model_forward_prompt(b->model, b->tokens, count, PLAY_WHOLE, b->logits, NULL, e);
}

/* The device feeds itself: steps are handed to it ahead, so that it never waits for the CPU. */
static bool play_tokens(bench *b, uint32_t count, err *e) {
    uint32_t submitted = 0, collected = 0, ignored;
    draw_tokens(b, 1);
    bool ok = model_start_greedy(b->model, b->tokens[0], e);
    while (ok && collected < count) {
        while (ok && submitted < count && submitted - collected < BENCH_IN_FLIGHT) {
            ok = model_submit_greedy(b->model, e);
            submitted += ok;
        }
        if (!ok)
            break;
        ok = model_collect_greedy(b->model, &ignored, NULL, e);
        collected++;
    }
    for (err unused; collected < submitted; collected++)
        model_collect_greedy(b->model, &ignored, NULL, &unused);
    return ok;
}

static bool play_test(bench *b, const bench_test *t, err *e) {
    return t->prompt ? play_prompt(b, t->prompt, e) : play_tokens(b, t->generate, e);
}

static bool prepare(bench *b, const bench_test *t, err *e) {
    model_rewind(b->model, 0);
    if ((t->depth && !play_prompt(b, t->depth, e)) || !model_keep(b->model, e))
        return false;
    bench_test once = *t;
    if (once.generate > BENCH_IN_FLIGHT &&
        !model_changes_tape(b->model, t->depth, t->depth + t->generate))
        once.generate = BENCH_IN_FLIGHT;
    return play_test(b, &once, e);
}

static void summarise(bench_result *r) {
    uint32_t n = r->repeats;
    double tokens = r->test.prompt + r->test.generate, ns = 0, rate = 0, ns_off = 0, rate_off = 0;
    double *rates = array_new(n, sizeof *rates);
    for (uint32_t i = 0; i < n; i++) {
        rates[i] = 1e9 * tokens / (double)r->sample_ns[i];
        ns += (double)r->sample_ns[i] / n;
        rate += rates[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        ns_off += ((double)r->sample_ns[i] - ns) * ((double)r->sample_ns[i] - ns);
        rate_off += (rates[i] - rate) * (rates[i] - rate);
    }
    r->mean_ns = ns;
    r->mean_rate = rate;
    r->deviation_ns = n > 1 ? sqrt(ns_off / (n - 1)) : 0;
    r->deviation_rate = n > 1 ? sqrt(rate_off / (n - 1)) : 0;
    r->rates = stats_compute(rates, n);
    free(rates);
}

bool model_bench(model *m, const bench_test *t, uint32_t repeats, uint32_t bos, uint64_t seed,
                 bench_result *out, err *e) {
    assert(repeats > 0 && (t->prompt == 0) != (t->generate == 0));
    size_t longest = t->prompt > t->depth ? t->prompt : t->depth;
    bench b = {.model = m, .random = rng_new(seed, "model bench"), .bos = bos};
    b.tokens = array_new(longest + 1, sizeof *b.tokens);
    b.logits = array_new(model_get_shape(m)->vocab, sizeof *b.logits);
    *out = (bench_result){.test = *t, .repeats = repeats, .time = (int64_t)time(NULL)};
    out->sample_ns = array_new(repeats, sizeof *out->sample_ns);
    bool ok = prepare(&b, t, e);
    for (uint32_t i = 0; ok && i < repeats; i++) {
        model_rewind(m, t->depth);
        ok = model_settle(m, e);
        uint64_t start = os_now_ns();
        ok = ok && play_test(&b, t, e);
        out->sample_ns[i] = os_now_ns() - start;
    }
    if (ok)
        summarise(out);
    free(b.tokens);
    free(b.logits);
    return ok;
}
