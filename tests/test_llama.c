/* The llama model: what its tapes compute, whichever way they are played; how full its cache can
 * get; which files it refuses. On models of random weights made here, on the one that ships and,
 * where it is, on a real one. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models.h"
#include "runner/generate/generate.h"
#include "runner/model/check.h"
#include "support.h"

enum { CONTEXT = 160 };

static err e;

/* Of a tiny model of random weights of a type. */
static model *open_model(const char *type, uint32_t context, uint32_t tile) {
    const model_options o = {.context = context, .tile = tile};
    return models_open(models_make("tiny", type, 7, &e), &o, &e);
}

static void draw_tokens(uint32_t *tokens, size_t count, uint32_t vocab, const char *name) {
    rng r = rng_new(1, name);
    for (size_t i = 0; i < count; i++)
        tokens[i] = rng_below(&r, vocab);
}

/* --- what is computed --- */

TEST a_model_passes_its_check(const char *type) {
    model *m = open_model(type, CONTEXT, 0);
    ASSERT_OK(m);
    uint32_t prompt[20];
    draw_tokens(prompt, 20, model_get_shape(m)->vocab, "check");
    model_check_options o = {
        .prompt = prompt, .prompt_tokens = 20, .tokens = 12, .reference_tokens = 20};
    model_report report;
    ASSERT_OK(model_check(m, &o, &report, &e));
    for (size_t i = 0; i < report.count; i++)
        ASSERTm(report.rows[i].found, report.rows[i].passed);
    ASSERT_EQ(6, report.count);
    PASS();
}

TEST a_prompt_of_any_length_is_its_tokens_one_by_one(void) {
    static const size_t lengths[] = {1, 2, 3, 7, 8, 9, 32, 63, 64, 100};
    model *one = open_model("Q4_0", CONTEXT, 0), *many = open_model("Q4_0", CONTEXT, 0);
    ASSERT_OK(one && many);
    uint32_t vocab = model_get_shape(one)->vocab, tokens[100], next[2];
    float *a = models_new_logits(one), *b = models_new_logits(one);
    draw_tokens(tokens, 100, vocab, "lengths");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        model_rewind(one, 0);
        model_rewind(many, 0);
        for (size_t t = 0; t < lengths[i]; t++)
            ASSERT_OK(model_forward_token(one, tokens[t], PLAY_WHOLE, a, NULL, &e));
        ASSERT_OK(model_forward_prompt(many, tokens, lengths[i], PLAY_WHOLE, b, NULL, &e));
        ASSERT_EQ(lengths[i], model_get_position(many));
        ASSERT(support_get_distance(b, a, vocab) <= 1e-5);
        /* and what follows sees the same cache */
        ASSERT_OK(model_forward_greedy(one, 5, PLAY_WHOLE, &next[0], NULL, &e));
        ASSERT_OK(model_forward_greedy(many, 5, PLAY_WHOLE, &next[1], NULL, &e));
        ASSERT_EQ(next[0], next[1]);
    }
    PASS();
}

TEST a_small_tile_gives_what_a_large_one_gives(void) {
    model *small = open_model("Q8_0", CONTEXT, 5), *large = open_model("Q8_0", CONTEXT, 64);
    ASSERT_OK(small && large);
    uint32_t vocab = model_get_shape(small)->vocab, tokens[43];
    float *a = models_new_logits(small), *b = models_new_logits(small);
    draw_tokens(tokens, 43, vocab, "tiles");
    ASSERT_OK(model_forward_prompt(small, tokens, 43, PLAY_WHOLE, a, NULL, &e));
    ASSERT_OK(model_forward_prompt(large, tokens, 43, PLAY_WHOLE, b, NULL, &e));
    ASSERT(support_get_distance(a, b, vocab) <= 1e-5);
    PASS();
}

TEST what_a_prompt_left_in_the_buffers_does_not_reach_the_next(void) {
    model *used = open_model("Q4_0", CONTEXT, 0), *fresh = open_model("Q4_0", CONTEXT, 0);
    ASSERT_OK(used && fresh);
    uint32_t vocab = model_get_shape(used)->vocab, first[90], second[33];
    float *a = models_new_logits(used), *b = models_new_logits(used);
    draw_tokens(first, 90, vocab, "first");
    draw_tokens(second, 33, vocab, "second");
    ASSERT_OK(model_forward_prompt(used, first, 90, PLAY_WHOLE, a, NULL, &e));
    model_rewind(used, 0);
    ASSERT_OK(model_forward_prompt(used, second, 33, PLAY_WHOLE, a, NULL, &e));
    ASSERT_OK(model_forward_prompt(fresh, second, 33, PLAY_WHOLE, b, NULL, &e));
    ASSERT_MEM_EQ(b, a, vocab * sizeof *a);
    PASS();
}

/* --- the cache --- */

TEST the_context_can_be_filled_to_the_last_slot_and_no_further(void) {
    enum { SLOTS = 24, PROMPT = 20 };
    model *m = open_model("Q4_0", SLOTS, 0);
    ASSERT_OK(m);
    uint32_t vocab = model_get_shape(m)->vocab, tokens[SLOTS + 1], next = 0;
    float *logits = models_new_logits(m);
    draw_tokens(tokens, SLOTS + 1, vocab, "full");
    ASSERT_FALSE(model_forward_prompt(m, tokens, SLOTS + 1, PLAY_WHOLE, logits, NULL, &e));
    ASSERT_EQ(EXIT_USAGE, e.code);
    ASSERT(strstr(e.text, "25 tokens do not fit into a context of 24"));
    ASSERT_EQ(0, model_get_position(m));
    ASSERT_OK(model_forward_prompt(m, tokens, PROMPT, PLAY_WHOLE, logits, NULL, &e));
    ASSERT_EQ(SLOTS - PROMPT, model_get_room(m));
    for (int i = PROMPT; i < SLOTS; i++)
        ASSERT_OK(model_forward_greedy(m, tokens[i], PLAY_WHOLE, &next, NULL, &e));
    ASSERT_EQ(0, model_get_room(m));
    ASSERT_FALSE(model_forward_greedy(m, next, PLAY_WHOLE, &next, NULL, &e));
    ASSERT_EQ(EXIT_USAGE, e.code);
    ASSERT_FALSE(model_forward_token(m, next, PLAY_WHOLE, logits, NULL, &e));
    ASSERT_EQ(SLOTS, model_get_position(m));
    PASS();
}

typedef struct {
    uint32_t tokens[64];
    size_t count, stop_after;
} heard;

static bool hear(void *context, uint32_t token) {
    heard *h = context;
    h->tokens[h->count++] = token;
    return h->count < h->stop_after;
}

static bool generate_tokens(model *m, uint32_t in_flight, const sampler_settings *s,
                            const uint32_t *prompt, size_t count, size_t max, heard *h,
                            generate_report *r) {
    generate_options o = {.max_tokens = max, .in_flight = in_flight, .emit = hear, .context = h};
    sampler *chooser = sampler_new(s, model_get_shape(m)->vocab);
    model_rewind(m, 0);
    h->count = 0;
    bool ok = generate(m, chooser, prompt, count, &o, r, &e);
    sampler_free(chooser);
    return ok;
}

TEST generation_ends_where_the_context_does(void) {
    model *m = open_model("Q4_0", 16, 0);
    ASSERT_OK(m);
    uint32_t prompt[10];
    draw_tokens(prompt, 10, model_get_shape(m)->vocab, "end");
    sampler_settings greedy = SAMPLER_DEFAULTS, drawn = greedy;
    drawn.temperature = 1;
    heard h = {.stop_after = 64};
    generate_report r;
    ASSERT_OK(generate_tokens(m, 4, &greedy, prompt, 10, 50, &h, &r));
    ASSERT_EQ(END_CONTEXT, r.end);
    ASSERT_EQ(7, h.count); /* one after the prompt, one after each of 6 slots */
    ASSERT_OK(generate_tokens(m, 1, &drawn, prompt, 10, 50, &h, &r));
    ASSERT_EQ(END_CONTEXT, r.end);
    ASSERT_EQ(7, h.count);
    PASS();
}

TEST tokens_in_flight_behind_a_stop_are_forgotten(void) {
    model *m = open_model("Q4_0", CONTEXT, 0);
    ASSERT_OK(m);
    uint32_t prompt[10];
    draw_tokens(prompt, 10, model_get_shape(m)->vocab, "flight");
    sampler_settings greedy = SAMPLER_DEFAULTS;
    heard all = {.stop_after = 64}, cut = {.stop_after = 5};
    generate_report r;
    ASSERT_OK(generate_tokens(m, 1, &greedy, prompt, 10, 30, &all, &r));
    ASSERT_EQ(END_COUNT, r.end);
    ASSERT_EQ(30, all.count);
    for (uint32_t depth = 1; depth <= MODEL_IN_FLIGHT; depth += 5) {
        ASSERT_OK(generate_tokens(m, depth, &greedy, prompt, 10, 30, &cut, &r));
        ASSERT_EQ(END_CALLER, r.end);
        ASSERT_EQ(5, cut.count);
        ASSERT_MEM_EQ(all.tokens, cut.tokens, 5 * sizeof *cut.tokens);
        ASSERT_EQ(14, model_get_position(m)); /* the fifth was chosen, not fed */
        ASSERT_OK(model_forward_greedy(m, cut.tokens[4], PLAY_WHOLE, &cut.tokens[5], NULL, &e));
        ASSERT_EQ(all.tokens[5], cut.tokens[5]);
    }
    PASS();
}

TEST an_empty_prompt_and_unknown_tokens_are_refused(void) {
    model *m = open_model("Q4_0", CONTEXT, 0);
    ASSERT_OK(m);
    uint32_t vocab = model_get_shape(m)->vocab, tokens[2] = {0, vocab}, next;
    float *logits = models_new_logits(m);
    ASSERT_FALSE(model_forward_prompt(m, tokens, 0, PLAY_WHOLE, logits, NULL, &e));
    ASSERT_FALSE(model_forward_prompt(m, tokens, 2, PLAY_WHOLE, logits, NULL, &e));
    ASSERT(strstr(e.text, "there is no token"));
    ASSERT_FALSE(model_forward_greedy(m, vocab, PLAY_WHOLE, &next, NULL, &e));
    ASSERT_EQ(0, model_get_position(m));
    PASS();
}

/* --- models with text --- */

static char text[4096];
static size_t text_bytes;
static const tokenizer *speller;

static bool spell(void *context, uint32_t token) {
    (void)context;
    gguf_text piece = tokenizer_get_piece(speller, token, false);
    if (text_bytes + piece.bytes < sizeof text) {
        memcpy(text + text_bytes, piece.data, piece.bytes);
        text_bytes += piece.bytes;
    }
    text[text_bytes] = 0;
    return true;
}

TEST a_prompt_gives_its_text(const char *path, const char *prompt, const char *want) {
    char full[1024];
    snprintf(full, sizeof full, "%s", support_get_path(path));
    if (access(full, R_OK) != 0)
        SKIPm("the model is not there: make model");
    gguf *g = models_keep(gguf_open(full, &e));
    ASSERT_OK(g);
    tokenizer *t = tokenizer_new(g, &e);
    ASSERT_OK(t);
    model *m = models_open(g, &(model_options){.context = 128}, &e);
    ASSERT_OK(m);
    token_list ids = {0};
    tokenizer_encode(t, prompt, strlen(prompt), TOKENIZE_ADD_SPECIAL, &ids);
    sampler_settings greedy = SAMPLER_DEFAULTS;
    sampler *s = sampler_new(&greedy, model_get_shape(m)->vocab);
    generate_options o = {.max_tokens = 16, .tokenizer = t, .emit = spell};
    generate_report r;
    speller = t;
    text_bytes = 0;
    ASSERT_OK(generate(m, s, ids.items, ids.count, &o, &r, &e));
    ASSERT_STR_EQ(want, text);
    sampler_free(s);
    token_list_free(&ids);
    tokenizer_free(t);
    PASS();
}

SUITE(llama_suite) {
    if (!models_begin(&e))
        return;
    RUN_TESTp(a_model_passes_its_check, "Q4_0");
    RUN_TESTp(a_model_passes_its_check, "Q8_0");
    RUN_TESTp(a_model_passes_its_check, "F16");
    RUN_TESTp(a_model_passes_its_check, "F32");
    RUN_TEST(a_prompt_of_any_length_is_its_tokens_one_by_one);
    RUN_TEST(a_small_tile_gives_what_a_large_one_gives);
    RUN_TEST(what_a_prompt_left_in_the_buffers_does_not_reach_the_next);
    RUN_TEST(the_context_can_be_filled_to_the_last_slot_and_no_further);
    RUN_TEST(generation_ends_where_the_context_does);
    RUN_TEST(tokens_in_flight_behind_a_stop_are_forgotten);
    RUN_TEST(an_empty_prompt_and_unknown_tokens_are_refused);
    /* prompts with a clear best token at every step: the last bit of a logit decides nothing */
    RUN_TESTp(a_prompt_gives_its_text, "models/assay-tiny.gguf", "To cast a bell,",
              " the founder first makes a mould of clay. Then bronze is melted in a");
    RUN_TESTp(a_prompt_gives_its_text, "models/assay-tiny.gguf",
              "Question: What is the melting point of gold?",
              "\nAnswer: The melting point of gold is 1064 degrees.");
    RUN_TESTp(a_prompt_gives_its_text, "models/smollm2-135m-instruct-q4_1.gguf",
              "The capital of France is", " Paris.\n\nThe answer is: 2018-01");
    models_end();
}
