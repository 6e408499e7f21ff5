/* chat: a question in the form that a model was trained to be asked in.
 *
 * The file has its form as a template in Jinja. There is no Jinja here: what the template contains
 * tells which of the known forms it is. That is ChatML alone so far, with the template's own
 * default system message if it has one. */
#ifndef ASSAY_CHAT_H
#define ASSAY_CHAT_H

#include "gguf.h"

/* The prompt for one turn of a user, up to where the model's answer starts. system may be NULL. To
 * be tokenized with TOKENIZE_PARSE_SPECIAL; the caller frees the text. */
bool chat_render(const gguf *g, const char *system, const char *user, char **text, err *e);

#endif
