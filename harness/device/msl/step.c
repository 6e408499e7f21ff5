/* step: marks the end of each statement, so that a trace can tell in which one something happened:
 * `sum += a / b;` becomes `sum += a / b, ASSAY_STEP;`, `float c = a / b;` is followed by a statement,
 * and `return a / b;` gets a variable whose life ends after the value is there.
 *
 * Only statements of function bodies that begin with `return` or an ordinary word are marked; any other
 * counts as part of the next one that is, as does all of a constexpr function, which the compiler may
 * have to evaluate. */
#include "internal.h"

#include <string.h>

static bool begins_other(const tokens *t, at i) {
    static const char *const words[] = {
        "return",      "goto",     "break",         "continue", "else",
        "case",        "default",  "using",         "typedef",  "do",
        "struct",      "class",    "union",         "enum",     "if",
        "for",         "while",    "switch",        "static",   "constexpr",
        "template",    "throw",    "namespace",     "extern",   "static_assert",
        "alignas",     "asm",      "__asm__",       "kernel",   "public",
        "threadgroup", "constant", "__attribute__", NULL};
    return t->list[i].kind != TOKEN_WORD || token_is_one_of(t, i, words);
}

/* Tokens that a statement may follow; a ')' only if it closes an if, for or while. */
static bool can_begin_after(const tokens *t, at i) {
    static const char *const marks[] = {"{", "}", ";", "else", "do", NULL};
    if (token_is_one_of(t, i, marks))
        return true;
    if (!token_is(t, i, ")"))
        return false;
    at open = t->list[i].pair;
    static const char *const heads[] = {"if", "for", "while", "constexpr", NULL};
    return open != NOT_FOUND && open > 0 && token_is_one_of(t, open - 1, heads);
}

/* The ';' of the statement at i, or NOT_FOUND if a block comes first. */
static at find_end(const tokens *t, at i, at close) {
    for (; i < close; i++) {
        if (token_is(t, i, ";"))
            return i;
        if (token_is(t, i, "}"))
            return NOT_FOUND;
        if (t->list[i].pair != NOT_FOUND && t->list[i].pair > i)
            i = t->list[i].pair; /* also a braced initialiser, and the body of a lambda */
    }
    return NOT_FOUND;
}

/* Two words side by side, or a word and a name after its template arguments or marks: a type and
 * what it declares. An expression has no two words without something between them. */
static bool is_declaration(const tokens *t, at i, at end) {
    at last = i;
    for (at k = i + 1; k < end; k++) {
        if (token_is(t, k, "<")) {
            at angle = tokens_close_angle(t, k);
            if (angle == NOT_FOUND || angle >= end)
                return false;
            k = last = angle;
            continue;
        }
        if (token_is(t, k, "*") || token_is(t, k, "&")) {
            /* `T *p = x` against `a * b`: a product whose value is unused is unlikely. */
            return t->list[k + 1].kind == TOKEN_WORD;
        }
        if (t->list[k].kind == TOKEN_WORD && k == last + 1)
            return true;
        if (!token_is(t, k, "::"))
            return false;
        last = k;
    }
    return false;
}

static void mark_return(edits *d, at i, at close) {
    const at end = find_end(&d->unit->tokens, i, close);
    if (end == NOT_FOUND || end == i + 1 || d->edit[i] || d->edit[end])
        return;
    d->edit[i] = "{ ASSAY_LAST_STEP; return";
    d->edit[end] = "; }";
}

static void rewrite_body(edits *d, at open) {
    const tokens *t = &d->unit->tokens;
    at close = t->list[open].pair;
    for (at i = open; i < close; i++) {
        if (token_is(t, i, "(") && t->list[i].pair < close)
            i = t->list[i].pair; /* the ';' of a for are not ends of statements */
        if (token_is(t, i + 1, "return"))
            mark_return(d, i + 1, close);
        if (!can_begin_after(t, i) || begins_other(t, i + 1))
            continue;
        at end = find_end(t, i + 1, close);
        if (end == NOT_FOUND || d->edit[end] || (d->edit[i + 1] && !*d->edit[i + 1]))
            continue;
        bool declares = is_declaration(t, i + 1, end);
        const char *mark = declares ? "; ASSAY_STEP;" : ", ASSAY_STEP;";
        edits_replace(d, end, text_copy(mark, strlen(mark)));
    }
}

static bool is_constexpr(const tokens *t, const decl *found) {
    at i = found->begin;
    while (i < found->open && !token_is(t, i, "constexpr"))
        i++;
    return i < found->open;
}

static bool visit(void *context, const decl *found, const char *prefix) {
    (void)prefix;
    const edits *d = context;
    if (found->kind == DECL_FUNCTION && found->body != NOT_FOUND &&
        !is_constexpr(&d->unit->tokens, found))
        rewrite_body(context, found->body);
    return true;
}

void step_rewrite(edits *d) {
    decl_visit(&d->unit->tokens, visit, d);
}
