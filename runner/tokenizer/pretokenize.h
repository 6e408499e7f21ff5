/* pretokenize: cuts a text into words; merges never cross the border of a word.
 *
 * Each of the four ways was published as a regular expression; here they are hand-written matchers
 * that look at code points and their classes, in time linear in the text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
