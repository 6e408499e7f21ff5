/* vocabulary: see vocabulary.h. */
#include "vocabulary.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

const gguf_value *token_texts_find_array(const gguf *g, const char *key, err *e) {
    const gguf_value *v = gguf_find_value(g, key);
    if (!v)
        err_set(e, EXIT_USAGE, "%s is missing: the file has no vocabulary to tokenize with", key);
    else if (v->type != GGUF_ARRAY || v->element != GGUF_STRING)
        err_set(e, EXIT_USAGE, "%s is not an array of strings", key);
    else
        return v;
    return NULL;
}

/* A token without a text is written [EMPTY_7], so that every token has a text of its own. */
bool token_texts_read(token_texts *t, const gguf *g, err *e) {
    const gguf_value *tokens = token_texts_find_array(g, "tokenizer.ggml.tokens", e);
    if (!tokens)
        return false;
    if (tokens->count == 0 || tokens->count > TOKEN_TEXTS_MAX)
        return err_set(e, EXIT_USAGE, "tokenizer.ggml.tokens has %zu tokens; 1 to %d are possible",
                       tokens->count, (int)TOKEN_TEXTS_MAX);
    for (uint32_t id = 0; id < tokens->count; id++) {
        gguf_text text = tokens->texts[id];
        char empty[24], shown[48];
        int length = snprintf(empty, sizeof empty, "[EMPTY_%" PRIu32 "]", id);
        uint32_t number = text.bytes > 0
                              ? text_set_add(&t->set, text)
                              : text_set_add_copy(&t->set, (gguf_text){empty, (size_t)length});
        if (number != id)
            return err_set(e, EXIT_USAGE,
                           "tokens %" PRIu32 " and %" PRIu32 " of tokenizer.ggml.tokens are both "
                           "'%s'; no two may be the same",
                           number, id, gguf_print_text(t->set.items[number], shown, sizeof shown));
    }
    t->count = (uint32_t)tokens->count;
    return true;
}

void token_texts_free(token_texts *t) {
    text_set_free(&t->set);
    t->count = 0;
}

gguf_text token_texts_get(const token_texts *t, uint32_t id) {
    assert(id < t->count);
    return t->set.items[id];
}

uint32_t token_texts_find(const token_texts *t, gguf_text text) {
    uint32_t number = text_set_find(&t->set, text);
    return number < t->count ? number : TOKEN_NONE;
}
