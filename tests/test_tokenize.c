/* Tests of chat templates; transcripts/tokenize.txt has those of `assay tokenize`. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "runner/generate/chat.h"
#include "transcript.h"
#include "vocabulary.h"

SUITE(tokenize_suite);

static err e;

/* --- chat templates --- */

static const char *template_text;

static void add_template(gguf_writer *w) {
    if (template_text)
        gguf_writer_add_text(w, "tokenizer.chat_template",
                             (gguf_text){template_text, strlen(template_text)});
}

/* The prompt that a model with this template gets, or what is wrong with it. */
static const char *render_turn(const char *form, const chat_turn *turn) {
    static char out[1024];
    char *text;
    size_t bytes;
    vocabulary *v = vocabulary_start("smollm");
    template_text = form;
    v->add_more = add_template;
    gguf *g = vocabulary_open(v, &e);
    if (!g)
        return e.text;
    if (chat_render(g, turn, &text, &bytes, &e)) {
        snprintf(out, sizeof out, "%.*s", (int)bytes, text);
        free(text);
    } else {
        snprintf(out, sizeof out, "%d: %s", (int)e.code, e.text);
    }
    gguf_free(g);
    return out;
}

static const char *render(const char *form, const char *system, const char *user) {
    return render_turn(form,
                       &(chat_turn){.system = system, .user = user, .user_bytes = strlen(user)});
}

#define QUESTION "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
#define PLAIN_FORM "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\\n' + m['content']}}"
#define DEFAULT_FORM(line_end)                                                                     \
    "{{ '<|im_start|>system" line_end "' + tools }}{{ '<|im_start|>system" line_end                \
    "Be kind.<|im_end|>" line_end "' }}" PLAIN_FORM

TEST a_question_is_put_in_chatml(void) {
    ASSERT_STR_EQ(QUESTION, render(PLAIN_FORM, NULL, "Hi"));
    ASSERT_STR_EQ("<|im_start|>system\nBe brief.<|im_end|>\n" QUESTION,
                  render(PLAIN_FORM, "Be brief.", "Hi"));
    PASS();
}

TEST a_later_question_ends_the_answer_and_repeats_no_system_message(void) {
    const chat_turn later = {.user = "Hi", .user_bytes = 2, .is_later = true};
    ASSERT_STR_EQ("<|im_end|>\n" QUESTION, render_turn(DEFAULT_FORM("\n"), &later));
    PASS();
}

TEST a_question_may_hold_any_bytes(void) {
    vocabulary *v = vocabulary_start("smollm");
    template_text = PLAIN_FORM;
    v->add_more = add_template;
    gguf *g = vocabulary_open(v, &e);
    ASSERTm(e.text, g);
    char *text;
    size_t bytes;
    const chat_turn turn = {.user = "a\0b", .user_bytes = 3};
    ASSERTm(e.text, chat_render(g, &turn, &text, &bytes, &e));
    static const char expected[] = "<|im_start|>user\na\0b<|im_end|>\n<|im_start|>assistant\n";
    ASSERT_EQ(sizeof expected - 1, bytes);
    ASSERT_MEM_EQ(expected, text, bytes);
    free(text);
    gguf_free(g);
    PASS();
}

TEST the_default_system_message_is_that_of_the_template(void) {
    const char *expected = "<|im_start|>system\nBe kind.<|im_end|>\n" QUESTION;
    ASSERT_STR_EQ(expected, render(DEFAULT_FORM("\n"), NULL, "Hi"));
    ASSERT_STR_EQ(expected, render(DEFAULT_FORM("\\n"), NULL, "Hi"));
    ASSERT_STR_EQ("<|im_start|>system\nx<|im_end|>\n" QUESTION,
                  render(DEFAULT_FORM("\n"), "x", "Hi"));
    ASSERT_STR_EQ("<|im_start|>system\n<|im_end|>\n" QUESTION,
                  render(DEFAULT_FORM("\n"), "", "Hi"));
    PASS();
}

TEST models_that_are_not_asked_in_chatml_are_refused(void) {
    ASSERTm(e.text,
            strstr(render(NULL, NULL, "Hi"), "2: the model has no tokenizer.chat_template"));
    ASSERTm(e.text, strstr(render("[INST] {{ x }} [/INST]", NULL, "Hi"), "ChatML"));
    PASS();
}

/* --- the command --- */

/* $T: all bytes, "aa" as 256, <s> as 257. */
static bool make_file(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    vocabulary_join(v, "a a");
    vocabulary_add_token(v, "<s>", 3);
    return command_run("true") == 0 && vocabulary_write(v, getenv("T"), &e);
}

SUITE(tokenize_suite) {
    RUN_TEST(a_question_is_put_in_chatml);
    RUN_TEST(a_later_question_ends_the_answer_and_repeats_no_system_message);
    RUN_TEST(a_question_may_hold_any_bytes);
    RUN_TEST(the_default_system_message_is_that_of_the_template);
    RUN_TEST(models_that_are_not_asked_in_chatml_are_refused);
    if (make_file())
        transcript_run("tokenize");
    else
        fprintf(stderr, "no model for the suite tokenize: %s\n", e.text);
}
