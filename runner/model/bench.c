#include "bench.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "runner/tokenizer/tokenizer.h"

void bench_test_get_name(const bench_test *t, char *text, size_t size) {
    char depth[24] = "";
    if (t->depth)
        snprintf(depth, sizeof depth, " @ d%u", t->depth);
    snprintf(text, size, "%s%u%s%s", t->prompt ? "pp" : "tg", t->prompt ? t->prompt : t->generate,
             t->waits ? " wait" : "", depth);
}

size_t bench_list_tests(bench_sizes prompts, bench_sizes tokens, bench_sizes depths, bool waits,
                        bench_test *out) {
    size_t count = 0;
    for (size_t d = 0; d < depths.count; d++) {
        uint32_t depth = (uint32_t)depths.items[d];
        for (size_t i = 0; i < prompts.count; i++)
            if (prompts.items[i] > 0)
                out[count++] = (bench_test){.prompt = (uint32_t)prompts.items[i], .depth = depth};
        for (size_t i = 0; i < tokens.count; i++)
            if (tokens.items[i] > 0)
                out[count++] = (bench_test){
                    .generate = (uint32_t)tokens.items[i], .depth = depth, .waits = waits};
    }
    return count;
}

uint32_t bench_find_context(const bench_test *tests, size_t count) {
    uint32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t needed = tests[i].depth + tests[i].prompt + tests[i].generate;
        most = needed > most ? needed : most;
    }
    return most;
}

static void draw_tokens(bench_player *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        b->tokens[i] = rng_below(&b->random, model_get_shape(b->model)->vocab);
    if (b->bos != TOKEN_NONE && model_get_position(b->model) == 0)
        b->tokens[0] = b->bos;
}

static bool play_prompt(bench_player *b, uint32_t count, err *e) {
    draw_tokens(b, count);
    return model_forward_prompt(b->model, b->tokens, count, PLAY_WHOLE, b->logits, NULL, e);
}

static bool play_waiting(bench_player *b, uint32_t count, err *e) {
    bool ok = true;
    for (uint32_t i = 0; ok && i < count; i++)
        ok = play_prompt(b, 1, e);
    return ok;
}

static bool drop(void *context, uint32_t token) {
    (void)context;
    (void)token;
    return true;
}

/* The device feeds itself: steps are handed to it ahead, so that it never waits for the CPU. */
static bool play_tokens(bench_player *b, uint32_t count, err *e) {
    draw_tokens(b, 1);
    return model_decode_greedy(b->model, b->tokens[0], count, BENCH_IN_FLIGHT, drop, NULL, e);
}

static bool play_test(bench_player *b, const bench_test *t, err *e) {
    return t->prompt  ? play_prompt(b, t->prompt, e)
           : t->waits ? play_waiting(b, t->generate, e)
                      : play_tokens(b, t->generate, e);
}

bool bench_player_open(bench_player *b, model *m, const bench_test *t, uint32_t bos, uint64_t seed,
                       err *e) {
    size_t longest = t->prompt > t->depth ? t->prompt : t->depth;
    *b = (bench_player){.model = m, .test = *t, .random = rng_new(seed, "model bench"), .bos = bos};
    b->tokens = array_new(longest + 1, sizeof *b->tokens);
    b->logits = array_new(model_get_shape(m)->vocab, sizeof *b->logits);
    model_rewind(m, 0);
    b->is_filled = t->depth >= BENCH_FILLED_DEPTH && model_has_cache(m);
    if (b->is_filled ? !model_fill_cache(m, t->depth, seed, e)
                     : t->depth && !play_prompt(b, t->depth, e))
        return false;
    if (!model_keep(m, e))
        return false;
    bench_test once = *t;
    if (once.generate > BENCH_IN_FLIGHT && !model_changes_tape(m, t->depth, t->depth + t->generate))
        once.generate = BENCH_IN_FLIGHT;
    return play_test(b, &once, e);
}

bool bench_player_play(bench_player *b, uint64_t *ns, err *e) {
    model_rewind(b->model, b->test.depth);
    bool ok = model_settle(b->model, e);
    uint64_t start = os_now_ns();
    ok = ok && play_test(b, &b->test, e);
    *ns = os_now_ns() - start;
    return ok;
}

void bench_player_close(bench_player *b) {
    free(b->tokens);
    free(b->logits);
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
    bench_player b;
    assert(repeats > 0 && (t->prompt == 0) != (t->generate == 0));
    *out = (bench_result){.test = *t, .repeats = repeats, .time = (int64_t)time(NULL)};
    out->sample_ns = array_new(repeats, sizeof *out->sample_ns);
    bool ok = bench_player_open(&b, m, t, bos, seed, e);
    for (uint32_t i = 0; ok && i < repeats; i++)
        ok = bench_player_play(&b, &out->sample_ns[i], e);
    out->is_filled = b.is_filled;
    if (ok)
        summarise(out);
    bench_player_close(&b);
    return ok;
}
