/* Tests of tapes by depth: a model records one tape per way of attention, and the position of a step
 * decides which is played. The texts are the same whichever it is. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "models.h"
#include "runner/choice/tuned.h"
#include "runner/model/bench.h"
#include "runner/model/check.h"
#include "runner/tokenizer/tokenizer.h"
#include "support.h"

SUITE(depth_suite);

static gguf *file;
static tuned *table;
static model *plain, *m;
static err e;

enum { FEW = 60, MANY = 76 }; /* before and after the 64 keys where the table changes its mind */

static void put(tuned *t, uint32_t keys, const char *way) {
    tuned_row r = {.choice = {&decode_attention_op, NULL, false, {{keys, 6, 2, 32}}}};
    r.way = choice_find_way(&r.choice, way, &e);
    tuned_put(t, &r);
}

static tuned *make_table(void) {
    tuned *t = tuned_new();
    put(t, 64, "decode_attention_threadgroup");
    put(t, 128, "attention_ranges:2");
    return t;
}

/* The shipped model by the rules, and with the table. */
static bool open_both(void) {
    tuned_free(table);
    table = make_table();
    file = models_keep(gguf_open(support_get_path("models/assay-tiny.gguf"), &e));
    plain = models_open(file, &(model_options){.context = 128}, &e);
    m = models_open(file, &(model_options){.context = 128, .tuned = table}, &e);
    return plain && m;
}

static bool is_ranges(void) {
    const tape *t = model_get_token_tape(m, true, &e);
    bool is_one_launch = false;
    for (size_t i = 0; t && i < t->count; i++)
        is_one_launch = is_one_launch || strcmp(t->launches[i].pipeline->kernel,
                                                "decode_attention_threadgroup") == 0;
    return t && !is_one_launch;
}

static bool feed(model *of, const uint32_t *tokens, uint32_t from, uint32_t to, float *logits) {
    for (uint32_t i = from; i < to; i++)
        if (!model_forward_token(of, tokens[i], PLAY_WHOLE, logits, NULL, &e))
            return false;
    return true;
}

/* All steps are submitted before the first is collected. */
static bool decode_in_flight(model *of, uint32_t first, uint32_t *out) {
    bool ok = model_start_greedy(of, first, &e);
    for (int i = 0; ok && i < MODEL_IN_FLIGHT; i++)
        ok = model_submit_greedy(of, &e);
    for (int i = 0; ok && i < MODEL_IN_FLIGHT; i++)
        ok = model_collect_greedy(of, &out[i], NULL, &e);
    return ok;
}

TEST the_position_of_a_step_decides_which_tape_is_played(void) {
    ASSERT_OK(open_both());
    uint32_t tokens[MANY], vocab = model_get_shape(m)->vocab, wanted[MODEL_IN_FLIGHT],
                           got[MODEL_IN_FLIGHT];
    float *a = models_new_logits(m), *b = models_new_logits(m);
    for (uint32_t i = 0; i < MANY; i++)
        tokens[i] = (7 * i + 3) % vocab;
    ASSERT_FALSE(model_changes_tape(m, 0, 64));
    ASSERT(model_changes_tape(m, 0, 65) && !model_changes_tape(plain, 0, 128));
    ASSERT_FALSE(is_ranges());
    const tape *few = model_get_token_tape(m, true, &e);
    ASSERT_OK(model_forward_prompt(plain, tokens, FEW, PLAY_WHOLE, a, NULL, &e));
    ASSERT_OK(model_forward_prompt(m, tokens, FEW, PLAY_WHOLE, b, NULL, &e));
    ASSERT_FALSE(is_ranges());
    ASSERT_OK(decode_in_flight(plain, tokens[0], wanted) && decode_in_flight(m, tokens[0], got));
    ASSERT_MEM_EQ(wanted, got, sizeof got);
    ASSERT(is_ranges());
    model_rewind(m, FEW);
    model_rewind(plain, FEW);
    ASSERT_EQ(few, model_get_token_tape(m, true, &e));
    for (uint32_t i = FEW; i < MANY; i++) {
        ASSERT_OK(feed(plain, tokens, i, i + 1, a) && feed(m, tokens, i, i + 1, b));
        ASSERT(support_get_distance(a, b, vocab) < 1e-4);
    }
    PASS();
}

TEST a_state_that_is_loaded_at_a_depth_goes_on_with_its_tape(void) {
    const char *path = models_get_path("deep.state");
    ASSERT_OK(open_both());
    uint32_t tokens[MANY], vocab = model_get_shape(m)->vocab, pending;
    float *a = models_new_logits(m), *b = models_new_logits(m);
    for (uint32_t i = 0; i < MANY; i++)
        tokens[i] = (5 * i + 1) % vocab;
    ASSERT_OK(model_forward_prompt(plain, tokens, MANY - 1, PLAY_WHOLE, a, NULL, &e));
    ASSERT_OK(model_write_state(plain, path, MODEL_NO_TOKEN, &e) &&
              model_read_state(m, path, &pending, &e));
    ASSERT(is_ranges());
    ASSERT_OK(feed(plain, tokens, MANY - 1, MANY, a) && feed(m, tokens, MANY - 1, MANY, b));
    ASSERT(support_get_distance(a, b, vocab) < 1e-4);
    PASS();
}

static void note_start(void *context, const choice *c) {
    if (c->op == &prefill_attention_op)
        *(uint32_t *)context = c->shape.dim[1];
}

TEST the_start_of_a_prompt_decides_too(void) {
    uint32_t start = 1, tokens[MANY] = {0};
    choice_watch watch = {note_start, &start};
    ASSERT_OK(open_both());
    model *watched = models_open(file, &(model_options){.context = 128, .watch = &watch}, &e);
    ASSERT_OK(watched);
    float *logits = models_new_logits(m);
    ASSERT_OK(model_forward_prompt(watched, tokens, 8, PLAY_WHOLE, logits, NULL, &e));
    ASSERT_EQ(0, start);
    ASSERT_OK(model_forward_prompt(watched, tokens, 60, PLAY_WHOLE, logits, NULL, &e));
    ASSERT_OK(model_forward_prompt(watched, tokens, 8, PLAY_WHOLE, logits, NULL, &e));
    ASSERT_EQ(128, start); /* the band of position 68 */
    PASS();
}

/* --- caches of halves --- */

static model *open_halves(void) {
    return models_open(file, &(model_options){.context = 128, .cache = &format_f16}, &e);
}

/* Launch by launch, the whole against the reference with rounded keys and values, and deep ones. */
TEST a_cache_of_halves_is_checked_like_one_of_floats(void) {
    uint32_t tokens[MANY];
    model_report report;
    ASSERT_OK(open_both());
    for (uint32_t i = 0; i < MANY; i++)
        tokens[i] = (11 * i + 2) % model_get_shape(plain)->vocab;
    model *halves = open_halves();
    ASSERT_OK(halves);
    ASSERT_EQ(2 * model_get_memory(halves).state, model_get_memory(plain).state);
    const model_check_options how = {
        .prompt = tokens, .prompt_tokens = 5, .tokens = 3, .reference_tokens = 3, .depth = 65};
    ASSERT_OK(model_check(halves, &how, &report, &e));
    for (size_t i = 0; i < report.count; i++)
        ASSERTm(report.rows[i].found, report.rows[i].passed);
    ASSERT(report.count > 5);
    PASS();
}

/* The rounding is seen, and is no more than a rounding. */
TEST halves_change_the_logits_a_little(void) {
    uint32_t tokens[FEW];
    ASSERT_OK(open_both());
    uint32_t vocab = model_get_shape(m)->vocab;
    for (uint32_t i = 0; i < FEW; i++)
        tokens[i] = (7 * i + 3) % vocab;
    model *halves = open_halves();
    ASSERT_OK(halves);
    float *a = models_new_logits(m), *b = models_new_logits(m);
    ASSERT_OK(model_forward_prompt(plain, tokens, FEW, PLAY_WHOLE, a, NULL, &e));
    ASSERT_OK(model_forward_prompt(halves, tokens, FEW, PLAY_WHOLE, b, NULL, &e));
    double far = support_get_distance(a, b, vocab);
    ASSERT(far > 1e-5 && far < 0.1);
    PASS();
}

TEST a_state_says_what_its_cache_holds(void) {
    const char *path = models_get_path("halves.state");
    ASSERT_OK(open_both());
    model *halves = open_halves();
    uint32_t token = 1, pending;
    float *logits = models_new_logits(m);
    ASSERT_OK(halves && feed(halves, &token, 0, 1, logits));
    ASSERT_OK(model_write_state(halves, path, MODEL_NO_TOKEN, &e));
    ASSERT_FALSE(model_read_state(plain, path, &pending, &e));
    ASSERT(strstr(e.text, "has its keys and values in F16: load it with --kv f16, not f32"));
    ASSERT_OK(model_read_state(halves, path, &pending, &e));
    ASSERT_EQ(1, model_get_position(halves));
    ASSERT_OK(feed(plain, &token, 0, 1, logits));
    ASSERT_OK(model_write_state(plain, path, MODEL_NO_TOKEN, &e));
    ASSERT_FALSE(model_read_state(halves, path, &pending, &e));
    ASSERT(strstr(e.text, "in F32: load it with --kv f32, not f16"));
    PASS();
}

/* Heads of 16 dimensions, and no cache at all. */
TEST models_that_cannot_have_halves_say_why(void) {
    static const struct {
        const char *shape, *says;
    } cases[] = {{"tiny", "needs heads of a multiple of 32 dimensions, and this model's have 16"},
                 {"rwkv7-tiny", "a model of the family rwkv7 has no cache to keep in F16"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf *g = models_make(cases[i].shape, "Q4_0", 1, &e);
        ASSERT_OK(g);
        ASSERT_FALSE(models_open(g, &(model_options){.cache = &format_f16}, &e));
        ASSERTm(e.text, strstr(e.text, cases[i].says));
    }
    PASS();
}

/* Every row of the cache is there, at once: the next token attends to it, with finite logits. */
TEST a_filled_cache_stands_for_a_prompt(const weight_format *cache) {
    ASSERT_OK(open_both());
    model *deep = models_open(file, &(model_options){.context = 5000, .cache = cache}, &e);
    ASSERT_OK(deep && model_has_cache(deep));
    uint32_t token = 3, vocab = model_get_shape(deep)->vocab;
    float *empty = models_new_logits(deep), *a = models_new_logits(deep),
          *b = models_new_logits(deep);
    ASSERT_OK(feed(deep, &token, 0, 1, empty));
    ASSERT_OK(model_fill_cache(deep, 4096, 1, &e));
    ASSERT_EQ(4096, model_get_position(deep));
    ASSERT_OK(feed(deep, &token, 0, 1, a));
    model_rewind(deep, 0);
    ASSERT_OK(model_fill_cache(deep, 4096, 1, &e) && feed(deep, &token, 0, 1, b));
    ASSERT_MEM_EQ(a, b, vocab * sizeof *a);
    ASSERT(support_get_distance(empty, a, vocab) > 1e-3); /* so it is not NaN either */
    bench_result result;
    const bench_test test = {.generate = 1, .depth = 4096};
    ASSERT_OK(model_bench(deep, &test, 1, TOKEN_NONE, 1, &result, &e));
    ASSERT(result.is_filled && result.mean_rate > 0);
    free(result.sample_ns);
    PASS();
}

SUITE(depth_suite) {
    if (!models_begin(&e))
        return;
    RUN_TEST(the_position_of_a_step_decides_which_tape_is_played);
    RUN_TEST(a_state_that_is_loaded_at_a_depth_goes_on_with_its_tape);
    RUN_TEST(the_start_of_a_prompt_decides_too);
    RUN_TEST(a_cache_of_halves_is_checked_like_one_of_floats);
    RUN_TEST(halves_change_the_logits_a_little);
    RUN_TEST(a_state_says_what_its_cache_holds);
    RUN_TEST(models_that_cannot_have_halves_say_why);
    RUN_TESTp(a_filled_cache_stands_for_a_prompt, NULL);
    RUN_TESTp(a_filled_cache_stands_for_a_prompt, &format_f16);
    models_end();
    tuned_free(table);
    table = NULL;
}
