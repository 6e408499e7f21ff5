/* The World vocabulary of RWKV: the longest token at every place, on small vocabularies made
 * here. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/check/fill.h"
#include "runner/tokenizer/tokenizer.h"
#include "vocabulary.h"

SUITE(world_suite);

static err e;
static tokenizer *current;

static bool start(const vocabulary *v) {
    return (current = vocabulary_use(vocabulary_open(v, &e), &e));
}

/* The id of a byte. */
enum { BYTE = 1 };

#define ASSERT_OK(condition) ASSERTm(e.text, condition)
#define ASSERT_IDS(text, bytes, ...)                                                               \
    do {                                                                                           \
        const uint32_t want[] = {__VA_ARGS__};                                                     \
        token_list ids = {0};                                                                      \
        tokenizer_encode(current, text, bytes, TOKENIZE_ADD_SPECIAL, &ids);                        \
        ASSERT_EQ_FMT(sizeof want / sizeof *want, ids.count, "%zu");                               \
        ASSERT_MEM_EQ(want, ids.items, sizeof want);                                               \
        token_list_free(&ids);                                                                     \
    } while (0)

static bool is_piece(uint32_t id, const char *bytes, size_t count) {
    gguf_text piece = tokenizer_get_piece(current, id, false);
    return piece.bytes == count && memcmp(piece.data, bytes, count) == 0;
}

TEST every_byte_is_a_token_and_nothing_is_added(void) {
    ASSERT_OK(start(vocabulary_start_world()));
    for (unsigned byte = 0; byte < 256; byte++) {
        char text = (char)byte;
        ASSERT_IDS(&text, 1, BYTE + byte);
        ASSERT(is_piece(BYTE + byte, &text, 1));
    }
    PASS();
}

TEST the_longest_token_is_taken_without_looking_further(void) {
    vocabulary *v = vocabulary_start_world();
    uint32_t ab = vocabulary_add_token(v, "ab", 1), bcd = vocabulary_add_token(v, "bcd", 1),
             abcde = vocabulary_add_token(v, "abcde", 1), cd = vocabulary_add_token(v, "cd", 1);
    ASSERT_OK(start(v));
    ASSERT_IDS("abcde", 5, abcde);
    ASSERT_IDS("abcdf", 5, ab, cd, BYTE + 'f'); /* not a, bcd */
    ASSERT_IDS("abcd", 4, ab, cd);              /* the text ends inside of abcde */
    ASSERT_IDS("bcdbc", 5, bcd, BYTE + 'b', BYTE + 'c');
    ASSERT_IDS("aab", 3, BYTE + 'a', ab);
    PASS();
}

/* "abc" is a token and "abcdef" is, but not what is between: the walk must come back to "abc". */
TEST a_walk_that_fails_comes_back_to_the_last_token_it_passed(void) {
    vocabulary *v = vocabulary_start_world();
    uint32_t abc = vocabulary_add_token(v, "abc", 1), abcdef = vocabulary_add_token(v, "abcdef", 1);
    ASSERT_OK(start(v));
    ASSERT_IDS("abcdeabcdef", 11, abc, BYTE + 'd', BYTE + 'e', abcdef);
    ASSERT_IDS("abcde", 5, abc, BYTE + 'd', BYTE + 'e');
    PASS();
}

TEST escapes_are_the_bytes_that_they_stand_for(void) {
    vocabulary *v = vocabulary_start_world();
    uint32_t newlines = vocabulary_add_token(v, "\\n\\n", 1);
    uint32_t tab = vocabulary_add_token(v, "\\tx\\r", 1);
    uint32_t slashes = vocabulary_add_token(v, "\\\\\\\\n", 1); /* two backslashes and an n */
    uint32_t quotes = vocabulary_add_token(v, "\\'\"", 1);
    uint32_t quote = vocabulary_add_token(v, "it's", 1);
    uint32_t zero = vocabulary_add_token(v, "a\\x00b", 1);
    uint32_t upper = vocabulary_add_token(v, "\\xE4\\xbD", 1);
    uint32_t not_hex = vocabulary_add_token(v, "\\xg0", 1); /* x, g, 0 */
    uint32_t cut = vocabulary_add_token(v, "q\\x4", 1);     /* q, x, 4 */
    uint32_t trailing = vocabulary_add_token(v, "q\\", 1);  /* q and a backslash */
    ASSERT_OK(start(v));
    ASSERT_IDS("\n\n\n", 3, newlines, BYTE + '\n');
    ASSERT_IDS("\tx\r", 3, tab);
    ASSERT_IDS("\\\\n", 3, slashes);
    ASSERT_IDS("\\n", 2, BYTE + '\\', BYTE + 'n');
    ASSERT_IDS("'\"", 2, quotes);
    ASSERT_IDS("it's", 4, quote);
    ASSERT_IDS("a\0b", 3, zero);
    ASSERT_IDS("\xe4\xbd", 2, upper);
    ASSERT_IDS("xg0", 3, not_hex);
    ASSERT_IDS("qx4", 3, cut);
    ASSERT_IDS("q\\", 2, trailing);
    ASSERT(is_piece(newlines, "\n\n", 2) && is_piece(slashes, "\\\\n", 3));
    ASSERT(is_piece(zero, "a\0b", 3) && is_piece(quotes, "'\"", 2) && is_piece(trailing, "q\\", 2));
    PASS();
}

/* U+4F60 is e4 bd a0. Tokens may end inside a character, and text need not be UTF-8. */
TEST tokens_may_hold_parts_of_characters(void) {
    vocabulary *v = vocabulary_start_world();
    uint32_t part = vocabulary_add_token(v, "\\xe4\\xbd", 1);
    uint32_t whole = vocabulary_add_token(v, "\\xe4\\xbd\\xa0", 1);
    uint32_t across = vocabulary_add_token(v, "\\xa0\\xe5", 1);
    ASSERT_OK(start(v));
    ASSERT_IDS("\xe4\xbd\xa0", 3, whole);
    ASSERT_IDS("\xe4\xbd\xa5", 3, part, BYTE + 0xa5);
    ASSERT_IDS("\xe4\xa0\xe5", 3, BYTE + 0xe4, across);
    ASSERT_IDS("\xff\xfe\xe4", 3, BYTE + 0xff, BYTE + 0xfe, BYTE + 0xe4);
    ASSERT_EQ(2, tokenizer_count_partial("\xe4\xbd", 2)); /* a stream holds these back */
    PASS();
}

TEST text_that_looks_like_another_kind_of_token_stays_text(void) {
    vocabulary *v = vocabulary_start_world();
    uint32_t pad = vocabulary_add_token(v, "[PAD258]", 5);
    ASSERT_OK(start(v));
    ASSERT_IDS("<s>", 3, BYTE + '<', BYTE + 's', BYTE + '>');
    ASSERT_IDS("[PAD258]", 8, BYTE + '[', BYTE + 'P', BYTE + 'A', BYTE + 'D', BYTE + '2',
               BYTE + '5', BYTE + '8', BYTE + ']');
    ASSERT(is_piece(pad, "", 0) && is_piece(0, "", 0));
    ASSERT(tokenizer_is_end(current, 0) && !tokenizer_is_end(current, BYTE));
    token_list ids = {0};
    tokenizer_encode(current, "<s>", 3, TOKENIZE_PARSE_SPECIAL, &ids); /* only if asked */
    ASSERT_EQ(1, ids.count);
    ASSERT_EQ(0, ids.items[0]);
    token_list_free(&ids);
    PASS();
}

TEST of_two_ways_to_write_a_token_the_later_counts(void) {
    vocabulary *v = vocabulary_start_world();
    uint32_t plain = vocabulary_add_token(v, "zz", 1),
             escaped = vocabulary_add_token(v, "z\\x7a", 1);
    ASSERT_OK(start(v));
    ASSERT_IDS("zz", 2, escaped);
    ASSERT(is_piece(plain, "zz", 2) && is_piece(escaped, "zz", 2));
    PASS();
}

static void add_ends(gguf_writer *w) {
    gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 0);
    gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 0);
    gguf_writer_add_u32(w, "tokenizer.ggml.eot_token_id", 257);
    gguf_writer_add_u32(w, "tokenizer.ggml.unknown_token_id", 258);
}

TEST a_file_names_what_ends_a_text_and_what_is_unknown(void) {
    vocabulary *v = vocabulary_start_world();
    vocabulary_add_token(v, "\\n\\n", 1);
    uint32_t unknown = vocabulary_add_token(v, "<unk>", 2);
    v->types[BYTE + '@'] = 5; /* so that nothing begins with it */
    ASSERT_OK(start(v));
    ASSERT_IDS("a@b", 3, BYTE + 'a', BYTE + 'b');
    v->add_more = add_ends;
    ASSERT_OK(start(v));
    ASSERT_IDS("a@b", 3, BYTE + 'a', unknown, BYTE + 'b');
    ASSERT(tokenizer_is_end(current, 257) && tokenizer_is_end(current, 0));
    PASS();
}

/* Against the published algorithm, as directly as it can be written. */
TEST random_texts_are_cut_as_a_search_of_all_tokens_cuts_them(void) {
    enum { WORDS = 300, TEXT = 400, LETTERS = 3 };
    static char words[WORDS][8];
    vocabulary *v = vocabulary_start_world();
    rng r = rng_new(9, "world");
    uint32_t ids[WORDS];
    size_t count = 0;
    for (size_t i = 0; i < WORDS; i++) {
        size_t length = 2 + rng_below(&r, 5);
        for (size_t k = 0; k < length; k++)
            words[count][k] = (char)('a' + rng_below(&r, LETTERS));
        words[count][length] = 0;
        bool is_new = true;
        for (size_t k = 0; k < count; k++)
            is_new &= strcmp(words[k], words[count]) != 0;
        if (is_new) {
            ids[count] = vocabulary_add_token(v, words[count], 1);
            count++;
        }
    }
    ASSERT_OK(start(v));
    char text[TEXT];
    for (size_t i = 0; i < TEXT; i++)
        text[i] = (char)('a' + rng_below(&r, LETTERS));
    token_list got = {0};
    tokenizer_encode(current, text, TEXT, TOKENIZE_PLAIN, &got);
    size_t at = 0;
    for (size_t i = 0; i < got.count; i++) {
        uint32_t want = BYTE + (unsigned char)text[at];
        size_t longest = 1;
        for (size_t k = 0; k < count; k++) {
            size_t length = strlen(words[k]);
            if (length > longest && at + length <= TEXT &&
                memcmp(text + at, words[k], length) == 0) {
                want = ids[k];
                longest = length;
            }
        }
        ASSERT_EQ_FMT(want, got.items[i], "%u");
        at += longest;
    }
    ASSERT_EQ(TEXT, at);
    token_list_free(&got);
    PASS();
}

SUITE(world_suite) {
    RUN_TEST(every_byte_is_a_token_and_nothing_is_added);
    RUN_TEST(the_longest_token_is_taken_without_looking_further);
    RUN_TEST(a_walk_that_fails_comes_back_to_the_last_token_it_passed);
    RUN_TEST(escapes_are_the_bytes_that_they_stand_for);
    RUN_TEST(tokens_may_hold_parts_of_characters);
    RUN_TEST(text_that_looks_like_another_kind_of_token_stays_text);
    RUN_TEST(of_two_ways_to_write_a_token_the_later_counts);
    RUN_TEST(a_file_names_what_ends_a_text_and_what_is_unknown);
    RUN_TEST(random_texts_are_cut_as_a_search_of_all_tokens_cuts_them);
    vocabulary_use(NULL, NULL);
}
