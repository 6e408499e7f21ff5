/* special: what kind each token of a vocabulary is, which tokens begin and end a text.
 *
 * The file says most of it. The rest follows from the texts of tokens, because many files do not
 * say which tokens end a turn: the rules are those that llama.cpp has come to, so that generation
 * stops where it would there. */
#pragma once

#include "token_texts.h"

/* A token is of one kind, except that a text can make it a control token too. */
enum {
    KIND_NORMAL = 1,
    KIND_UNKNOWN = 2,
    KIND_CONTROL = 4,
    KIND_USER = 8, /* added by whoever made the vocabulary; always found in a text */
    KIND_BYTE = 16,
    KIND_END = 32 /* generation stops after it */
};

typedef struct {
    uint8_t *kinds; /* of each token */
    uint32_t bos, eos;
    bool add_bos, add_eos;
} special_tokens;

/* Where the file does not say. */
typedef struct {
    uint32_t bos, eos; /* ids that are not in the vocabulary are none */
    bool add_bos;
} special_defaults;

/* The kinds as the file gives them; then everything else. */
bool special_read_kinds(special_tokens *s, const gguf *g, const token_texts *t, err *e);
bool special_read(special_tokens *s, const gguf *g, const token_texts *t,
                  const special_defaults *defaults, err *e);
void special_free(special_tokens *s);
