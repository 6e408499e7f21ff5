/* tokenizer/kind: how one kind of vocabulary (tokenizer.ggml.model) cuts plain text into tokens.
 *
 * Special tokens, which tokens end a text, BOS and EOS, and the bytes of special tokens are the same
 * for all kinds (special, fragments, pieces); a kind sees only the text between them. To add one:
 * write a `const tokenizer_kind`, and add it to the list in tokenizer.c. */
#pragma once

#include "special.h"

typedef struct {
    const char *model; /* tokenizer.ggml.model: "gpt2" */
    const char *about; /* "byte-level BPE" */

    /* Reads what it needs besides the tokens' texts and the kinds that the file gives them. May add
     * texts after those of the tokens, and fills in defaults for what the file may say about BOS and
     * EOS. NULL with e set. */
    void *(*open)(const gguf *g, token_texts *texts, const special_tokens *s,
                  special_defaults *defaults, err *e);
    void (*close)(void *own);

    /* Appends the ids of a text of 1 to TOKENIZER_TEXT_MAX bytes. exact: bytes that are not UTF-8
     * stay as they are, where the kind would replace them. */
    void (*encode)(const void *own, const char *text, size_t bytes, bool exact, token_list *out);

    /* The bytes that a normal token stands for, from its text, into out (NULL: only counted). */
    size_t (*spell)(gguf_text text, char *out);
} tokenizer_kind;

extern const tokenizer_kind tokenizer_gpt2; /* gpt2.c */
extern const tokenizer_kind tokenizer_rwkv; /* rwkv.c */
