/* declare: marks variables that are declared without a value, so that checked mode can tell when
 * one is read before it is written: `float sum;` becomes `float ASSAY_NAME(sum); ASSAY_BIND(sum);`.
 *
 * Only statements of function bodies that are a type and names are marked. Other declarations are
 * left alone: checked mode then knows nothing about them and reports nothing. */
#include "internal.h"

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

/* The token after the type at i, or NOT_FOUND. */
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

enum { MAX_NAMES = 32 };

typedef struct {
    at names[MAX_NAMES];
    size_t count;
    at end; /* the ';' */
} statement;

/* Reads the statement at i, if it is a type and names only. */
static bool read_statement(const tokens *t, at i, statement *s) {
    s->count = 0;
    i = skip_type(t, i);
    if (i == NOT_FOUND)
        return false;
    for (;; i++) {
        if (!is_word(t, i) || begins_other(t, i) || s->count == MAX_NAMES)
            return false;
        s->names[s->count++] = i;
        for (i++; token_is(t, i, "["); i = t->list[i].pair + 1)
            continue;
        s->end = i;
        if (token_is(t, i, ";"))
            return true;
        if (!token_is(t, i, ","))
            return false;
    }
}

static void mark_statement(edits *d, const statement *s) {
    const tokens *t = &d->unit->tokens;
    text after = {0};
    text_print(&after, ";");
    for (size_t n = 0; n < s->count; n++) {
        int bytes = (int)t->list[s->names[n]].bytes;
        const char *name = token_text(t, s->names[n]);
        text hidden = {0};
        text_print(&hidden, "ASSAY_NAME(%.*s)", bytes, name);
        edits_replace(d, s->names[n], text_take(&hidden));
        text_print(&after, " ASSAY_BIND(%.*s);", bytes, name);
    }
    edits_replace(d, s->end, text_take(&after));
}

static void rewrite_body(edits *d, at open) {
    const tokens *t = &d->unit->tokens;
    at close = t->list[open].pair;
    for (at i = open; i < close; i++) {
        if (token_is(t, i, "(") && t->list[i].pair < close) {
            i = t->list[i].pair;
            continue;
        }
        /* A class inside a function has members, not variables. */
        if (token_is(t, i, "struct") || token_is(t, i, "union") || token_is(t, i, "class")) {
            while (i < close && !token_is(t, i, "{") && !token_is(t, i, ";"))
                i++;
            if (token_is(t, i, "{"))
                i = t->list[i].pair;
            continue;
        }
        if (!token_is(t, i, "{") && !token_is(t, i, "}") && !token_is(t, i, ";"))
            continue;
        statement s;
        if (read_statement(t, i + 1, &s) && s.end < close && !d->edit[s.end] && !d->edit[i + 1])
            mark_statement(d, &s);
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
