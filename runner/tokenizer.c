/* tokenizer: see tokenizer.h. Puts the parts together: fragments finds special tokens, pretokenize
 * cuts the rest into words, bpe encodes a word, special knows which tokens are which.
 *
 * The one surprise: text goes through code points on its way, so that bytes which are no UTF-8 come
 * out as U+FFFD, and overlong forms as the short ones. */
#include "tokenizer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fragments.h"
#include "gguf_parse.h"
#include "pieces.h"
#include "unicode.h"

struct tokenizer {
    bpe b;
    special_tokens special;
    const pretokenizer *pre;
    special_index all, user; /* what is looked for in a text: all special tokens, or only those
                                that are not control tokens */
    token_pieces pieces;
};

void token_list_add(token_list *l, uint32_t id) {
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 64;
        l->items = realloc(l->items, l->capacity * sizeof *l->items);
        assert(l->items);
    }
    l->items[l->count++] = id;
}

void token_list_free(token_list *l) {
    free(l->items);
    *l = (token_list){0};
}

/* --- a tokenizer from a file --- */

static bool read_pre(const gguf *g, const pretokenizer **pre, err *e) {
    gguf_text model, name = {"", 0};
    bool found;
    char shown[48];
    if (!gguf_get_text(g, "tokenizer.ggml.model", &model, NULL, e) ||
        !gguf_get_text(g, "tokenizer.ggml.pre", &name, &found, e))
        return false;
    if (gguf_text_equals(model, "no_vocab") || gguf_text_equals(model, "none"))
        return err_set(e, EXIT_CANNOT, "the file has no vocabulary (tokenizer.ggml.model is '%s')",
                       gguf_print_text(model, shown, sizeof shown));
    if (!gguf_text_equals(model, "gpt2"))
        return err_set(e, EXIT_CANNOT,
                       "tokenizer.ggml.model is '%s'%s; byte-level BPE, 'gpt2', is all there is",
                       gguf_print_text(model, shown, sizeof shown),
                       gguf_text_equals(model, "llama") ? " (SentencePiece)" : "");
    if (!found)
        return err_set(e, EXIT_CANNOT,
                       "tokenizer.ggml.pre is missing, so nothing says how words are cut; it "
                       "must be one of %s",
                       pretokenizer_names);
    *pre = pretokenizer_find(name.data, name.bytes);
    return *pre || err_set(e, EXIT_CANNOT, "tokenizer.ggml.pre is '%s'; there are only %s",
                           gguf_print_text(name, shown, sizeof shown), pretokenizer_names);
}

static const gguf_value *find_texts(const gguf *g, const char *key, err *e) {
    const gguf_value *v = gguf_find_value(g, key);
    if (!v)
        err_set(e, EXIT_CANNOT, "%s is missing: the file has no vocabulary to tokenize with", key);
    else if (v->type != GGUF_ARRAY || v->element != GGUF_STRING)
        err_set(e, EXIT_CANNOT, "%s is not an array of strings", key);
    else
        return v;
    return NULL;
}

tokenizer *tokenizer_new(const gguf *g, err *e) {
    tokenizer *t = calloc(1, sizeof *t);
    assert(t);
    const gguf_value *tokens = NULL, *merges = NULL;
    bool ok = read_pre(g, &t->pre, e) && (tokens = find_texts(g, "tokenizer.ggml.tokens", e)) &&
              (merges = find_texts(g, "tokenizer.ggml.merges", e)) &&
              bpe_build(&t->b, tokens, merges, t->pre->whole_words, e) &&
              special_read(&t->special, g, &t->b, t->pre, e);
    if (!ok) {
        tokenizer_free(t);
        return NULL;
    }
    special_index_build(&t->all, &t->b, &t->special, KIND_CONTROL | KIND_UNKNOWN | KIND_USER, 0);
    special_index_build(&t->user, &t->b, &t->special, KIND_USER, KIND_CONTROL | KIND_UNKNOWN);
    token_pieces_build(&t->pieces, &t->b, &t->special);
    return t;
}

void tokenizer_free(tokenizer *t) {
    if (!t)
        return;
    token_pieces_free(&t->pieces);
    special_index_free(&t->all);
    special_index_free(&t->user);
    special_free(&t->special);
    bpe_free(&t->b);
    free(t);
}

size_t tokenizer_get_count(const tokenizer *t) {
    return t->b.token_count;
}

const char *tokenizer_get_pre(const tokenizer *t) {
    return t->pre->name;
}

uint32_t tokenizer_get_bos(const tokenizer *t) {
    return t->special.bos;
}

uint32_t tokenizer_get_eos(const tokenizer *t) {
    return t->special.eos;
}

bool tokenizer_is_end(const tokenizer *t, uint32_t id) {
    return id < t->b.token_count && (t->special.kinds[id] & KIND_END);
}

/* --- text to tokens --- */

/* Room that the fragments of a text share. */
typedef struct {
    uint32_t *points;
    uint8_t *classes;
    char *word;
    bpe_work bpe;
} work;

static void work_init(work *w, size_t bytes) {
    *w = (work){.points = malloc(bytes * sizeof *w->points),
                .classes = malloc(bytes),
                .word = malloc(bytes * UNICODE_BYTES)};
    assert(w->points && w->classes && w->word);
}

static void work_free(work *w) {
    free(w->points);
    free(w->classes);
    free(w->word);
    bpe_work_free(&w->bpe);
}

static code_points decode(work *w, const char *text, size_t bytes) {
    size_t count = 0;
    for (size_t i = 0; i < bytes; count++) {
        i += unicode_decode(text + i, bytes - i, &w->points[count]);
        w->classes[count] = (uint8_t)unicode_get_class(w->points[count]);
    }
    return (code_points){w->points, w->classes, count};
}

/* A word as code points again, which mends what was no UTF-8, or as the bytes it was. */
static void encode_plain(const tokenizer *t, work *w, const char *text, size_t bytes, bool exact,
                         token_list *out) {
    code_points points = decode(w, text, bytes);
    size_t read = 0; /* bytes of the text that the words so far took */
    for (size_t at = 0, end; at < points.count; at = end) {
        size_t length = 0, begin = read;
        uint32_t ignored;
        end = pretokenizer_find_end(t->pre, &points, at);
        for (size_t i = at; i < end; i++) {
            length += unicode_encode(points.points[i], w->word + length);
            read += unicode_decode(text + read, bytes - read, &ignored);
        }
        if (exact)
            bpe_encode(&t->b, &w->bpe, text + begin, read - begin, out);
        else
            bpe_encode(&t->b, &w->bpe, w->word, length, out);
    }
}

void tokenizer_encode(const tokenizer *t, const char *text, size_t bytes, unsigned flags,
                      token_list *out) {
    assert(bytes <= TOKENIZER_TEXT_MAX);
    bool add_special = flags & TOKENIZE_ADD_SPECIAL;
    if (add_special && t->special.add_bos && t->special.bos != TOKEN_NONE)
        token_list_add(out, t->special.bos);
    if (bytes > 0) {
        work w;
        work_init(&w, bytes);
        fragment_list list =
            fragments_find(flags & TOKENIZE_PARSE_SPECIAL ? &t->all : &t->user, text, bytes);
        for (size_t i = 0; i < list.count; i++) {
            fragment f = list.items[i];
            if (f.token == TOKEN_NONE)
                encode_plain(t, &w, text + f.begin, f.end - f.begin, flags & TOKENIZE_EXACT, out);
            else
                token_list_add(out, f.token);
        }
        free(list.items);
        work_free(&w);
    }
    if (add_special && t->special.add_eos && t->special.eos != TOKEN_NONE)
        token_list_add(out, t->special.eos);
}

/* --- tokens to text --- */

gguf_text tokenizer_get_piece(const tokenizer *t, uint32_t id, bool special) {
    static const gguf_text nothing = {"", 0};
    if (id >= t->b.token_count)
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
