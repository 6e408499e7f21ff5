/* Saved states: a text goes on from a file as it would have gone on without it, with a cache
 * and with a recurrent state; a file that is damaged or of another model changes nothing. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/base/os.h"
#include "harness/check/fill.h"
#include "models.h"
#include "runner/generate/generate.h"
#include "runner/gguf/write.h"
#include "runner/model/family.h"
#include "transcript.h"

SUITE(state_suite);

enum { TOKENS = 13, CUT = 9 };
static char saved[600];
static uint32_t tokens[TOKENS], pending;
static err e;

static gguf *make_file(const char *name, uint64_t seed) {
    return models_make(name, "Q4_0", seed, &e);
}

static model *open_model(const gguf *g, uint32_t context) {
    return models_open(g, &(model_options){.context = context, .tile = 4}, &e);
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
    ASSERT_OK(model_write_state(m, saved, MODEL_NO_TOKEN, &e));
    ASSERT_OK(feed(m, TOKENS, want)); /* saving changed nothing */
    m = open_model(g, 16);            /* with another context */
    ASSERT_OK(m);
    uint32_t others[3] = {1, 2, 3}; /* what there was is forgotten */
    ASSERT_OK(model_forward_prompt(m, others, 3, PLAY_WHOLE, got, NULL, &e));
    ASSERT_OK(model_keep(m, &e));
    ASSERT_OK(model_read_state(m, saved, &pending, &e));
    ASSERT_EQ(CUT, model_get_position(m));
    ASSERT_OK(feed(m, TOKENS, got));
    ASSERT_MEM_EQ(want, got, sizeof want);
    for (uint32_t to = CUT; to + 1 > CUT - 4; to--) { /* and it can go back, even before the file */
        model_rewind(m, to);
        ASSERT_OK(feed(m, TOKENS, got));
        ASSERT_MEM_EQ(want, got, sizeof want);
    }
    PASS();
}

TEST a_state_of_nothing_is_the_beginning(const char *name) {
    gguf *g = make_file(name, 1);
    static float want[512], got[512];
    model *m = start(g, want);
    ASSERT_OK(m);
    model *empty = open_model(g, 32);
    ASSERT_OK(empty && model_write_state(empty, saved, MODEL_NO_TOKEN, &e));
    ASSERT_OK(model_read_state(m, saved, &pending, &e));
    ASSERT_EQ(0, model_get_position(m));
    ASSERT_OK(feed(m, CUT, got));
    ASSERT_MEM_EQ(want, got, sizeof want);
    PASS();
}

/* Refused with these words, and the model goes on as if nothing had been asked. */
static enum greatest_test_res is_refused(model *m, const char *says) {
    static float want[512], got[512];
    ASSERT_OK(feed(m, TOKENS, want));
    model_rewind(m, CUT);
    ASSERT_FALSE(model_read_state(m, saved, &pending, &e));
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
    ASSERT_OK(model_write_state(m, saved, MODEL_NO_TOKEN, &e));
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
    PASS();
}

TEST a_state_of_another_model_or_of_more_tokens_than_fit_is_refused(const char *name) {
    static float logits[512];
    gguf *g = make_file(name, 1), *other = make_file(name, 2);
    model *m = start(g, logits), *from = start(other, logits);
    ASSERT_OK(m && from);
    ASSERT_OK(model_write_state(from, saved, MODEL_NO_TOKEN, &e));
    CHECK_CALL(is_refused(m, "was saved from another model"));
    ASSERT_OK(model_write_state(m, saved, MODEL_NO_TOKEN, &e));
    model *small = open_model(g, CUT - 1);
    ASSERT_OK(small);
    ASSERT_FALSE(model_read_state(small, saved, &pending, &e));
    ASSERT_EQ(EXIT_USAGE, e.code);
    ASSERT_OK(strstr(e.text, "holds 9 tokens, which do not fit into a context of 8"));
    PASS();
}

/* --- texts and chats over several runs --- */

static char chat_path[600];

/* A file with a chat template and a BOS, so that one too many is seen. */
static bool make_chat_file(const char *name) {
    static const char bos[] = "tokenizer.ggml.add_bos_token";
    gguf *g = make_file(name, 1);
    snprintf(chat_path, sizeof chat_path, "%s", models_get_path("chat.gguf"));
    gguf_writer *w = g ? gguf_writer_new(chat_path, &e) : NULL;
    for (size_t i = 0; w && i < g->value_count; i++)
        if (!gguf_text_equals(g->values[i].key, bos))
            gguf_writer_add_copy(w, &g->values[i]);
    if (w) {
        gguf_writer_add_bool(w, bos, true);
        gguf_writer_add_text(w, "tokenizer.chat_template", (gguf_text){"<|im_start|>", 12});
    }
    for (size_t i = 0; w && i < g->tensor_count; i++)
        gguf_writer_add_tensor(w, g->tensors[i].name, g->tensors[i].type, g->tensors[i].dim,
                               g->tensors[i].dims);
    bool ok = w && gguf_writer_finish_header(w, &e);
    for (size_t i = 0; ok && i < g->tensor_count; i++)
        ok = gguf_writer_write(w, g->tensors[i].data, g->tensors[i].bytes, &e);
    ok = ok && gguf_writer_finish(w, &e);
    gguf_writer_free(w);
    setenv("M", chat_path, 1);
    setenv("S", saved, 1);
    return ok;
}

typedef struct {
    token_list *list;
    size_t stop_after; /* tokens; 0: never */
} collector;

static bool collect(void *context, uint32_t token) {
    collector *c = context;
    token_list_add(c->list, token);
    return c->list->count != c->stop_after;
}

enum { ANSWER = 6 };

/* Continues all of the history from its start, in a model that has seen nothing, and adds that to
 * it. Prints the new ids as `assay run --ids` does. */
static bool answer(const gguf *g, const tokenizer *t, token_list *history, char *ids, size_t size) {
    collector c = {.list = history};
    generate_options how = {.max_tokens = ANSWER, .tokenizer = t, .emit = collect, .context = &c};
    generate_report report;
    model *m = models_open(g, &(model_options){.context = 400}, &e);
    sampler *greedy =
        m ? sampler_new(&(sampler_settings){.repeat_penalty = 1}, model_get_shape(m)->vocab) : NULL;
    size_t before = history->count, used = 0;
    uint32_t *prompt = malloc((before + 1) * sizeof *prompt);
    memcpy(prompt, history->items, before * sizeof *prompt);
    bool ok = greedy && generate(m, greedy, prompt, before, &how, &report, &e);
    for (size_t i = before; ok && i < history->count; i++)
        used += (size_t)snprintf(ids + used, size - used, "%s%u", i > before ? " " : "",
                                 history->items[i]);
    snprintf(ids + used, size - used, "\n");
    free(prompt);
    sampler_free(greedy);
    return ok;
}

TEST a_chat_in_three_runs_gives_the_tokens_of_one(const char *name) {
#define TURN(text) "<|im_start|>user\n" text "<|im_end|>\n<|im_start|>assistant\n"
    static const char *const texts[] = {"<|im_start|>system\nBe brief.<|im_end|>\n" TURN("One?"),
                                        "<|im_end|>\n" TURN("And two?"),
                                        "<|im_end|>\n" TURN("Three")};
    static const char *const lines[] = {
        "\"$A\" run --device $D -m $M --chat --system 'Be brief.' -p 'One?' -n 6 --ids "
        "--save-state $S 2>/dev/null",
        "\"$A\" run --device $D -m $M --chat -p 'And two?' -n 6 --ids --load-state $S "
        "--save-state $S 2>/dev/null",
        "\"$A\" run --device $D -m $M --chat -p Three -n 6 --ids --load-state $S 2>/dev/null"};
    ASSERT_OK(make_chat_file(name));
    gguf *g = models_keep(gguf_open(chat_path, &e));
    tokenizer *t = g ? tokenizer_new(g, &e) : NULL;
    ASSERT_OK(t);
    token_list history = {0};
    for (size_t i = 0; i < 3; i++) {
        char ids[256];
        unsigned special = i == 0 ? TOKENIZE_ADD_SPECIAL : TOKENIZE_PLAIN;
        tokenizer_encode(t, texts[i], strlen(texts[i]), special | TOKENIZE_PARSE_SPECIAL, &history);
        ASSERT_OK(answer(g, t, &history, ids, sizeof ids));
        ASSERT_RUN(lines[i], 0);
        ASSERT_STR_EQ(ids, command_get_output());
    }
    token_list_free(&history);
    tokenizer_free(t);
    PASS();
}

#define RUN_IDS "\"$A\" run --device $D -m $M --ids "
#define QUIET " 2>/dev/null"

/* What `together` prints is what `first` and then `second` print, on one line. */
static enum greatest_test_res is_continued(const char *together, const char *first,
                                           const char *second) {
    char line[1200], want[512];
    ASSERT_RUN(together, 0);
    snprintf(want, sizeof want, "%s", command_get_output());
    snprintf(line, sizeof line, "echo $(%s && %s)", first, second);
    ASSERT_RUN(line, 0);
    ASSERT_STR_EQ(want, command_get_output());
    PASS();
}

TEST a_state_goes_on_without_a_prompt(const char *name) {
    ASSERT_OK(make_chat_file(name));
    CHECK_CALL(is_continued(RUN_IDS "-p 'hello there' -n 9" QUIET,
                            RUN_IDS "-p 'hello there' -n 4 --save-state $S" QUIET,
                            RUN_IDS "--load-state $S -n 5" QUIET));
    CHECK_CALL(is_continued(RUN_IDS "-p 'hello there' -n 5" QUIET,
                            RUN_IDS "-p 'hello there' -n 0 --save-state $S" QUIET,
                            RUN_IDS "--load-state $S -n 5" QUIET));
    CHECK_CALL(is_continued(RUN_IDS "-p 'hello there' -n 9 --temp 1 --top-k 1" QUIET,
                            RUN_IDS
                            "-p 'hello there' -n 4 --temp 1 --top-k 1 --save-state $S" QUIET,
                            RUN_IDS "--load-state $S -n 5" QUIET));
    PASS();
}

TEST a_full_context_is_saved_and_goes_on_in_a_larger_one(void) {
    ASSERT_OK(make_chat_file("tiny"));
    CHECK_CALL(
        is_continued(RUN_IDS "-p 'hello there' -n 10 -c 40" QUIET,
                     RUN_IDS "-p 'hello there' -n 10 -c 16 --save-state $S" QUIET " | tee $S.first",
                     RUN_IDS "--load-state $S -c 40 -n $((10 - $(wc -w < $S.first)))" QUIET));
    ASSERT_RUN(RUN_IDS "--load-state $S -c 8", 2);
    ASSERT_SAYS("do not fit into a context of 8");
    PASS();
}

TEST a_state_that_cannot_be_written_is_told_before_the_text(void) {
    ASSERT_OK(make_chat_file("tiny"));
    ASSERT_RUN(RUN_IDS "-p x -n 4 --save-state /no/such/folder/x", 2);
    ASSERT_STR_EQ("assay: cannot write /no/such/folder/x: No such file or directory\n",
                  command_get_output());
    ASSERT_RUN(RUN_IDS "-p x -n 4 --save-state /tmp", 2);
    ASSERT_SAYS("Is a directory");
    ASSERT_RUN(RUN_IDS "--chat --system x --load-state $S -p x", 2);
    ASSERT_SAYS("--system is for the start of a chat");
    PASS();
}

/* With no step in flight there is none to take back: the state is that of the text at once. */
TEST a_recurrent_state_needs_no_replay_after_a_stop(void) {
    gguf *g = make_file("rwkv7-tiny", 1);
    model *m = g ? open_model(g, 0) : NULL;
    ASSERT_OK(m);
    token_list list = {0};
    collector c = {.list = &list, .stop_after = 4};
    generate_options how = {.max_tokens = 9, .in_flight = 1, .emit = collect, .context = &c};
    generate_report report;
    sampler *greedy = sampler_new(&(sampler_settings){.repeat_penalty = 1}, 512);
    ASSERT_OK(generate(m, greedy, tokens, CUT, &how, &report, &e));
    ASSERT_EQ(END_CALLER, report.end);
    ASSERT_EQ(CUT + 3, model_get_position(m)); /* the fourth was chosen, not fed */
    ASSERT_FALSE(m->is_unsettled);
    token_list_free(&list);
    sampler_free(greedy);
    PASS();
}

SUITE(state_suite) {
    if (!models_begin(&e))
        return;
    snprintf(saved, sizeof saved, "%s", models_get_path("saved.state"));
    rng r = rng_new(6, "state");
    for (size_t i = 0; i < TOKENS; i++)
        tokens[i] = rng_below(&r, 512);
    static const char *const shapes[] = {"rwkv7-tiny", "tiny"};
    for (size_t i = 0; i < 2; i++) {
        RUN_TESTp(a_text_goes_on_from_a_file, shapes[i]);
        RUN_TESTp(a_state_of_nothing_is_the_beginning, shapes[i]);
        RUN_TESTp(a_state_of_another_model_or_of_more_tokens_than_fit_is_refused, shapes[i]);
        RUN_TESTp(a_chat_in_three_runs_gives_the_tokens_of_one, shapes[i]);
        RUN_TESTp(a_state_goes_on_without_a_prompt, shapes[i]);
    }
    RUN_TEST(a_full_context_is_saved_and_goes_on_in_a_larger_one);
    RUN_TEST(a_state_that_cannot_be_written_is_told_before_the_text);
    RUN_TEST(a_recurrent_state_needs_no_replay_after_a_stop);
    RUN_TEST(a_file_that_is_damaged_changes_nothing);
    models_end();
    transcript_run("state");
}
