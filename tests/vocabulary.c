/* vocabulary: see vocabulary.h. */
#include "vocabulary.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "runner/tokenizer/bpe.h"
#include "runner/tokenizer/unicode.h"

static vocabulary current;
static char pool[1 << 20]; /* the texts */
static size_t pool_used;

static gguf_text keep(const char *text, size_t bytes) {
    assert(pool_used + bytes <= sizeof pool);
    char *copy = memcpy(pool + pool_used, text, bytes);
    pool_used += bytes;
    return (gguf_text){copy, bytes};
}

static uint32_t add(vocabulary *v, const char *text, size_t bytes, int32_t type) {
    assert(v->token_count < VOCABULARY_MOST);
    v->tokens[v->token_count] = keep(text, bytes);
    v->types[v->token_count] = type;
    v->type_count = v->token_count + 1;
    return (uint32_t)v->token_count++;
}

vocabulary *vocabulary_start(const char *pre) {
    memset(&current, 0, sizeof current);
    pool_used = 0;
    current.model = "gpt2";
    current.pre = pre;
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[UNICODE_BYTES];
        add(&current, text, unicode_encode(bpe_map_byte((unsigned char)byte), text), 1);
    }
    return &current;
}

/* As Python writes bytes. */
static size_t escape_byte(unsigned byte, char out[8]) {
    if (byte == '\\')
        return (size_t)snprintf(out, 8, "\\\\");
    if (byte == '\t' || byte == '\n' || byte == '\r')
        return (size_t)snprintf(out, 8, "\\%c", byte == '\t' ? 't' : byte == '\n' ? 'n' : 'r');
    if (byte < ' ' || byte > '~')
        return (size_t)snprintf(out, 8, "\\x%02x", byte);
    return (size_t)snprintf(out, 8, "%c", (char)byte);
}

vocabulary *vocabulary_start_world(void) {
    memset(&current, 0, sizeof current);
    pool_used = 0;
    current.model = "rwkv";
    vocabulary_add_token(&current, "<s>", 3);
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[8];
        add(&current, text, escape_byte(byte, text), 1);
    }
    return &current;
}

uint32_t vocabulary_add_token(vocabulary *v, const char *text, int32_t type) {
    return add(v, text, strlen(text), type);
}

void vocabulary_add_merge(vocabulary *v, const char *merge) {
    assert(v->merge_count < VOCABULARY_MOST);
    v->merges[v->merge_count++] = keep(merge, strlen(merge));
}

uint32_t vocabulary_join(vocabulary *v, const char *merge) {
    const char *space = strchr(merge + 1, ' ');
    char joined[256];
    assert(space);
    vocabulary_add_merge(v, merge);
    snprintf(joined, sizeof joined, "%.*s%s", (int)(space - merge), merge, space + 1);
    for (uint32_t i = 0; i < v->token_count; i++)
        if (gguf_text_equals(v->tokens[i], joined))
            return i;
    return vocabulary_add_token(v, joined, 1);
}

bool vocabulary_write(const vocabulary *v, const char *path, err *e) {
    gguf_writer *w = gguf_writer_new(path, e);
    if (!w)
        return false;
    gguf_writer_add_text(w, "tokenizer.ggml.model", (gguf_text){v->model, 4});
    if (v->pre)
        gguf_writer_add_text(w, "tokenizer.ggml.pre", (gguf_text){v->pre, strlen(v->pre)});
    gguf_writer_add_texts(w, "tokenizer.ggml.tokens", v->tokens, v->token_count);
    gguf_writer_add_texts(w, "tokenizer.ggml.merges", v->merges, v->merge_count);
    gguf_writer_add_i32s(w, "tokenizer.ggml.token_type", v->types, v->type_count);
    if (v->add_more)
        v->add_more(w);
    bool ok = gguf_writer_finish_header(w, e) && gguf_writer_finish(w, e);
    gguf_writer_free(w);
    return ok;
}

gguf *vocabulary_open(const vocabulary *v, err *e) {
    char folder[512], path[600];
    if (!os_make_scratch(folder, sizeof folder, e))
        return NULL;
    snprintf(path, sizeof path, "%s/vocabulary.gguf", folder);
    gguf *g = vocabulary_write(v, path, e) ? gguf_open(path, e) : NULL;
    os_remove_folder(folder);
    return g;
}

tokenizer *vocabulary_use(gguf *g, err *e) {
    static gguf *used;
    static tokenizer *made;
    tokenizer_free(made);
    gguf_free(used);
    used = g;
    return made = g ? tokenizer_new(g, e) : NULL;
}
