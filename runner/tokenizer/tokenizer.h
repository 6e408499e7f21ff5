/* tokenizer: text to token ids and back, from the vocabulary in a GGUF file.
 *
 * Byte-level BPE ('gpt2') with the pre-tokenizers smollm, gpt-2, llama-bpe and qwen2, and the World
 * vocabulary of RWKV ('rwkv'); other kinds join through vocabulary.h. The ids are those that
 * llama.cpp gives. Any bytes are text. */
#pragma once

#include "runner/gguf/gguf.h"

/* The ids of tokens, as many as are added. */
typedef struct {
    uint32_t *items;
    size_t count, capacity;
} token_list;

void token_list_add(token_list *l, uint32_t id);
void token_list_free(token_list *l); /* empty again */

typedef struct tokenizer tokenizer;

#define TOKEN_NONE UINT32_MAX

enum { TOKENIZER_TEXT_MAX = 1 << 30 }; /* bytes of a text */

tokenizer *tokenizer_new(const gguf *g, err *e); /* g must outlive it */
void tokenizer_free(tokenizer *t);

size_t tokenizer_get_count(const tokenizer *t);
uint32_t tokenizer_get_bos(const tokenizer *t);         /* TOKEN_NONE: there is none */
bool tokenizer_is_end(const tokenizer *t, uint32_t id); /* generation stops after it */

typedef enum {
    TOKENIZE_PLAIN = 0,
    TOKENIZE_ADD_SPECIAL = 1,   /* BOS and EOS where the file asks for them */
    TOKENIZE_PARSE_SPECIAL = 2, /* "<|im_start|>" in the text is that token */
    TOKENIZE_EXACT = 4          /* bytes that are not UTF-8 stay; llama.cpp makes them U+FFFD */
} tokenize_flags;

/* Appends the ids of a text of at most TOKENIZER_TEXT_MAX bytes. */
void tokenizer_encode(const tokenizer *t, const char *text, size_t bytes, unsigned flags,
                      token_list *out);

/* The bytes that a token stands for: empty for control tokens unless `special`. They may be a part
 * of a character. */
gguf_text tokenizer_get_piece(const tokenizer *t, uint32_t id, bool special);

/* How many bytes at the end of a text are the beginning of a UTF-8 character that is not all there
 * yet, 0 to 3: a stream holds them back. */
size_t tokenizer_count_partial(const char *text, size_t bytes);
