/* decl: where the declarations of a file, namespace or class begin and end, and what they are.
 *
 * It looks at brackets and a few words only. A '{' may begin a body, the value of a variable, or
 * one of a constructor's member initialisers; only the tokens before it tell which. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const tokens *t;
    decl *d;
    bool enumeration, initialisers;
} reader;

static bool is_word(const tokens *t, at i) {
    return i < t->count && t->list[i].kind == TOKEN_WORD;
}

/* Words in front of a '(' that is not a list of parameters. */
static bool takes_argument(const tokens *t, at i) {
    static const char *const words[] = {"decltype",      "alignas",  "__attribute__", "noexcept",
                                        "static_assert", "explicit", "_Pragma",       "sizeof",
                                        "coherent",      NULL};
    return token_is_one_of(t, i, words);
}

/* After `operator`: past its symbol or type, at the '(' of its parameters. */
static at skip_operator(const tokens *t, at i, at end) {
    i++;
    if (token_is(t, i, "(") && token_is(t, i + 1, ")"))
        return i + 2;
    if (token_is(t, i, "["))
        return t->list[i].pair + 1;
    while (i < end && !token_is(t, i, "(") && !token_is(t, i, ";"))
        i++;
    return i;
}

static at skip_to_semicolon(const tokens *t, at i, at end) {
    for (; i < end && !token_is(t, i, ";"); i++)
        if (t->list[i].pair != NOT_FOUND && t->list[i].pair > i)
            i = t->list[i].pair;
    return i < end ? i + 1 : end;
}

static at end_body(reader *r, at i, at end) {
    decl *d = r->d;
    at close = r->t->list[i].pair;
    if (d->head_end == NOT_FOUND)
        d->head_end = i;
    if (r->enumeration || (d->kind == DECL_OTHER))
        return skip_to_semicolon(r->t, close + 1, end);
    d->body = i;
    return d->kind == DECL_CLASS ? skip_to_semicolon(r->t, close + 1, end) : close + 1;
}

/* A word of the head: which kind of declaration it makes. */
static void note_word(reader *r, at i) {
    const tokens *t = r->t;
    decl *d = r->d;
    if (d->kind == DECL_FUNCTION || r->initialisers)
        return;
    if (token_is(t, i, "namespace"))
        d->kind = DECL_NAMESPACE;
    else if (token_is(t, i, "extern") && i + 2 < t->count && t->list[i + 1].kind == TOKEN_STRING &&
             token_is(t, i + 2, "{"))
        d->kind = DECL_NAMESPACE;
    else if (token_is(t, i, "enum"))
        r->enumeration = true;
    else if (!r->enumeration && d->kind == DECL_OTHER &&
             (token_is(t, i, "struct") || token_is(t, i, "class") || token_is(t, i, "union")))
        d->kind = DECL_CLASS;
}

/* '(' of the head: parameters, or something else's argument. */
static at pass_parentheses(reader *r, at i) {
    const tokens *t = r->t;
    decl *d = r->d;
    at close = t->list[i].pair;
    at before = token_before(i);
    if (d->kind != DECL_FUNCTION && !r->initialisers && !takes_argument(t, before)) {
        bool pointer = token_is(t, i + 1, "*") || token_is(t, i + 1, "&");
        if (!pointer || !token_is(t, close + 1, "[")) {
            d->kind = DECL_FUNCTION;
            d->open = i;
        }
    }
    return close + 1;
}

/* Reads the head; returns the token after the declaration. */
static at read_head(reader *r, at i, at end) {
    const tokens *t = r->t;
    decl *d = r->d;
    while (i < end) {
        at next = i + 1;
        if (attribute_begins(t, i)) {
            next = attribute_skip(t, i);
        } else if (token_is(t, i, "operator")) {
            d->name = i;
            next = skip_operator(t, i, end);
            if (d->kind == DECL_CLASS)
                d->kind = DECL_OTHER;
        } else if (token_is(t, i, "(")) {
            next = pass_parentheses(r, i);
        } else if (token_is(t, i, "[")) {
            next = t->list[i].pair + 1;
        } else if (token_is(t, i, "<")) {
            at close = tokens_close_angle(t, i);
            next = close < end ? close + 1 : next;
        } else if (token_is(t, i, ";")) {
            if (d->head_end == NOT_FOUND)
                d->head_end = i;
            return i + 1;
        } else if (token_is(t, i, "=")) {
            if (d->head_end == NOT_FOUND)
                d->head_end = i;
            return skip_to_semicolon(t, i, end);
        } else if (token_is(t, i, "{")) {
            bool member = r->initialisers && (is_word(t, i - 1) || token_is(t, i - 1, ">"));
            if (!member)
                return end_body(r, i, end);
            next = t->list[i].pair + 1;
        } else if (token_is(t, i, ":") && d->kind == DECL_FUNCTION) {
            r->initialisers = true;
            d->head_end = d->head_end == NOT_FOUND ? i : d->head_end;
        } else if (token_is(t, i, ":") && d->kind == DECL_CLASS) {
            d->head_end = d->head_end == NOT_FOUND ? i : d->head_end;
        } else if (is_word(t, i)) {
            note_word(r, i);
            if (d->open == NOT_FOUND && d->head_end == NOT_FOUND && !takes_argument(t, i))
                d->name = i;
        }
        i = next;
    }
    return end;
}

bool decl_next(const tokens *t, at *i, at end, decl *out) {
    static const char *const labels[] = {"public", "private", "protected", NULL};
    for (;; (*i)++) {
        if (token_is_one_of(t, *i, labels) && token_is(t, *i + 1, ":"))
            (*i)++;
        else if (!token_is(t, *i, ";"))
            break;
    }
    if (*i >= end)
        return false;
    *out = (decl){DECL_OTHER, *i, end, NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND};
    reader r = {t, out, false, false};
    *i = out->end = read_head(&r, *i, end);
    if (out->head_end == NOT_FOUND)
        out->head_end = out->end;
    /* `struct tag name;` and `struct tag f()` declare no class here. */
    if (out->kind == DECL_CLASS && out->body == NOT_FOUND)
        out->kind = DECL_OTHER;
    if (out->kind == DECL_NAMESPACE && out->body == NOT_FOUND)
        out->kind = DECL_OTHER;
    return true;
}

static bool visit_scope(const tokens *t, at i, at end, const char *prefix, decl_visitor *visit,
                        void *context) {
    decl d;
    bool ok = true;
    while (ok && decl_next(t, &i, end, &d)) {
        if (d.kind != DECL_NAMESPACE) {
            ok = visit(context, &d, prefix);
            continue;
        }
        text inner = {0};
        text_add(&inner, prefix, strlen(prefix));
        if (d.name != NOT_FOUND && !token_is(t, d.name, "namespace") &&
            !token_is(t, d.name, "extern")) {
            at first = d.name;
            while (token_is(t, first - 1, "::"))
                first -= 2;
            char *name = tokens_join(t, first, d.name + 1);
            text_print(&inner, "%s::", name);
            free(name);
        }
        char *path = text_take(&inner);
        ok = visit_scope(t, d.body + 1, t->list[d.body].pair, path, visit, context);
        free(path);
    }
    return ok;
}

bool decl_visit(const tokens *t, decl_visitor *visit, void *context) {
    return visit_scope(t, 0, t->count, "", visit, context);
}
