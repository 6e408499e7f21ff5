/* declare: marks variables that are declared without a value, so that checked mode can tell when
 * one is read before it is written: `float sum;` on line 7 becomes `float ASSAY_NAME(7, sum);
 * ASSAY_BIND(7, sum);`.
 * Arrays are marked with and without a value, so that a pointer that leaves one is seen.
 *
 * Only declarations in function bodies are marked. Other declarations are left alone: checked mode
 * then knows nothing about them and reports nothing. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

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

/* One name of a declaration. */
typedef struct {
    at name, end;  /* end: the ',' or ';' */
    bool is_plain; /* a name with nothing but array bounds, and maybe a value */
    bool is_array, has_value;
} declarator;

typedef struct {
    range type; /* as it is written, without what stands before each name */
    declarator names[MAX_NAMES];
    size_t count;
} statement;

/* Reads the name at i, up to its ',' or ';'. False if this is no declaration after all. */
static bool read_declarator(const tokens *t, at i, declarator *n) {
    *n = (declarator){.is_plain = true};
    while (token_is(t, i, "*") || token_is(t, i, "&") || token_is(t, i, "const")) {
        n->is_plain = false;
        i++;
    }
    if (!is_word(t, i) || begins_other(t, i))
        return false;
    n->name = i++;
    for (; token_is(t, i, "["); i = t->list[i].pair + 1)
        n->is_array = true;
    static const char *const next[] = {";", ",", "=", "{", NULL};
    if (!token_is_one_of(t, i, next))
        return false;
    n->has_value = token_is(t, i, "=") || token_is(t, i, "{");
    for (; i < t->count && !token_is(t, i, ",") && !token_is(t, i, ";"); i++) {
        if (token_is(t, i, "}") || token_is(t, i, ")"))
            return false;
        if (token_is(t, i, "<")) { /* a comma of template arguments ends nothing */
            at close = tokens_close_angle(t, i);
            if (close != NOT_FOUND && (token_is(t, close + 1, "(") || token_is(t, close + 1, "{") ||
                                       token_is(t, close + 1, "::")))
                i = close;
        } else if (t->list[i].pair != NOT_FOUND && t->list[i].pair > i) {
            i = t->list[i].pair;
        }
    }
    n->end = i;
    return i < t->count;
}

static bool is_marked(const declarator *n) {
    return n->is_plain && (n->is_array || !n->has_value);
}

/* Reads the statement at i. False if it declares nothing that is to be marked. */
static bool read_statement(const tokens *t, at i, statement *s) {
    s->count = 0;
    bool is_const = token_is(t, i, "const"), any = false;
    s->type.begin = i;
    i = skip_type(t, i + is_const);
    if (i == NOT_FOUND)
        return false;
    s->type.end = i;
    for (;; i++) {
        declarator *n = &s->names[s->count++];
        if (s->count == MAX_NAMES || !read_declarator(t, i, n) || (is_const && !n->has_value))
            return false;
        any = any || is_marked(n);
        i = n->end;
        if (token_is(t, i, ";"))
            return any;
    }
}

/* Each name that is marked becomes a declaration of its own, so that the names after it can use
 * it. */
static void mark_statement(edits *d, const statement *s) {
    const tokens *t = &d->unit->tokens;
    char *type = tokens_join(t, s->type.begin, s->type.end);
    int line = t->list[s->type.begin].line;
    for (size_t k = 0; k < s->count; k++) {
        const declarator *n = &s->names[k];
        if (!is_marked(n))
            continue;
        int bytes = (int)t->list[n->name].bytes;
        const char *name = token_text(t, n->name);
        text hidden = {0}, after = {0};
        text_print(&hidden, "ASSAY_NAME(%d, %.*s)", line, bytes, name);
        edits_replace(d, n->name, text_take(&hidden));
        text_print(&after, "; %s(%d, %.*s);", n->has_value ? "ASSAY_BIND_ARRAY" : "ASSAY_BIND",
                   line, bytes, name);
        if (k + 1 < s->count)
            text_print(&after, " %s ", strncmp(type, "thread ", 7) == 0 ? type + 7 : type);
        edits_replace(d, n->end, text_take(&after));
    }
    free(type);
}

/* Is the statement inside, and has no other rewriting marked its names and ends? */
static bool is_untouched(const edits *d, const statement *s, at close) {
    for (size_t k = 0; k < s->count; k++)
        if (s->names[k].end >= close || d->edit[s->names[k].end] || d->edit[s->names[k].name])
            return false;
    return !d->edit[s->type.begin] || s->count == 1;
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
        if (read_statement(t, i + 1, &s) && is_untouched(d, &s, close))
            mark_statement(d, &s);
    }
}

/* `return;` of a kernel notes where it left: a later barrier may wait for this thread. */
static void mark_returns(edits *d, const kernel *k) {
    const tokens *t = &d->unit->tokens;
    for (at i = k->where.body; i < k->where.end; i++)
        if (token_is(t, i, "return") && token_is(t, i + 1, ";") && !d->edit[i])
            d->edit[i] = "return ASSAY_LEAVE";
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
    for (size_t i = 0; i < d->unit->kernel_count; i++)
        mark_returns(d, &d->unit->kernels[i]);
}
