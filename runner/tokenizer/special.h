/* special: what kind each token of a vocabulary is, which tokens begin and end a text, and where a text
 * has them.
 *
 * The file says most of it. The rest follows from the texts of tokens, because many files do not
 * say which tokens end a turn: the rules are those that llama.cpp has come to, so that generation
 * stops where it would there. */
#pragma once

#include "vocabulary.h"

/* The kinds as the file gives them; then everything else. */
bool special_read_kinds(special_tokens *s, const gguf *g, const token_texts *t, err *e);
bool special_read(special_tokens *s, const gguf *g, const token_texts *t,
                  const special_defaults *defaults, err *e);
void special_free(special_tokens *s);

/* --- special tokens in a text, which cut it into pieces of plain text ---
 *
 * Longer tokens are looked for first, in all of the text; of tokens of the same length the leftmost
 * is taken. The time depends on how many lengths the tokens have, not on how many tokens there are. */

typedef struct {
    size_t bytes;
    bool first[256]; /* what tokens of this length begin with */
} special_length;

/* The tokens that are looked for: of the kinds `any`, and none of the kinds `none`. */
typedef struct {
    const token_texts *texts;
    const special_tokens *s;
    uint8_t any, none;
    special_length *lengths; /* the longest first */
    size_t count;
} special_index;

void special_index_build(special_index *x, const token_texts *texts, const special_tokens *s,
                         uint8_t any, uint8_t none);
void special_index_free(special_index *x);

typedef struct {
    size_t begin, end;
    uint32_t token; /* TOKEN_NONE: plain text */
} fragment;

typedef struct {
    fragment *items;
    size_t count, capacity;
} fragment_list;

/* Nothing of the text is left out, and no fragment is empty. The caller frees the items. */
fragment_list fragments_find(const special_index *x, const char *text, size_t bytes);
