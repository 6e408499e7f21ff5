/* Tests of tapes by depth: a model records one tape per way of attention, and the position of a step
 * decides which is played. The texts are the same whichever it is. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "kernels/kernels.h"
#include "runner/choice/tuned.h"
#include "runner/model/model.h"
#include "support.h"

SUITE(depth_suite);

static char folder[512];
static library *lib; /* the project's own kernels */
static gguf *file;
static tuned *table;
static model *plain, *m;
static err e;

#define ASSERT_OK(condition) ASSERTm(e.text, condition)

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
    table = make_table();
    return (file = gguf_open(support_get_path("models/assay-tiny.gguf"), &e)) &&
           (plain = model_new(lib, file, &(model_options){.context = 128}, &e)) &&
           (m = model_new(lib, file, &(model_options){.context = 128, .tuned = table}, &e));
}

static void close_both(void) {
    model_free(m);
    model_free(plain);
    tuned_free(table);
    gguf_free(file);
    m = plain = NULL;
    table = NULL;
    file = NULL;
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
    float *a = malloc(vocab * sizeof *a), *b = malloc(vocab * sizeof *b);
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
    free(a);
    free(b);
    close_both();
    PASS();
}

TEST a_state_that_is_loaded_at_a_depth_goes_on_with_its_tape(void) {
    char path[600];
    snprintf(path, sizeof path, "%s/deep.state", folder);
    ASSERT_OK(open_both());
    uint32_t tokens[MANY], vocab = model_get_shape(m)->vocab, pending;
    float *a = malloc(vocab * sizeof *a), *b = malloc(vocab * sizeof *b);
    for (uint32_t i = 0; i < MANY; i++)
        tokens[i] = (5 * i + 1) % vocab;
    ASSERT_OK(model_forward_prompt(plain, tokens, MANY - 1, PLAY_WHOLE, a, NULL, &e));
    ASSERT_OK(model_write_state(plain, path, MODEL_NO_TOKEN, &e) &&
              model_read_state(m, path, &pending, &e));
    ASSERT(is_ranges());
    ASSERT_OK(feed(plain, tokens, MANY - 1, MANY, a) && feed(m, tokens, MANY - 1, MANY, b));
    ASSERT(support_get_distance(a, b, vocab) < 1e-4);
    free(a);
    free(b);
    close_both();
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
    model *watched = model_new(lib, file, &(model_options){.context = 128, .watch = &watch}, &e);
    ASSERT_OK(watched);
    float *logits = malloc(model_get_shape(m)->vocab * sizeof *logits);
    ASSERT_OK(model_forward_prompt(watched, tokens, 8, PLAY_WHOLE, logits, NULL, &e));
    ASSERT_EQ(0, start);
    ASSERT_OK(model_forward_prompt(watched, tokens, 60, PLAY_WHOLE, logits, NULL, &e));
    ASSERT_OK(model_forward_prompt(watched, tokens, 8, PLAY_WHOLE, logits, NULL, &e));
    ASSERT_EQ(128, start); /* the band of position 68 */
    free(logits);
    model_free(watched);
    close_both();
    PASS();
}

SUITE(depth_suite) {
    if (!os_make_scratch(folder, sizeof folder, &e) || !support_get_device() ||
        !(lib = library_new(support_get_device(), NULL, &e))) {
        fprintf(stderr, "no device for the suite depth: %s\n", e.text);
        return;
    }
    RUN_TEST(the_position_of_a_step_decides_which_tape_is_played);
    RUN_TEST(a_state_that_is_loaded_at_a_depth_goes_on_with_its_tape);
    RUN_TEST(the_start_of_a_prompt_decides_too);
    library_free(lib);
    os_remove_folder(folder);
}
