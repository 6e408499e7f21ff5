/* tokenizer: see tokenizer.h. Puts the parts together: vocabulary.c knows which tokens are which and finds
 * them in a text, the vocabulary's kind encodes what is between them, and each token's bytes are here. */
#include "tokenizer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "vocabulary.h"

/* The bytes that each token stands for. */
typedef struct {
    gguf_text *items; /* of each token, control tokens with their own text */
    char *bytes;
} token_pieces;

struct tokenizer {
    const tokenizer_kind *kind;
    void *own; /* the kind's */
    token_texts texts;
    special_tokens special;
    special_index all, user; /* what is looked for in a text: all special tokens, or only those
                                that are not control tokens */
    token_pieces pieces;
};

void token_list_add(token_list *l, uint32_t id) {
    *ARRAY_ADD(l->items, l->count, l->capacity) = id;
}

void token_list_free(token_list *l) {
    free(l->items);
    *l = (token_list){0};
}

/* --- the bytes of tokens --- */

/* "<0x0A>" is the byte 10. */
static bool read_byte(gguf_text text, char *out) {
    if (text.bytes != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>')
        return false;
    char digits[3] = {text.data[3], text.data[4], 0};
    if (strspn(digits, "0123456789abcdefABCDEF") != 2)
        return false;
    *out = (char)strtoul(digits, NULL, 16);
    return true;
}

static size_t write_piece(const tokenizer_kind *kind, gguf_text text, uint8_t kinds, char *out) {
    char byte;
    if (kinds & KIND_NORMAL)
        return kind->spell(text, out);
    if (!(kinds & KIND_BYTE) || !read_byte(text, &byte))
        return 0;
    if (out)
        *out = byte;
    return 1;
}

static void pieces_build(token_pieces *p, const tokenizer_kind *kind, const token_texts *t,
                         const special_tokens *s) {
    const uint8_t as_it_is = KIND_CONTROL | KIND_UNKNOWN | KIND_USER;
    size_t total = 0, at = 0;
    for (uint32_t id = 0; id < t->count; id++)
        if (!(s->kinds[id] & as_it_is))
            total += write_piece(kind, token_texts_get(t, id), s->kinds[id], NULL);
    p->items = array_new(t->count, sizeof *p->items);
    p->bytes = array_new(1, total + 1);
    for (uint32_t id = 0; id < t->count; id++) {
        if (s->kinds[id] & as_it_is) {
            p->items[id] = token_texts_get(t, id);
            continue;
        }
        size_t length = write_piece(kind, token_texts_get(t, id), s->kinds[id], p->bytes + at);
        p->items[id] = (gguf_text){p->bytes + at, length};
        at += length;
    }
}

static void pieces_free(token_pieces *p) {
    free(p->items);
    free(p->bytes);
    *p = (token_pieces){0};
}

/* --- a tokenizer from a file --- */

static const tokenizer_kind *const kinds[] = {&tokenizer_gpt2, &tokenizer_rwkv};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool find_kind(const gguf *g, const tokenizer_kind **out, err *e) {
    gguf_text model;
    char shown[48], known[128] = "";
    size_t used = 0;
    if (!gguf_get_text(g, "tokenizer.ggml.model", &model, NULL, e))
        return false;
    for (size_t i = 0; i < KINDS; i++) {
        *out = kinds[i];
        if (gguf_text_equals(model, kinds[i]->model))
            return true;
        used += (size_t)snprintf(known + used, sizeof known - used, "%s'%s', %s", i ? "; " : "",
                                 kinds[i]->model, kinds[i]->about);
    }
    gguf_print_text(model, shown, sizeof shown);
    if (gguf_text_equals(model, "no_vocab") || gguf_text_equals(model, "none"))
        return err_set(e, EXIT_USAGE, "the file has no vocabulary (tokenizer.ggml.model is '%s')",
                       shown);
    return err_set(e, EXIT_USAGE, "tokenizer.ggml.model is '%s'%s (supported: %s)", shown,
                   gguf_text_equals(model, "llama") ? " (SentencePiece)" : "", known);
}

tokenizer *tokenizer_new(const gguf *g, err *e) {
    tokenizer *t = array_new(1, sizeof *t);
    special_defaults defaults = {TOKEN_NONE, TOKEN_NONE, false};
    bool ok = find_kind(g, &t->kind, e) && token_texts_read(&t->texts, g, e) &&
              special_read_kinds(&t->special, g, &t->texts, e) &&
              (t->own = t->kind->open(g, &t->texts, &t->special, &defaults, e)) &&
              special_read(&t->special, g, &t->texts, &defaults, e);
    if (!ok) {
        tokenizer_free(t);
        return NULL;
    }
    special_index_build(&t->all, &t->texts, &t->special, KIND_CONTROL | KIND_UNKNOWN | KIND_USER,
                        0);
    special_index_build(&t->user, &t->texts, &t->special, KIND_USER, KIND_CONTROL | KIND_UNKNOWN);
    pieces_build(&t->pieces, t->kind, &t->texts, &t->special);
    return t;
}

void tokenizer_free(tokenizer *t) {
    if (!t)
        return;
    pieces_free(&t->pieces);
    special_index_free(&t->all);
    special_index_free(&t->user);
    special_free(&t->special);
    if (t->own)
        t->kind->close(t->own);
    token_texts_free(&t->texts);
    free(t);
}

size_t tokenizer_get_count(const tokenizer *t) {
    return t->texts.count;
}

uint32_t tokenizer_get_bos(const tokenizer *t) {
    return t->special.bos;
}

bool tokenizer_is_end(const tokenizer *t, uint32_t id) {
    return id < t->texts.count && (t->special.kinds[id] & KIND_END);
}

/* --- text to tokens --- */

void tokenizer_encode(const tokenizer *t, const char *text, size_t bytes, unsigned flags,
                      token_list *out) {
    assert(bytes <= TOKENIZER_TEXT_MAX);
    bool add_special = flags & TOKENIZE_ADD_SPECIAL;
    if (add_special && t->special.add_bos && t->special.bos != TOKEN_NONE)
        token_list_add(out, t->special.bos);
    if (bytes > 0) {
        fragment_list list =
            fragments_find(flags & TOKENIZE_PARSE_SPECIAL ? &t->all : &t->user, text, bytes);
        for (size_t i = 0; i < list.count; i++) {
            fragment f = list.items[i];
            if (f.token == TOKEN_NONE)
                t->kind->encode(t->own, text + f.begin, f.end - f.begin, flags & TOKENIZE_EXACT,
                                out);
            else
                token_list_add(out, f.token);
        }
        free(list.items);
    }
    if (add_special && t->special.add_eos && t->special.eos != TOKEN_NONE)
        token_list_add(out, t->special.eos);
}

/* --- tokens to text --- */

gguf_text tokenizer_get_piece(const tokenizer *t, uint32_t id, bool special) {
    static const gguf_text nothing = {"", 0};
    if (id >= t->texts.count)
        return nothing;
    bool hidden = t->special.kinds[id] & (KIND_CONTROL | KIND_UNKNOWN);
    return hidden && !special ? nothing : t->pieces.items[id];
}

size_t tokenizer_count_partial(const char *text, size_t bytes) {
    for (size_t n = 1; n <= 3 && n <= bytes; n++) {
        unsigned char c = (unsigned char)text[bytes - n];
        if ((c & 0xC0) == 0x80)
            continue;
        size_t whole = c >= 0xF0 && c < 0xF8 ? 4 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xC0 ? 2 : 1;
        return c < 0xF8 && n < whole ? n : 0;
    }
    return 0;
}
