/* edits: what becomes of each token of a file, and the text that this makes. */
#include "internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

edits edits_new(const msl_unit *u) {
    edits d = {.unit = u};
    d.edit = array_new((size_t)u->tokens.count + 1, sizeof *d.edit);
    return d;
}

void edits_free(edits *d) {
    for (size_t i = 0; i < d->owned_count; i++)
        free(d->owned[i]);
    free(d->owned);
    free(d->edit);
}

void edits_drop(edits *d, at begin, at end) {
    for (at i = begin; i < end; i++)
        d->edit[i] = "";
}

void edits_replace(edits *d, at i, char *owned) {
    *ARRAY_ADD(d->owned, d->owned_count, d->owned_room) = owned;
    d->edit[i] = owned;
}

static bool is_dropped_directive(const char *p, size_t bytes) {
    const char *end = p + bytes;
    p++;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    size_t left = (size_t)(end - p);
    if (left >= 7 && (strncmp(p, "include", 7) == 0 || strncmp(p, "import ", 7) == 0))
        return true;
    if (left < 6 || strncmp(p, "pragma", 6) != 0)
        return false;
    static const char *const words[] = {"unroll", "METAL", "once", "unused", NULL};
    for (size_t i = 0; words[i]; i++)
        for (const char *q = p; q + strlen(words[i]) <= end; q++)
            if (strncmp(q, words[i], strlen(words[i])) == 0)
                return true;
    return false;
}

/* Copies what lies between two tokens, without the directives that C++ does not want. */
static void add_trivia(text *out, const tokens *t, uint32_t from, uint32_t to, size_t *next) {
    while (*next < t->directive_count && t->directives[*next].begin < to) {
        const directive *d = &t->directives[(*next)++];
        text_add(out, t->source + from, d->begin - from);
        from = d->begin + d->bytes;
        if (!is_dropped_directive(t->source + d->begin, d->bytes))
            text_add(out, t->source + d->begin, d->bytes);
        else
            for (uint32_t i = d->begin; i < from; i++)
                if (t->source[i] == '\n')
                    text_add(out, "\n", 1);
    }
    text_add(out, t->source + from, to - from);
}

static bool is_word_char(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* Blanks inside a dropped range are dropped too; comments and line ends stay. */
static bool is_dropped_blank(const edits *d, at i, uint32_t from) {
    const token *k = &d->unit->tokens.list[i];
    if (i == 0 || i >= d->unit->tokens.count || !d->edit[i] || *d->edit[i] || !d->edit[i - 1])
        return false;
    return strspn(d->unit->tokens.source + from, " \t") >= k->begin - from;
}

void edits_print(const edits *d, text *out) {
    const tokens *t = &d->unit->tokens;
    uint32_t from = 0;
    size_t directive_next = 0;
    for (at i = 0; i <= t->count; i++) {
        const token *k = &t->list[i];
        const char *edit = i < t->count ? d->edit[i] : "";
        if (!is_dropped_blank(d, i, from))
            add_trivia(out, t, from, k->begin, &directive_next);
        from = k->begin + k->bytes;
        const char *p = edit ? edit : t->source + k->begin;
        size_t bytes = edit ? strlen(edit) : k->bytes;
        bool touches =
            bytes && out->used && is_word_char(out->data[out->used - 1]) && is_word_char(*p);
        if (touches)
            text_add(out, " ", 1);
        text_add(out, p, bytes);
    }
}
