/* pieces: the bytes that each token of a vocabulary stands for. */
#pragma once

#include "kind.h"

typedef struct {
    gguf_text *items; /* of each token, control tokens with their own text */
    char *bytes;
} token_pieces;

void token_pieces_build(token_pieces *p, const tokenizer_kind *kind, const token_texts *t,
                        const special_tokens *s);
void token_pieces_free(token_pieces *p);
