/* special: what kind each token of a vocabulary is, which tokens begin and end a text.
 *
 * The file says most of it. The rest follows from the texts of tokens, because many files do not
 * say which tokens end a turn: the rules are those that llama.cpp has come to, so that generation
 * stops where it would there. */
#ifndef ASSAY_SPECIAL_H
#define ASSAY_SPECIAL_H

#include "bpe.h"
#include "pretokenize.h"

/* A token is of one kind, except that a text can make it a control token too. */
enum {
    KIND_NORMAL = 1,
    KIND_UNKNOWN = 2,
    KIND_CONTROL = 4,
    KIND_USER = 8, /* put there by who made the vocabulary; always found in a text */
    KIND_BYTE = 16,
    KIND_END = 32 /* generation stops behind it */
};

typedef struct {
    uint8_t *kinds; /* of each token */
    uint32_t bos, eos;
    bool add_bos, add_eos;
} special_tokens;

bool special_read(special_tokens *s, const gguf *g, const bpe *b, const pretokenizer *p, err *e);
void special_free(special_tokens *s);

#endif
