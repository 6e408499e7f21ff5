/* Tests of the tokenizer as a whole, on small vocabularies made here. One test holds the tokenizer
 * against ids that llama.cpp gave for SmolLM2's vocabulary; it needs the model that `make model`
 * brings and is skipped where it is not. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/check/fill.h"
#include "runner/tokenizer/tokenizer.h"
#include "runner/tokenizer/unicode.h"
#include "support.h"
#include "vocabulary.h"

SUITE(tokenizer_suite);
SUITE(vocabularies_suite);

#define SMOLLM2 "models/smollm2-135m-instruct-q4_0.gguf"
enum { NORMAL = 1, UNKNOWN, CONTROL, USER, UNUSED, BYTE }; /* types of tokens */

static const char *const pres[] = {"smollm", "gpt-2", "llama-bpe", "qwen2"};

static err e;
static tokenizer *current;

static bool start(const vocabulary *v) {
    return (current = vocabulary_use(vocabulary_open(v, &e), &e));
}

static const char *print(const token_list *ids) {
    static char out[4096];
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < ids->count && used + 16 < sizeof out; i++)
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%u", i ? " " : "",
                                 (unsigned)ids->items[i]);
    return out;
}

static const char *encode(const char *text, unsigned flags) {
    token_list ids = {0};
    tokenizer_encode(current, text, strlen(text), flags, &ids);
    const char *out = print(&ids);
    token_list_free(&ids);
    return out;
}

static bool piece_is(uint32_t id, bool special, const char *text) {
    return gguf_text_equals(tokenizer_get_piece(current, id, special), text);
}

/* --- round trips --- */

/* All bytes, some merges within and across characters, one special token. */
static vocabulary *make_usual(const char *pre) {
    static const char *const merges[] = {
        "\xC4\xA0 t", "h e",  "\xC4\xA0t he",      "\xC4\x8A \xC4\x8A", "\xC4\xA0 \xC4\xA0",
        "1 2",        "12 3", "\xC3\xB0 \xC5\x81", "\xC3\xA4 \xC2\xB8", "a a",
        "aa aa",      "l l",  "\xC3\xA3 \xC4\xA2", "\xC3\xA9 \xC3\xA9", "\xC4\x80 \xC4\x80",
        "' s"};
    vocabulary *v = vocabulary_start(pre);
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++)
        vocabulary_join(v, merges[i]);
    vocabulary_add_token(v, "<|im_end|>", CONTROL);
    return v;
}

/* Encodes, puts the pieces together again and looks whether they are `wanted`. */
static bool comes_back_with(unsigned flags, const char *text, size_t bytes, const char *wanted,
                            size_t wanted_bytes) {
    token_list ids = {0};
    size_t at = 0;
    bool same = true;
    tokenizer_encode(current, text, bytes, flags, &ids);
    for (size_t i = 0; i < ids.count && same; i++) {
        gguf_text piece = tokenizer_get_piece(current, ids.items[i], false);
        same =
            piece.bytes <= wanted_bytes - at && memcmp(piece.data, wanted + at, piece.bytes) == 0;
        at += piece.bytes;
    }
    token_list_free(&ids);
    return same && at == wanted_bytes;
}

TEST texts_come_back_byte_for_byte(void) {
    static const char *const texts[] = {
        "",
        "a",
        "The quick brown fox, the end.",
        "it's 'S we'll",
        "\xF0\x9F\x98\x80\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x9A\x80 \xE2\x9D\xA4\xEF\xB8\x8F!",
        "\xE4\xB8\xAD\xE6\x96\x87\xE5\xAD\x97\xE7\xAC\xA6\xE3\x80\x82 \xE4\xBD\xA0\xE5\xA5\xBD",
        "0 12 123 1234567890 3.14 \xC2\xBD \xD9\xA3",
        " ",
        "  ",
        "       x   ",
        "\n",
        "\n\n\n \n",
        "a\r\nb\r\n\r\nc\n\td\t\te\v\f",
        "\xC2\xA0\xE3\x80\x80\xE2\x80\xA8",
        "<|im_end|>"};
    for (size_t p = 0; p < 4; p++) {
        ASSERTm(e.text, start(make_usual(pres[p])));
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            size_t bytes = strlen(texts[i]);
            ASSERTm(texts[i], comes_back_with(TOKENIZE_PLAIN, texts[i], bytes, texts[i], bytes));
        }
    }
    PASS();
}

/* Of characters; of bytes, of which those that are not UTF-8 come back replaced, or stay exact. */
typedef enum { CHARACTERS, ANY_BYTES, EXACT } text_kind;

TEST random_texts_come_back(text_kind kind) {
    rng r = rng_new(1, kind == CHARACTERS ? "characters" : kind == ANY_BYTES ? "bytes" : "exact");
    for (int round = 0; round < 400; round++) {
        static const uint32_t limits[] = {0x80, 0x800, 0x10000, 0x110000};
        char text[96 * UNICODE_BYTES], wanted[96 * UNICODE_BYTES];
        size_t bytes = 0, wanted_bytes = 0;
        if (round % 100 == 0)
            ASSERTm(e.text, start(make_usual(pres[round / 100])));
        for (uint32_t n = rng_below(&r, kind == EXACT ? 96 : 64); n > 0; n--)
            if (kind == CHARACTERS)
                bytes += unicode_encode(rng_below(&r, limits[rng_below(&r, 4)]), text + bytes);
            else
                text[bytes++] = (char)rng_below(&r, 256);
        for (size_t i = 0; i < bytes && kind == ANY_BYTES;) {
            uint32_t point;
            i += unicode_decode(text + i, bytes - i, &point);
            wanted_bytes += unicode_encode(point, wanted + wanted_bytes);
        }
        if (kind == ANY_BYTES)
            ASSERT(comes_back_with(TOKENIZE_PLAIN, text, bytes, wanted, wanted_bytes));
        else
            ASSERT(comes_back_with(kind == EXACT ? TOKENIZE_EXACT : TOKENIZE_PLAIN, text, bytes,
                                   text, bytes));
    }
    PASS();
}

/* --- special tokens --- */

TEST special_tokens_are_found_only_when_asked_for(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    vocabulary_add_token(v, "<s>", CONTROL);  /* 256 */
    vocabulary_add_token(v, "<s>>", CONTROL); /* 257: longer ones go first */
    vocabulary_add_token(v, "<?>", UNKNOWN);  /* 258 */
    vocabulary_add_token(v, "<u>", USER);     /* 259: always found */
    vocabulary_add_token(v, "never", UNUSED); /* 260: never found */
    ASSERTm(e.text, start(v));
    ASSERT_STR_EQ("97 256 98", encode("a<s>b", TOKENIZE_PARSE_SPECIAL));
    ASSERT_STR_EQ("97 60 115 62 98", encode("a<s>b", TOKENIZE_PLAIN));
    ASSERT_STR_EQ("257 256 256 60", encode("<s>><s><s><", TOKENIZE_PARSE_SPECIAL));
    ASSERT_STR_EQ("258", encode("<?>", TOKENIZE_PARSE_SPECIAL));
    ASSERT_STR_EQ("60 63 62", encode("<?>", TOKENIZE_PLAIN));
    ASSERT_STR_EQ("97 259 98", encode("a<u>b", TOKENIZE_PLAIN));
    ASSERT_STR_EQ("110 101 118 101 114", encode("never", TOKENIZE_PARSE_SPECIAL));
    PASS();
}

TEST words_do_not_reach_over_special_tokens(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    vocabulary_join(v, "\xC4\xA0 \xC4\xA0");
    vocabulary_add_token(v, "<s>", CONTROL);
    ASSERTm(e.text, start(v));
    ASSERT_STR_EQ("256 257 120", encode("  <s>x", TOKENIZE_PARSE_SPECIAL));
    ASSERT_STR_EQ("32 32 120", encode("  x", TOKENIZE_PARSE_SPECIAL));
    PASS();
}

TEST pieces_of_control_tokens_are_shown_when_asked_for(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    uint32_t control = vocabulary_add_token(v, "<s>", CONTROL);
    uint32_t user = vocabulary_add_token(v, "\xC4\xA0u", USER);
    uint32_t normal = vocabulary_add_token(v, "\xC4\xA0u\xC4\x8A", NORMAL);
    uint32_t unused = vocabulary_add_token(v, "unused", UNUSED);
    uint32_t byte = vocabulary_add_token(v, "<0x0A>", BYTE);
    uint32_t broken = vocabulary_add_token(v, "a b", NORMAL);
    uint32_t empty = vocabulary_add_token(v, "", NORMAL);
    ASSERTm(e.text, start(v));
    ASSERT(piece_is(control, false, "") && piece_is(control, true, "<s>"));
    ASSERT(piece_is(user, false, "\xC4\xA0u"));
    ASSERT(piece_is(normal, false, " u\n"));
    ASSERT(piece_is(unused, true, ""));
    ASSERT(piece_is(byte, false, "\n"));
    ASSERT(piece_is(broken, false, "a[UNK_BYTE_0x20]b"));
    ASSERT(piece_is(empty, false, "[EMPTY_262]"));
    ASSERT(piece_is(99999, true, "")); /* no such token */
    PASS();
}

static void ask_for_bos(gguf_writer *w) {
    gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 256);
    gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 257);
    gguf_writer_add_bool(w, "tokenizer.ggml.add_bos_token", true);
    gguf_writer_add_bool(w, "tokenizer.ggml.add_eos_token", true);
}

static void ask_for_no_bos(gguf_writer *w) {
    gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 999999); /* no token: not there */
    gguf_writer_add_bool(w, "tokenizer.ggml.add_bos_token", false);
}

TEST begin_and_end_of_text_are_added_where_the_file_asks_for_them(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    vocabulary_add_token(v, "<s>", CONTROL);
    vocabulary_add_token(v, "<e>", CONTROL);
    ASSERTm(e.text, start(v));
    ASSERT_EQ_FMT(11u, tokenizer_get_bos(current),
                  "%u"); /* what such files mean by saying nothing */
    ASSERT_STR_EQ("97", encode("a", TOKENIZE_ADD_SPECIAL));
    v->pre = "llama-bpe";
    ASSERTm(e.text, start(v));
    ASSERT_STR_EQ("11 97", encode("a", TOKENIZE_ADD_SPECIAL));
    v->add_more = ask_for_no_bos;
    ASSERTm(e.text, start(v));
    ASSERT_STR_EQ("97", encode("a", TOKENIZE_ADD_SPECIAL));
    v->add_more = ask_for_bos;
    ASSERTm(e.text, start(v));
    ASSERT_EQ_FMT(256u, tokenizer_get_bos(current), "%u");
    ASSERT_STR_EQ("256 97 257", encode("a", TOKENIZE_ADD_SPECIAL));
    ASSERT_STR_EQ("256 257", encode("", TOKENIZE_ADD_SPECIAL));
    ASSERT_STR_EQ("", encode("", TOKENIZE_PARSE_SPECIAL));
    PASS();
}

static void give_end_of_turn(gguf_writer *w) {
    gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 'e');
    gguf_writer_add_u32(w, "tokenizer.ggml.eot_token_id", 't');
}

TEST tokens_that_end_a_text_are_known_by_id_and_by_text(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    v->add_more = give_end_of_turn;
    uint32_t im_end = vocabulary_add_token(v, "<|im_end|>", NORMAL);
    uint32_t repo = vocabulary_add_token(v, "<reponame>", CONTROL);
    uint32_t im_start = vocabulary_add_token(v, "<|im_start|>", CONTROL);
    uint32_t end = vocabulary_add_token(v, "<|end|>", CONTROL);
    ASSERTm(e.text, start(v));
    ASSERT(tokenizer_is_end(current, 'e') && tokenizer_is_end(current, 't'));
    ASSERT(tokenizer_is_end(current, im_end) && tokenizer_is_end(current, repo));
    ASSERT(tokenizer_is_end(current, end));
    ASSERT(!tokenizer_is_end(current, im_start) && !tokenizer_is_end(current, 'a'));
    ASSERT(!tokenizer_is_end(current, TOKEN_NONE));
    ASSERT(piece_is(im_end, false, "")); /* its text makes it a control token */
    vocabulary_add_token(v, "<|return|>", CONTROL);
    vocabulary_add_token(v, "<|call|>", CONTROL);
    ASSERTm(e.text, start(v));
    ASSERT(!tokenizer_is_end(current, end)); /* beside those it ends a message only */
    PASS();
}

/* --- speed --- */

#define PATIENCE_NS UINT64_C(20000000000) /* by far: what is quadratic would take hours */

TEST a_megabyte_of_one_character_takes_no_time(void) {
    enum { BYTES = 1 << 20 };
    static const struct {
        char c;
        const char *merges[2];
    } cases[] = {{'a', {"a a", "aa aa"}},
                 {' ', {"\xC4\xA0 \xC4\xA0", "\xC4\xA0\xC4\xA0 \xC4\xA0\xC4\xA0"}}};
    char *text = malloc(BYTES);
    ASSERT(text);
    for (size_t i = 0; i < 8; i++) {
        vocabulary *v = vocabulary_start(pres[i / 2]);
        token_list ids = {0};
        vocabulary_join(v, cases[i % 2].merges[0]);
        uint32_t four = vocabulary_join(v, cases[i % 2].merges[1]);
        memset(text, cases[i % 2].c, BYTES);
        ASSERTm(e.text, start(v));
        uint64_t before = os_now_ns();
        tokenizer_encode(current, text, BYTES, TOKENIZE_PARSE_SPECIAL, &ids);
        ASSERT(os_now_ns() - before < PATIENCE_NS);
        ASSERT_EQ_FMT((size_t)BYTES / 4, ids.count, "%zu");
        ASSERT_EQ_FMT(four, ids.items[BYTES / 8], "%u");
        token_list_free(&ids);
    }
    free(text);
    PASS();
}

TEST thousands_of_special_tokens_are_found_in_a_long_text(void) {
    enum { TOKENS = 3000, TURNS = 20000 };
    vocabulary *v = vocabulary_start("llama-bpe");
    char name[32], *text = malloc(TURNS * 32), *at = text;
    token_list ids = {0};
    ASSERT(text);
    for (int i = 0; i < TOKENS; i++) {
        snprintf(name, sizeof name, "<|extra_%04d|>", i);
        vocabulary_add_token(v, name, CONTROL);
    }
    for (int i = 0; i < TURNS; i++)
        at += snprintf(at, 32, "<|extra_%04d|>x<|extra", i % TOKENS);
    ASSERTm(e.text, start(v));
    uint64_t before = os_now_ns();
    tokenizer_encode(current, text, (size_t)(at - text), TOKENIZE_PARSE_SPECIAL, &ids);
    ASSERT(os_now_ns() - before < PATIENCE_NS);
    ASSERT_EQ_FMT((size_t)TURNS * 9, ids.count, "%zu"); /* x<|extra are 8 bytes */
    ASSERT_EQ_FMT(256u + 2999, ids.items[2999 * 9], "%u");
    token_list_free(&ids);
    free(text);
    PASS();
}

TEST a_character_that_is_not_all_there_is_held_back(void) {
    ASSERT_EQ_FMT((size_t)0, tokenizer_count_partial("", 0), "%zu");
    ASSERT_EQ_FMT((size_t)0, tokenizer_count_partial("abc", 3), "%zu");
    ASSERT_EQ_FMT((size_t)1, tokenizer_count_partial("a\xC3", 2), "%zu");
    ASSERT_EQ_FMT((size_t)0, tokenizer_count_partial("a\xC3\xA9", 3), "%zu");
    ASSERT_EQ_FMT((size_t)2, tokenizer_count_partial("\xE4\xB8", 2), "%zu");
    ASSERT_EQ_FMT((size_t)3, tokenizer_count_partial("x\xF0\x9F\x98", 4), "%zu");
    ASSERT_EQ_FMT((size_t)0, tokenizer_count_partial("\xF0\x9F\x98\x80", 4), "%zu");
    ASSERT_EQ_FMT((size_t)0, tokenizer_count_partial("\x80\x80\x80\x80", 4), "%zu");
    ASSERT_EQ_FMT((size_t)0, tokenizer_count_partial("\xFF", 1), "%zu");
    PASS();
}

/* --- ids of llama.cpp --- */

static size_t read_hex(const char *hex, char *out) {
    size_t n = 0;
    unsigned byte;
    for (; sscanf(hex + 2 * n, "%2x", &byte) == 1 && hex[2 * n] != ' '; n++)
        out[n] = (char)byte;
    return n;
}

TEST ids_equal_those_of_llama_cpp_with_the_vocabulary_of_smollm2(void) {
    static char text[4096];
    int cases = 0;
    if (access(support_get_path(SMOLLM2), R_OK) != 0)
        SKIPm(SMOLLM2 " is not there (make model)");
    current = vocabulary_use(gguf_open(support_get_path(SMOLLM2), &e), &e);
    ASSERTm(e.text, current);
    char *golden = os_read_file(support_get_path("tests/golden/smollm_tokens.txt"), NULL, &e);
    ASSERTm(e.text, golden);
    for (char *line = strtok(golden, "\n"); line; line = strtok(NULL, "\n")) {
        if (line[0] == '#')
            continue;
        char *hex = line + 2, *ids = strchr(hex, ' ') + 1;
        token_list got = {0};
        tokenizer_encode(current, text, read_hex(hex, text),
                         line[0] == 's' ? TOKENIZE_PARSE_SPECIAL : TOKENIZE_PLAIN, &got);
        ASSERT_STR_EQm(line, ids, print(&got));
        token_list_free(&got);
        cases++;
    }
    free(golden);
    ASSERT(cases > 200);
    for (uint32_t id = 0; id < tokenizer_get_count(current); id++)
        ASSERT_EQ(id == 0 || id == 2 || id == 4, tokenizer_is_end(current, id));
    PASS();
}

SUITE(tokenizer_suite) {
    RUN_TEST(texts_come_back_byte_for_byte);
    RUN_TESTp(random_texts_come_back, CHARACTERS);
    RUN_TESTp(random_texts_come_back, ANY_BYTES);
    RUN_TESTp(random_texts_come_back, EXACT);
    RUN_TEST(special_tokens_are_found_only_when_asked_for);
    RUN_TEST(words_do_not_reach_over_special_tokens);
    RUN_TEST(pieces_of_control_tokens_are_shown_when_asked_for);
    RUN_TEST(begin_and_end_of_text_are_added_where_the_file_asks_for_them);
    RUN_TEST(tokens_that_end_a_text_are_known_by_id_and_by_text);
    RUN_TEST(a_megabyte_of_one_character_takes_no_time);
    RUN_TEST(thousands_of_special_tokens_are_found_in_a_long_text);
    RUN_TEST(a_character_that_is_not_all_there_is_held_back);
    RUN_TEST(ids_equal_those_of_llama_cpp_with_the_vocabulary_of_smollm2);
    vocabulary_use(NULL, NULL);
}

/* --- vocabularies that cannot be used: each is refused with a sentence that says why --- */

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
