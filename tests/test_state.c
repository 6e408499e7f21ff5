/* Saved states: a text goes on from a file as it would have gone on without it, with a cache
 * and with a recurrent state; a file that is damaged or of another model changes nothing. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/base/os.h"
#include "harness/check/fill.h"
#include "runner/model.h"
#include "runner/synth.h"
#include "support.h"

SUITE(state_suite);

enum { TOKENS = 13, CUT = 9 };
static char folder[512], saved[600];
static library *lib;
static uint32_t tokens[TOKENS];
static err e;

#define ASSERT_OK(condition) ASSERTm(e.text, condition)

static gguf *make_file(const char *name, uint64_t seed) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s-%d.gguf", folder, name, (int)seed);
    synth_options o = {.seed = seed, .type = gguf_find_type_name("Q4_0")};
    const synth_shape *s = synth_find_shape(name, &e);
    return s && synth_write_model(s, path, &o, &e) ? gguf_open(path, &e) : NULL;
}

static model *open_model(const gguf *g, uint32_t context) {
    return model_new(lib, g, &(model_options){.context = context, .tile = 4}, &e);
}

static bool feed(model *m, uint32_t to, float *logits) {
    bool ok = true;
    for (uint32_t i = model_get_position(m); ok && i < to; i++)
        ok = model_forward_token(m, tokens[i], PLAY_WHOLE, logits, NULL, &e);
    return ok;
}

/* A model that has seen the first CUT tokens, one by one: replaying them gives the same bits. */
static model *start(const gguf *g, float *logits) {
    model *m = open_model(g, 32);
    return m && feed(m, CUT, logits) ? m : NULL;
}

TEST a_text_goes_on_from_a_file(const char *name) {
    gguf *g = make_file(name, 1);
    ASSERT_OK(g);
    static float want[512], got[512];
    model *m = start(g, want);
    ASSERT_OK(m);
    ASSERT_OK(model_write_state(m, saved, &e));
    ASSERT_OK(feed(m, TOKENS, want)); /* saving changed nothing */
    model_free(m);
    m = open_model(g, 16); /* with another context */
    ASSERT_OK(m);
    uint32_t others[3] = {1, 2, 3}; /* what there was is forgotten */
    ASSERT_OK(model_forward_prompt(m, others, 3, PLAY_WHOLE, got, NULL, &e));
    ASSERT_OK(model_keep(m, &e));
    ASSERT_OK(model_read_state(m, saved, &e));
    ASSERT_EQ(CUT, model_get_position(m));
    ASSERT_OK(feed(m, TOKENS, got));
    ASSERT_MEM_EQ(want, got, sizeof want);
    for (uint32_t to = CUT; to + 1 > CUT - 4; to--) { /* and it can go back, even before the file */
        model_rewind(m, to);
        ASSERT_OK(feed(m, TOKENS, got));
        ASSERT_MEM_EQ(want, got, sizeof want);
    }
    model_free(m);
    gguf_free(g);
    PASS();
}

TEST a_state_of_nothing_is_the_beginning(const char *name) {
    gguf *g = make_file(name, 1);
    static float want[512], got[512];
    model *m = start(g, want);
    ASSERT_OK(m);
    model *empty = open_model(g, 32);
    ASSERT_OK(empty && model_write_state(empty, saved, &e));
    ASSERT_OK(model_read_state(m, saved, &e));
    ASSERT_EQ(0, model_get_position(m));
    ASSERT_OK(feed(m, CUT, got));
    ASSERT_MEM_EQ(want, got, sizeof want);
    model_free(empty);
    model_free(m);
    gguf_free(g);
    PASS();
}

/* Refused with these words, and the model goes on as if nothing had been asked. */
static enum greatest_test_res is_refused(model *m, const char *says) {
    static float want[512], got[512];
    ASSERT_OK(feed(m, TOKENS, want));
    model_rewind(m, CUT);
    ASSERT_FALSE(model_read_state(m, saved, &e));
    ASSERT_OK(strstr(e.text, says));
    ASSERT_EQ(CUT, model_get_position(m));
    ASSERT_OK(feed(m, TOKENS, got));
    ASSERT_MEM_EQ(want, got, sizeof want);
    model_rewind(m, CUT);
    PASS();
}

TEST a_file_that_is_damaged_changes_nothing(void) {
    gguf *g = make_file("rwkv7-tiny", 1);
    static float logits[512];
    model *m = start(g, logits);
    ASSERT_OK(m);
    ASSERT_OK(model_write_state(m, saved, &e));
    size_t bytes;
    char *file = os_read_file(saved, &bytes, &e);
    ASSERT_OK(file);
    const size_t places[] = {16, 80, 84, 96, 132, 200, bytes / 2, bytes - 65, bytes - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        file[places[i]] ^= 4;
        ASSERT_OK(os_write_file(saved, file, bytes, &e));
        CHECK_CALL(is_refused(m, "is damaged or not all there"));
        file[places[i]] ^= 4;
    }
    ASSERT_OK(os_write_file(saved, file, bytes - 1, &e));
    CHECK_CALL(is_refused(m, "is damaged or not all there"));
    ASSERT_OK(os_write_file(saved, file, 100, &e));
    CHECK_CALL(is_refused(m, "is not a saved state"));
    ASSERT_OK(os_write_file(saved, "", 0, &e));
    CHECK_CALL(is_refused(m, "is not a saved state"));
    file[0] = 'A';
    ASSERT_OK(os_write_file(saved, file, bytes, &e));
    CHECK_CALL(is_refused(m, "is not a saved state"));
    free(file);
    model_free(m);
    gguf_free(g);
    PASS();
}

TEST a_state_of_another_model_or_of_more_tokens_than_fit_is_refused(const char *name) {
    static float logits[512];
    gguf *g = make_file(name, 1), *other = make_file(name, 2);
    model *m = start(g, logits), *from = start(other, logits);
    ASSERT_OK(m && from);
    ASSERT_OK(model_write_state(from, saved, &e));
    CHECK_CALL(is_refused(m, "was saved from another model"));
    ASSERT_OK(model_write_state(m, saved, &e));
    model *small = open_model(g, CUT - 1);
    ASSERT_OK(small);
    ASSERT_FALSE(model_read_state(small, saved, &e));
    ASSERT_EQ(EXIT_INCONCLUSIVE, e.code);
    ASSERT_OK(strstr(e.text, "holds 9 tokens, which do not fit into a context of 8"));
    model_free(small);
    model_free(from);
    model_free(m);
    gguf_free(other);
    gguf_free(g);
    PASS();
}

TEST run_saves_and_goes_on(void) {
    ASSERT_RUN("M=\"$H/models/assay-tiny-rwkv7.gguf\"; "
               "\"$A\" run -m $M -p 'To cast a bell,' -n 3 --ids --save-state \"$T.state\" "
               "2>/dev/null && "
               "\"$A\" run -m $M --load-state \"$T.state\" -p ' makes' -n 6 2>/dev/null",
               0);
    ASSERT_SAYS(" a mould of clay.");
    ASSERT_RUN("M=\"$H/models/assay-tiny-rwkv7.gguf\"; "
               "\"$A\" run --load-state \"$T.state\" -p a -n 1",
               3);
    ASSERT_SAYS("was saved from another model");
    ASSERT_RUN("\"$A\" run -m \"$H/models/assay-tiny-rwkv7.gguf\" --load-state /no/such -p a -n 1",
               2);
    PASS();
}

SUITE(state_suite) {
    device *d = support_get_device();
    if (!d || !(lib = library_new(d, NULL, &e)) || !os_make_scratch(folder, sizeof folder, &e))
        return;
    snprintf(saved, sizeof saved, "%s/saved.state", folder);
    rng r = rng_new(6, "state");
    for (size_t i = 0; i < TOKENS; i++)
        tokens[i] = rng_below(&r, 512);
    static const char *const shapes[] = {"rwkv7-tiny", "tiny"};
    for (size_t i = 0; i < 2; i++) {
        RUN_TESTp(a_text_goes_on_from_a_file, shapes[i]);
        RUN_TESTp(a_state_of_nothing_is_the_beginning, shapes[i]);
        RUN_TESTp(a_state_of_another_model_or_of_more_tokens_than_fit_is_refused, shapes[i]);
    }
    RUN_TEST(a_file_that_is_damaged_changes_nothing);
    RUN_TEST(run_saves_and_goes_on);
    os_remove_folder(folder);
    library_free(lib);
}
