/* chat: see chat.h.
 *
 * The user's text is not kept apart from the form: a user who types <|im_end|> ends the turn, here as
 * in other programs that render templates. */
#include "chat.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN "<|im_start|>"
#define TURN_END "<|im_end|>"
#define SYSTEM_TURN TURN "system"

enum { LONGEST_SYSTEM = 4096 };

/* Where `text` is in the template from `from` on; the template's size if it is not there. */
static size_t find(gguf_text t, size_t from, const char *text) {
    size_t length = strlen(text);
    for (size_t i = from; i + length <= t.bytes; i++)
        if (memcmp(t.data + i, text, length) == 0)
            return i;
    return t.bytes;
}

/* The size of the line end after a role, as it is or as a Jinja string has it; 0: none. */
static size_t count_line_end(gguf_text t, size_t at) {
    if (at < t.bytes && t.data[at] == '\n')
        return 1;
    return at + 1 < t.bytes && memcmp(t.data + at, "\\n", 2) == 0 ? 2 : 0;
}

/* The system message that the template writes when it is given none: the first that is plain text
 * and not assembled from parts. Empty where there is none, or none of a sensible length. */
static gguf_text find_default_system(gguf_text t) {
    const size_t role = strlen(SYSTEM_TURN);
    for (size_t at = 0; (at = find(t, at, SYSTEM_TURN)) < t.bytes; at += role) {
        size_t line_end = count_line_end(t, at + role);
        size_t begin = at + role + line_end, left = t.bytes - begin;
        gguf_text message = {t.data + begin, left < LONGEST_SYSTEM ? left : LONGEST_SYSTEM};
        size_t end = find(message, 0, TURN_END);
        if (line_end == 0 || end == 0 || end == message.bytes)
            continue;
        message.bytes = end;
        size_t plain = 0;
        while (plain < end && message.data[plain] && !strchr("'\"\\{}", message.data[plain]))
            plain++;
        if (plain == end)
            return message;
    }
    return (gguf_text){"", 0};
}

bool chat_render(const gguf *g, const chat_turn *turn, char **text, size_t *bytes, err *e) {
    gguf_text form = {"", 0};
    bool found;
    if (!gguf_get_text(g, "tokenizer.chat_template", &form, &found, e))
        return false;
    if (!found)
        return err_set(e, EXIT_USAGE,
                       "the model has no tokenizer.chat_template: it was not trained to "
                       "chat; leave out --chat and give it a text to continue");
    if (find(form, 0, TURN) == form.bytes)
        return err_set(e, EXIT_USAGE,
                       "the model's tokenizer.chat_template has no " TURN "; "
                       "only ChatML is supported");
    gguf_text before =
        turn->system ? (gguf_text){turn->system, strlen(turn->system)} : find_default_system(form);
    bool has_system = turn->system || before.bytes > 0;
    size_t room = before.bytes + turn->user_bytes + 128;
    *text = malloc(room);
    assert(*text);
    size_t used = 0;
    if (turn->is_later)
        used = (size_t)snprintf(*text, room, TURN_END "\n");
    else if (has_system)
        used = (size_t)snprintf(*text, room, SYSTEM_TURN "\n%.*s" TURN_END "\n", (int)before.bytes,
                                before.data);
    used += (size_t)snprintf(*text + used, room - used, TURN "user\n");
    memcpy(*text + used, turn->user, turn->user_bytes); /* any bytes, NUL as well */
    used += turn->user_bytes;
    *bytes = used + (size_t)snprintf(*text + used, room - used, TURN_END "\n" TURN "assistant\n");
    return true;
}
