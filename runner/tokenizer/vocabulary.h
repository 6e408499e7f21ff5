/* vocabulary: what the file says of its tokens, and how one kind of vocabulary (tokenizer.ggml.model)
 * cuts plain text into them.
 *
 * Special tokens, which tokens end a text, BOS and EOS, and the bytes of special tokens are the same
 * for all kinds; a kind sees only the text between them. To add one: write a `const tokenizer_kind`, and
 * add it to the list in tokenizer.c. */
#pragma once

#include "tokenizer.h"

/* --- texts: the tokens as the file writes them, by id and by text --- */

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

/* --- what they are for --- */

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

/* The kinds as the file gives them; then everything else. The rest follows from the texts of tokens,
 * because many files do not say which tokens end a turn: the rules are those that llama.cpp has come
 * to, so that generation stops where it would there. */
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

/* --- a kind --- */

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

extern const tokenizer_kind tokenizer_gpt2; /* bpe.c */
extern const tokenizer_kind tokenizer_rwkv; /* rwkv.c */
