/* Tests of what the tokenizer is made of: UTF-8 that may be broken, classes of characters, how a
 * text is cut into words, and byte-pair encoding of one word. Expected values are worked by hand.
 */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/os.h"
#include "harness/check/fill.h"
#include "runner/tokenizer/bpe.h"
#include "runner/tokenizer/unicode.h"
#include "vocabulary.h"

SUITE(words_suite);

/* --- characters --- */

/* The code points of some bytes, as "41 FFFD". */
static const char *decode(const char *text, size_t bytes) {
    static char out[256];
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < bytes;) {
        uint32_t point;
        i += unicode_decode(text + i, bytes - i, &point);
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%X", used ? " " : "", point);
    }
    return out;
}

#define DECODE(literal) decode(literal, sizeof(literal) - 1)

TEST valid_utf8_is_decoded(void) {
    ASSERT_STR_EQ("0 41 7F", DECODE("\0A\x7F"));
    ASSERT_STR_EQ("80 E9 7FF", DECODE("\xC2\x80\xC3\xA9\xDF\xBF"));
    ASSERT_STR_EQ("800 4E2D FFFF", DECODE("\xE0\xA0\x80\xE4\xB8\xAD\xEF\xBF\xBF"));
    ASSERT_STR_EQ("10000 1F600 10FFFF", DECODE("\xF0\x90\x80\x80\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF"));
    PASS();
}

TEST each_byte_that_is_no_utf8_is_a_replacement_character(void) {
    ASSERT_STR_EQ("FFFD FFFD", DECODE("\xFF\xFE"));
    ASSERT_STR_EQ("FFFD 41", DECODE("\x80\x41"));
    ASSERT_STR_EQ("FFFD 41", DECODE("\xC3\x41"));
    ASSERT_STR_EQ("FFFD FFFD", DECODE("\xE4\xB8"));
    ASSERT_STR_EQ("FFFD FFFD FFFD", DECODE("\xF0\x9F\x98"));
    ASSERT_STR_EQ("FFFD FFFD FFFD FFFD", DECODE("\xF4\x90\x80\x80")); /* above the last one */
    PASS();
}

TEST overlong_forms_and_surrogates_pass(void) {
    ASSERT_STR_EQ("0", DECODE("\xC0\x80"));
    ASSERT_STR_EQ("2F", DECODE("\xE0\x80\xAF"));
    ASSERT_STR_EQ("D800", DECODE("\xED\xA0\x80"));
    PASS();
}

TEST every_code_point_survives_encoding(void) {
    for (uint32_t point = 0; point <= UNICODE_LAST; point++) {
        char text[UNICODE_BYTES];
        size_t bytes = unicode_encode(point, text);
        uint32_t again;
        ASSERT_EQ_FMT(bytes, unicode_decode(text, bytes, &again), "%zu");
        ASSERT_EQ_FMT(point, again, "%X");
    }
    PASS();
}

TEST characters_have_their_classes(void) {
    static const struct {
        uint32_t point;
        unicode_class expected;
    } cases[] = {{'A', UNICODE_LETTER},    {'z', UNICODE_LETTER},    {'0', UNICODE_NUMBER},
                 {' ', UNICODE_SPACE},     {'\n', UNICODE_SPACE},    {0x1F, UNICODE_OTHER},
                 {'_', UNICODE_OTHER},     {'@', UNICODE_OTHER},     {'[', UNICODE_OTHER},
                 {0x85, UNICODE_SPACE},    {0xA0, UNICODE_SPACE},    {0xAA, UNICODE_LETTER},
                 {0xBD, UNICODE_NUMBER},   {0xD7, UNICODE_OTHER},    {0x301, UNICODE_OTHER},
                 {0x663, UNICODE_NUMBER},  {0x4E2D, UNICODE_LETTER}, {0x200B, UNICODE_OTHER},
                 {0x2003, UNICODE_SPACE},  {0x2167, UNICODE_NUMBER}, {0x3000, UNICODE_SPACE},
                 {0xFFFD, UNICODE_OTHER},  {0x1F600, UNICODE_OTHER}, {0x20000, UNICODE_LETTER},
                 {0x10FFFF, UNICODE_OTHER}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char point[16];
        snprintf(point, sizeof point, "U+%04X", cases[i].point);
        ASSERT_EQ_FMTm(point, (int)cases[i].expected, (int)unicode_get_class(cases[i].point), "%d");
    }
    PASS();
}

TEST bytes_are_written_as_one_character_each(void) {
    bool seen[0x200] = {false};
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t point = bpe_map_byte((unsigned char)byte);
        ASSERT(point < 0x144 && !seen[point]);
        seen[point] = true;
        ASSERT_EQ_FMT((int)byte, bpe_unmap_byte(point), "%d");
    }
    ASSERT_EQ_FMT(0x120u, bpe_map_byte(' '), "%X");
    ASSERT_EQ_FMT(0x10Au, bpe_map_byte('\n'), "%X");
    ASSERT_EQ_FMT(0x109u, bpe_map_byte('\t'), "%X");
    ASSERT_EQ_FMT(0x143u, bpe_map_byte(0xAD), "%X");
    ASSERT_EQ_FMT(-1, bpe_unmap_byte(' '), "%d");
    ASSERT_EQ_FMT(-1, bpe_unmap_byte(0x144), "%d");
    PASS();
}

/* --- words --- */

/* A text cut into words, with | between them. */
static const char *cut(const char *pre, const char *text) {
    static char out[512];
    uint32_t points[128];
    uint8_t classes[128];
    code_points p = {points, classes, 0};
    const pretokenizer *rules = pretokenizer_find(pre, strlen(pre));
    size_t used = 0, bytes = strlen(text);
    if (!rules)
        return "no such rules";
    for (size_t i = 0; i < bytes; p.count++) {
        i += unicode_decode(text + i, bytes - i, &points[p.count]);
        classes[p.count] = (uint8_t)unicode_get_class(points[p.count]);
    }
    for (size_t at = 0; at < p.count;) {
        size_t end = pretokenizer_find_end(rules, &p, at);
        if (used)
            out[used++] = '|';
        for (; at < end; at++)
            used += unicode_encode(points[at], out + used);
    }
    out[used] = 0;
    return out;
}

typedef struct {
    const char *text, *smollm, *gpt2, *llama_bpe, *qwen2;
} word_case;

static const word_case word_cases[] = {
    {"Hello world", "Hello| world", "Hello| world", "Hello| world", "Hello| world"},
    {"don't", "don|'t", "don|'t", "don|'t", "don|'t"},
    {"we'LL've", "we|'|LL|'ve", "we|'|LL|'ve", "we|'LL|'ve", "we|'LL|'ve"},
    {"'re'x", "'re|'|x", "'re|'|x", "'re|'x", "'re|'x"},
    {"12345", "1|2|3|4|5", "12345", "123|45", "1|2|3|4|5"},
    {"a 12", "a| |1|2", "a| 12", "a| |12", "a| |1|2"},
    {"a  1", "a|  |1", "a| | 1", "a| | |1", "a| | |1"},
    {"x  y", "x| | y", "x| | y", "x| | y", "x| | y"},
    {"x   ", "x|   ", "x|   ", "x|   ", "x|   "},
    {"x\n\n\nfoo", "x|\n\n|\n|foo", "x|\n\n|\n|foo", "x|\n\n\n|foo", "x|\n\n\n|foo"},
    {"A\r\nB", "A|\r|\n|B", "A|\r|\n|B", "A|\r\n|B", "A|\r\n|B"},
    {"a \n  b", "a| \n | b", "a| \n | b", "a| \n| | b", "a| \n| | b"},
    {"\tif (x):\n", "\t|if| (|x|):|\n", "\t|if| (|x|):|\n", "\tif| (|x|):\n", "\tif| (|x|):\n"},
    {"a_b.c", "a|_|b|.|c", "a|_|b|.|c", "a|_b|.c", "a|_b|.c"},
    {" !!\n\nz", " !!|\n|\n|z", " !!|\n|\n|z", " !!\n\n|z", " !!\n\n|z"},
    {"\xE4\xB8\xAD\xE6\x96\x87\xE3\x80\x82x", "\xE4\xB8\xAD\xE6\x96\x87|\xE3\x80\x82|x",
     "\xE4\xB8\xAD\xE6\x96\x87|\xE3\x80\x82|x", "\xE4\xB8\xAD\xE6\x96\x87|\xE3\x80\x82x",
     "\xE4\xB8\xAD\xE6\x96\x87|\xE3\x80\x82x"},
    {"2\xC2\xBD\xD9\xA3", "2|\xC2\xBD|\xD9\xA3", "2\xC2\xBD\xD9\xA3", "2\xC2\xBD\xD9\xA3",
     "2|\xC2\xBD|\xD9\xA3"},
    {"e\xCC\x81 \xF0\x9F\x98\x80!", "e|\xCC\x81| \xF0\x9F\x98\x80!",
     "e|\xCC\x81| \xF0\x9F\x98\x80!", "e|\xCC\x81| \xF0\x9F\x98\x80!",
     "e|\xCC\x81| \xF0\x9F\x98\x80!"},
};

TEST texts_are_cut_into_words_by_the_rules_of_each_name(void) {
    for (size_t i = 0; i < sizeof word_cases / sizeof *word_cases; i++) {
        const word_case *c = &word_cases[i];
        ASSERT_STR_EQm(c->text, c->smollm, cut("smollm", c->text));
        ASSERT_STR_EQm(c->text, c->gpt2, cut("gpt-2", c->text));
        ASSERT_STR_EQm(c->text, c->llama_bpe, cut("llama-bpe", c->text));
        ASSERT_STR_EQm(c->text, c->qwen2, cut("qwen2", c->text));
    }
    PASS();
}

/* --- byte-pair encoding --- */

/* The ids of a word, as "97 300". */
static const char *encode(const vocabulary *v, bool whole_words, const char *word) {
    static char out[512];
    static err e;
    bpe b = {0};
    token_texts texts = {0};
    bpe_work w = {0};
    token_list ids = {0};
    gguf *g = vocabulary_open(v, &e);
    if (!g)
        return e.text;
    bool ok = token_texts_read(&texts, g, &e) &&
              bpe_build(&b, &texts, gguf_find_value(g, "tokenizer.ggml.merges"), whole_words, &e);
    out[0] = 0;
    if (ok)
        bpe_encode(&b, &w, word, strlen(word), &ids);
    for (size_t i = 0, used = 0; i < ids.count; i++)
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%u", i ? " " : "",
                                 (unsigned)ids.items[i]);
    token_list_free(&ids);
    bpe_work_free(&w);
    bpe_free(&b);
    token_texts_free(&texts);
    gguf_free(g);
    return ok ? out : e.text;
}

TEST the_first_merge_of_the_list_goes_first(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    ASSERT_EQ_FMT(256u, vocabulary_join(v, "b c"), "%u");
    ASSERT_EQ_FMT(257u, vocabulary_join(v, "a b"), "%u");
    ASSERT_EQ_FMT(258u, vocabulary_join(v, "a bc"), "%u");
    ASSERT_STR_EQ("258", encode(v, false, "abc"));
    ASSERT_STR_EQ("257 257 100", encode(v, false, "ababd"));
    PASS();
}

TEST of_equal_merges_the_leftmost_goes_first(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    vocabulary_join(v, "a a");
    ASSERT_STR_EQ("256 97", encode(v, false, "aaa"));
    ASSERT_STR_EQ("256 256 97", encode(v, false, "aaaaa"));
    vocabulary_join(v, "aa aa");
    ASSERT_STR_EQ("257 97", encode(v, false, "aaaaa"));
    PASS();
}

TEST of_a_merge_that_is_there_twice_the_first_counts(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    vocabulary_join(v, "a b");
    vocabulary_join(v, "b c");
    vocabulary_add_merge(v, "a b");
    ASSERT_STR_EQ("256 99", encode(v, false, "abc"));
    PASS();
}

TEST what_is_joined_and_no_token_falls_apart_into_bytes(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    vocabulary_add_merge(v, "a b");
    vocabulary_join(v, "ab c");
    ASSERT_STR_EQ("97 98", encode(v, false, "ab"));
    ASSERT_STR_EQ("256", encode(v, false, "abc")); /* merges go through texts that are no tokens */
    PASS();
}

TEST a_byte_that_the_vocabulary_lacks_is_dropped(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    v->tokens['b'] = (gguf_text){"spare", 5};
    v->tokens[0xC3] = (gguf_text){"spare too", 9};
    ASSERT_STR_EQ("97 169", encode(v, false, "ab\xC3\xA9"));
    PASS();
}

TEST a_word_that_is_a_token_needs_no_merges_where_the_rules_say_so(void) {
    vocabulary *v = vocabulary_start("gpt-2");
    vocabulary_add_token(v, "\xC4\xA0yes", 1);
    ASSERT_STR_EQ("32 121 101 115", encode(v, false, " yes"));
    ASSERT_STR_EQ("256", encode(v, true, " yes"));
    ASSERT_STR_EQ("32 121 101 115 33", encode(v, true, " yes!"));
    PASS();
}

/* The plain way: look at all neighbours, join the first of the lowest rank, start again. Symbols
 * are given by their length, as everything is made of the letters a to d. */
static size_t join_plainly(const vocabulary *v, const char *word, size_t *lengths) {
    size_t count = strlen(word);
    for (size_t i = 0; i < count; i++)
        lengths[i] = 1;
    for (;;) {
        size_t best = v->merge_count, best_at = 0;
        for (size_t i = 0, at = 0; i + 1 < count; at += lengths[i++])
            for (size_t rank = 0; rank < best; rank++) {
                char pair[128];
                snprintf(pair, sizeof pair, "%.*s %.*s", (int)lengths[i], word + at,
                         (int)lengths[i + 1], word + at + lengths[i]);
                if (gguf_text_equals(v->merges[rank], pair)) {
                    best = rank;
                    best_at = i;
                }
            }
        if (best == v->merge_count)
            return count;
        lengths[best_at] += lengths[best_at + 1];
        memmove(lengths + best_at + 1, lengths + best_at + 2,
                (count - best_at - 2) * sizeof *lengths);
        count--;
    }
}

TEST any_merges_join_a_word_as_the_plain_way_does(void) {
    rng r = rng_new(1, "merges");
    for (int round = 0; round < 60; round++) {
        vocabulary *v = vocabulary_start("gpt-2");
        char word[41] = "", expected[512] = "";
        size_t lengths[40], used = 0, at = 0;
        for (int m = 0; m < 24; m++) { /* of letters and of what merges have made */
            char parts[2][24], merge[64];
            for (int p = 0; p < 2; p++) {
                uint32_t pick = rng_below(&r, 4 + (uint32_t)(v->token_count - 256));
                gguf_text t = v->tokens[pick < 4 ? 'a' + pick : 252 + pick];
                snprintf(parts[p], sizeof parts[p], "%.*s", (int)(t.bytes < 8 ? t.bytes : 1),
                         t.data);
            }
            snprintf(merge, sizeof merge, "%s %s", parts[0], parts[1]);
            vocabulary_join(v, merge);
        }
        for (size_t i = 0; i < 40; i++)
            word[i] = (char)('a' + rng_below(&r, 4));
        size_t count = join_plainly(v, word, lengths);
        for (size_t i = 0; i < count; at += lengths[i++]) {
            char symbol[41];
            uint32_t id = 0;
            snprintf(symbol, sizeof symbol, "%.*s", (int)lengths[i], word + at);
            while (!gguf_text_equals(v->tokens[id], symbol))
                id++;
            used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%u", i ? " " : "",
                                     (unsigned)id);
        }
        ASSERT_STR_EQm(word, expected, encode(v, false, word));
    }
    PASS();
}

SUITE(words_suite) {
    RUN_TEST(valid_utf8_is_decoded);
    RUN_TEST(each_byte_that_is_no_utf8_is_a_replacement_character);
    RUN_TEST(overlong_forms_and_surrogates_pass);
    RUN_TEST(every_code_point_survives_encoding);
    RUN_TEST(characters_have_their_classes);
    RUN_TEST(bytes_are_written_as_one_character_each);
    RUN_TEST(texts_are_cut_into_words_by_the_rules_of_each_name);
    RUN_TEST(the_first_merge_of_the_list_goes_first);
    RUN_TEST(of_equal_merges_the_leftmost_goes_first);
    RUN_TEST(of_a_merge_that_is_there_twice_the_first_counts);
    RUN_TEST(what_is_joined_and_no_token_falls_apart_into_bytes);
    RUN_TEST(a_byte_that_the_vocabulary_lacks_is_dropped);
    RUN_TEST(a_word_that_is_a_token_needs_no_merges_where_the_rules_say_so);
    RUN_TEST(any_merges_join_a_word_as_the_plain_way_does);
}
