/* chat: a question in the form that the model was trained on.
 *
 * The file has the form as a Jinja template, which is not evaluated: what it contains tells which of
 * the known forms it is. So far that is only ChatML, with the template's default system message if
 * it has one. */
#pragma once

#include "gguf.h"

/* The prompt for one turn of a user, up to where the model's answer starts. system may be NULL. To
 * be tokenized with TOKENIZE_PARSE_SPECIAL; the caller frees the text. */
bool chat_render(const gguf *g, const char *system, const char *user, size_t user_bytes,
                 char **text, size_t *bytes, err *e);
