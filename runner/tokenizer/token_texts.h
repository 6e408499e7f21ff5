/* token_texts: the tokens of a vocabulary as the file writes them, by id and by text. */
#pragma once

#include "text_set.h"
#include "tokenizer.h"

enum { TOKEN_TEXTS_MAX = 1 << 28 }; /* so that a kind may add a few texts for each */

typedef struct {
    text_set set; /* first the tokens, numbered by id; then texts that a kind of tokenizer added */
    uint32_t count; /* tokens */
} token_texts;

/* From tokenizer.ggml.tokens, which must outlive them. No two may be the same. */
bool token_texts_read(token_texts *t, const gguf *g, err *e);
void token_texts_free(token_texts *t);

gguf_text token_texts_get(const token_texts *t, uint32_t id);
uint32_t token_texts_find(const token_texts *t, gguf_text text); /* TOKEN_NONE: not a token */

/* An array of strings that the vocabulary needs; NULL with e set. */
const gguf_value *token_texts_find_array(const gguf *g, const char *key, err *e);
