/* declare: marks variables that are declared without a value, so that checked mode can tell when
 * one is read before it is written: `float sum;` becomes `float sum; ASSAY_DECLARE(sum);`.
 *
 * Looks at statements of function bodies that are nothing but a type and names. Whatever is written
 * differently is left alone: then nothing is known of it, and nothing wrong is said. */
#include "internal.h"

#include <stdlib.h>

static bool is_word(const tokens *t, at i) {
    return t->list[i].kind == TOKEN_WORD;
}

/* Words that begin a statement which declares no variable of a function. */
static bool begins_other(const tokens *t, at i) {
    static const char *const words[] = {
        "return",      "goto",    "break",  "continue", "else",      "case",      "default",
        "using",       "typedef", "do",     "struct",   "class",     "union",     "enum",
        "threadgroup", "static",  "extern", "constant", "constexpr", "template",  "const",
        "auto",        "throw",   "delete", "new",      "operator",  "namespace", "if",
        "for",         "while",   "switch", "kernel",   NULL};
    return token_is_one_of(t, i, words);
}

/* Behind the type at i, or NOT_FOUND. */
static at skip_type(const tokens *t, at i) {
    if (token_is(t, i, "thread") || token_is(t, i, "volatile"))
        i++;
    static const char *const numbers[] = {"unsigned", "signed", "long", "short", NULL};
    while (token_is_one_of(t, i, numbers) && is_word(t, i + 1) &&
           (token_is_one_of(t, i + 1, numbers) || token_is(t, i + 1, "int") ||
            token_is(t, i + 1, "char")))
        i++;
    for (;;) {
        if (!is_word(t, i) || begins_other(t, i))
            return NOT_FOUND;
        i++;
        if (token_is(t, i, "<")) {
            at close = tokens_close_angle(t, i);
            if (close == NOT_FOUND)
                return NOT_FOUND;
            i = close + 1;
        }
        if (!token_is(t, i, "::"))
            return i;
        i++;
    }
}

/* The variables of the statement at i, up to its ';', if that is all it is. */
static at read_statement(const tokens *t, at i, text *names) {
    i = skip_type(t, i);
    if (i == NOT_FOUND)
        return NOT_FOUND;
    for (;; i++) {
        if (!is_word(t, i) || begins_other(t, i))
            return NOT_FOUND;
        text_print(names, " ASSAY_DECLARE(%.*s);", (int)t->list[i].bytes, token_text(t, i));
        for (i++; token_is(t, i, "["); i = t->list[i].pair + 1)
            continue;
        if (token_is(t, i, ";"))
            return i;
        if (!token_is(t, i, ","))
            return NOT_FOUND;
    }
}

static void rewrite_body(edits *d, at open) {
    const tokens *t = &d->unit->tokens;
    at close = t->list[open].pair;
    for (at i = open; i < close; i++) {
        /* A class of its own inside of a function has members, not variables. */
        if (token_is(t, i, "struct") || token_is(t, i, "union") || token_is(t, i, "class")) {
            while (i < close && !token_is(t, i, "{") && !token_is(t, i, ";"))
                i++;
            if (token_is(t, i, "{"))
                i = t->list[i].pair;
            continue;
        }
        if (!token_is(t, i, "{") && !token_is(t, i, "}") && !token_is(t, i, ";"))
            continue;
        text names = {0};
        at end = read_statement(t, i + 1, &names);
        if (end != NOT_FOUND && end < close && !d->edit[end] && !d->edit[i + 1]) {
            text whole = {0};
            char *list = text_take(&names);
            text_print(&whole, ";%s", list);
            edits_replace(d, end, text_take(&whole));
            free(list);
        } else {
            free(names.data);
        }
    }
}

static bool visit(void *context, const decl *found, const char *prefix) {
    (void)prefix;
    edits *d = context;
    if (found->kind == DECL_FUNCTION && found->body != NOT_FOUND)
        rewrite_body(d, found->body);
    return true;
}

void declare_rewrite(edits *d) {
    decl_visit(&d->unit->tokens, visit, d);
}
