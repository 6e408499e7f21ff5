/* bpe: byte-pair encoding of one word with the tokens and merges of a vocabulary.
 *
 * Each byte of a word is written as one character (that is how the format keeps white space and
 * control bytes out of its texts); then the neighbours that come first in the list of merges are
 * joined, leftmost first, until none are left. Takes n log n time for a word of n bytes.
 *
 * The result of a merge need not be a token. Such a text falls apart into those of its bytes that
 * are tokens by themselves, and the others are lost. */
#pragma once

#include "vocabulary.h"

typedef struct {
    uint32_t left, right, result; /* symbols */
} bpe_merge;

typedef struct {
    token_texts *texts; /* symbols are numbers of these: tokens, then texts that are not */
    bpe_merge *merges;  /* the first is the most urgent */
    uint32_t merge_count;
    uint32_t *slots; /* finds a merge by its left and right */
    size_t slot_count;
    uint32_t bytes[256]; /* the symbol of each byte */
    bool whole_words;    /* a word that is a token is that token, whatever the merges say */
} bpe;

/* Adds symbols to the texts. merges is an array of strings; both must outlive the bpe. */
bool bpe_build(bpe *b, token_texts *texts, const gguf_value *merges, bool whole_words, err *e);
void bpe_free(bpe *b);

/* Room that words share; starts as all zeros. */
typedef struct {
    uint32_t *symbols, *previous, *next;
    uint64_t *heap;
    size_t capacity, heap_count;
    char *text;
    size_t text_capacity;
} bpe_work;

void bpe_work_free(bpe_work *w);

/* Appends the tokens of a word of 1 to TOKENIZER_TEXT_MAX bytes. */
void bpe_encode(const bpe *b, bpe_work *w, const char *word, size_t bytes, token_list *out);

/* The character that a byte is written as, and back (-1: the character stands for no byte). */
uint32_t bpe_map_byte(unsigned char byte);
int bpe_unmap_byte(uint32_t point);

/* --- words: merges never cross the border of a word ---
 *
 * Each of the four ways was published as a regular expression; here they are hand-written matchers
 * that look at code points and their classes, in time linear in the text. */

typedef struct {
    const char *name;   /* as tokenizer.ggml.pre has it */
    bool lone_numbers;  /* every number code point is a word of its own */
    bool newer;         /* the rules of llama-bpe and qwen2, not those of gpt-2 */
    size_t most_digits; /* of a word of numbers, by the newer rules */
    bool whole_words;   /* a word that is a token is that token, whatever the merges say */
    bool add_bos;       /* unless the file says otherwise */
} pretokenizer;

const pretokenizer *pretokenizer_find(const char *name, size_t bytes); /* NULL: none */
extern const char pretokenizer_names[];                                /* for messages */

/* A text as code points and their classes (unicode_class). */
typedef struct {
    const uint32_t *points;
    const uint8_t *classes;
    size_t count;
} code_points;

/* The end of the word that starts at `at`; always after `at`. */
size_t pretokenizer_find_end(const pretokenizer *p, const code_points *text, size_t at);
