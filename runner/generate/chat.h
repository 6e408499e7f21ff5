/* chat: a question in the form that the model was trained on.
 *
 * The file has the form as a Jinja template, which is not evaluated: what it contains shows which of
 * the known forms it is. So far that is only ChatML, with the template's default system message if
 * it has one. */
#pragma once

#include "runner/gguf/gguf.h"

typedef struct {
    const char *system; /* NULL: the template's */
    const char *user;
    size_t user_bytes;
    bool is_later; /* not the first: ends the model's last answer, and has no system message */
} chat_turn;

/* The prompt for one turn of a user, up to where the model's answer starts. To be tokenized with
 * TOKENIZE_PARSE_SPECIAL; the caller frees the text. */
bool chat_render(const gguf *g, const chat_turn *turn, char **text, size_t *bytes, err *e);
