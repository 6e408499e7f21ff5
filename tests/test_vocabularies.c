/* Tests of vocabularies that cannot be used: each is refused with a sentence that says why. */
#include <greatest.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runner/tokenizer/tokenizer.h"
#include "vocabulary.h"

SUITE(vocabularies_suite);

static err e;

/* Whether a file that can be read has no tokenizer, because of what the sentence says. */
static bool is_refused(gguf *g, const char *says) {
    tokenizer *t = g ? tokenizer_new(g, &e) : NULL;
    bool refused = g && !t && e.code == EXIT_USAGE && strstr(e.text, says);
    tokenizer_free(t);
    gguf_free(g);
    return refused;
}

#define ASSERT_REFUSED(v, says)                                                                    \
    do {                                                                                           \
        e = (err){0};                                                                              \
        ASSERTm(e.text, is_refused(vocabulary_open(v, &e), says));                                 \
    } while (0)

TEST pre_tokenizers_that_there_are_not_are_named(void) {
    vocabulary *v = vocabulary_start("default");
    ASSERT_REFUSED(v, "tokenizer.ggml.pre is 'default' (supported: smollm, gpt-2, llama-bpe");
    v->pre = "tekken\x1b";
    ASSERT_REFUSED(v, "'tekken?'");
    v->pre = NULL;
    ASSERT_REFUSED(v, "tokenizer.ggml.pre is missing");
    PASS();
}

TEST vocabularies_that_are_wrong_are_refused(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    vocabulary_add_token(v, "again", 1);
    vocabulary_add_token(v, "again", 1);
    ASSERT_REFUSED(v, "tokens 256 and 257 of tokenizer.ggml.tokens are both 'again'");
    v = vocabulary_start("gpt-2");
    v->type_count = 100;
    ASSERT_REFUSED(v, "tokenizer.ggml.token_type has 100 entries for 256 tokens");
    v = vocabulary_start("gpt-2");
    v->token_count = 0;
    ASSERT_REFUSED(v, "has 0 tokens");
    static const char *const merges[] = {"", "a", "ab", " ab", "ab ", "a "};
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        v = vocabulary_start("gpt-2");
        vocabulary_join(v, "a b");
        vocabulary_add_merge(v, merges[i]);
        ASSERT_REFUSED(v, "merge 1 of tokenizer.ggml.merges is '");
    }
    PASS();
}

/* A file with this model and what `add` adds; NULL with e set. */
static gguf *make(const char *model, void (*add)(gguf_writer *)) {
    char path[256];
    snprintf(path, sizeof path, "/tmp/assay-test-%ld.gguf", (long)getpid());
    e = (err){0};
    gguf_writer *w = gguf_writer_new(path, &e);
    if (!w)
        return NULL;
    if (model)
        gguf_writer_add_text(w, "tokenizer.ggml.model", (gguf_text){model, strlen(model)});
    gguf_writer_add_text(w, "tokenizer.ggml.pre", (gguf_text){"gpt-2", 5});
    add(w);
    bool written = gguf_writer_finish_header(w, &e) && gguf_writer_finish(w, &e);
    gguf_writer_free(w);
    gguf *g = written ? gguf_open(path, &e) : NULL;
    unlink(path);
    return g;
}

static void add_nothing(gguf_writer *w) {
    (void)w;
}

static void add_number_for_tokens(gguf_writer *w) {
    gguf_writer_add_u32(w, "tokenizer.ggml.tokens", 3);
}

static void add_tokens_alone(gguf_writer *w) {
    gguf_text a = {"a", 1};
    gguf_writer_add_texts(w, "tokenizer.ggml.tokens", &a, 1);
}

static void add_numbers_for_merges(gguf_writer *w) {
    int32_t number = 1;
    add_tokens_alone(w);
    gguf_writer_add_i32s(w, "tokenizer.ggml.merges", &number, 1);
}

static void add_texts_for_types(gguf_writer *w) {
    gguf_text a = {"a", 1};
    add_tokens_alone(w);
    gguf_writer_add_texts(w, "tokenizer.ggml.merges", &a, 0);
    gguf_writer_add_texts(w, "tokenizer.ggml.token_type", &a, 1);
}

static void add_bool_for_bos(gguf_writer *w) {
    gguf_text a = {"a", 1};
    add_tokens_alone(w);
    gguf_writer_add_texts(w, "tokenizer.ggml.merges", &a, 0);
    gguf_writer_add_bool(w, "tokenizer.ggml.bos_token_id", true);
}

TEST other_tokenizers_and_missing_or_mistyped_parts_are_refused(void) {
    ASSERTm(e.text, is_refused(make("llama", add_nothing), "'llama' (SentencePiece)"));
    ASSERTm(e.text, is_refused(make("no_vocab", add_nothing), "no vocabulary"));
    ASSERTm(e.text, is_refused(make("bert", add_nothing), "'bert'"));
    ASSERTm(e.text, is_refused(make(NULL, add_nothing), "tokenizer.ggml.model"));
    ASSERTm(e.text, is_refused(make("gpt2", add_nothing), "tokenizer.ggml.tokens is missing"));
    ASSERTm(e.text, is_refused(make("gpt2", add_number_for_tokens), "not an array of strings"));
    ASSERTm(e.text, is_refused(make("gpt2", add_tokens_alone), "tokenizer.ggml.merges is missing"));
    ASSERTm(e.text, is_refused(make("gpt2", add_numbers_for_merges), "not an array of strings"));
    ASSERTm(e.text,
            is_refused(make("gpt2", add_texts_for_types), "not an array of 32-bit integers"));
    ASSERTm(e.text, is_refused(make("gpt2", add_bool_for_bos), "tokenizer.ggml.bos_token_id"));
    PASS();
}

SUITE(vocabularies_suite) {
    RUN_TEST(pre_tokenizers_that_there_are_not_are_named);
    RUN_TEST(vocabularies_that_are_wrong_are_refused);
    RUN_TEST(other_tokenizers_and_missing_or_mistyped_parts_are_refused);
}
