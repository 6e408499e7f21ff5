/* decl: where the declarations of a file, namespace or class begin and end, and what they are.
 *
 * It looks at brackets and a few words only. A '{' may begin a body, the value of a variable, or
 * one of a constructor's member initialisers; only the tokens before it tell which. */
#include "internal.h"

#include <stdlib.h>

typedef struct {
    const tokens *t;
    decl *d;
    bool enumeration, initialisers;
} reader;

/* Words in front of a '(' that is not a list of parameters. */
static bool takes_argument(const tokens *t, at i) {
    return token_is_one_of(t, i,
                           "decltype alignas __attribute__ noexcept static_assert explicit "
                           "_Pragma sizeof coherent");
}

/* After `operator`: past its symbol or type, at the '(' of its parameters. */
static at skip_operator(const tokens *t, at i, at end) {
    i++;
    if (token_is(t, i, "(") && token_is(t, i + 1, ")"))
        return i + 2;
    if (token_is(t, i, "["))
        return t->list[i].pair + 1;
    while (i < end && !token_is_one_of(t, i, "( ;"))
        i++;
    return i;
}

static at skip_to_semicolon(const tokens *t, at i, at end) {
    i = tokens_find(t, i, end, ";");
    return i < end ? i + 1 : end;
}

static void end_head(decl *d, at i) {
    d->head_end = d->head_end == NOT_FOUND ? i : d->head_end;
}

static at end_body(reader *r, at i, at end) {
    decl *d = r->d;
    at close = r->t->list[i].pair;
    end_head(d, i);
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
             token_is_one_of(t, i, "struct class union"))
        d->kind = DECL_CLASS;
}

/* '(' of the head: parameters, or something else's argument. */
static at pass_parentheses(reader *r, at i) {
    const tokens *t = r->t;
    decl *d = r->d;
    at close = t->list[i].pair;
    at before = token_before(i);
    if (d->kind != DECL_FUNCTION && !r->initialisers && !takes_argument(t, before)) {
        if (!token_is_one_of(t, i + 1, "* &") || !token_is(t, close + 1, "[")) {
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
        } else if (token_is_one_of(t, i, "; =")) {
            end_head(d, i);
            return skip_to_semicolon(t, i, end);
        } else if (token_is(t, i, "{")) {
            bool member = r->initialisers && (token_is_word(t, i - 1) || token_is(t, i - 1, ">"));
            if (!member)
                return end_body(r, i, end);
            next = t->list[i].pair + 1;
        } else if (token_is(t, i, ":") && (d->kind == DECL_FUNCTION || d->kind == DECL_CLASS)) {
            r->initialisers = r->initialisers || d->kind == DECL_FUNCTION;
            end_head(d, i);
        } else if (token_is_word(t, i)) {
            note_word(r, i);
            if (d->open == NOT_FOUND && d->head_end == NOT_FOUND && !takes_argument(t, i))
                d->name = i;
        }
        i = next;
    }
    return end;
}

bool decl_next(const tokens *t, at *i, at end, decl *out) {
    for (;; (*i)++) {
        if (token_is_one_of(t, *i, "public private protected") && token_is(t, *i + 1, ":"))
            (*i)++;
        else if (!token_is(t, *i, ";"))
            break;
    }
    if (*i >= end)
        return false;
    *out = (decl){DECL_OTHER, *i, end, NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND, ""};
    reader r = {t, out, false, false};
    *i = out->end = read_head(&r, *i, end);
    end_head(out, out->end);
    /* `struct tag name;` and `struct tag f()` declare no class here. */
    if ((out->kind == DECL_CLASS || out->kind == DECL_NAMESPACE) && out->body == NOT_FOUND)
        out->kind = DECL_OTHER;
    return true;
}

static void read_scope(tokens *t, at i, at end, const char *prefix) {
    decl d;
    while (decl_next(t, &i, end, &d)) {
        if (d.kind != DECL_NAMESPACE) {
            d.prefix = prefix;
            *ARRAY_ADD(t->decls, t->decl_count, t->decl_room) = d;
            continue;
        }
        bool has_name = d.name != NOT_FOUND && !token_is_one_of(t, d.name, "namespace extern");
        at first = has_name ? d.name : 0, last = has_name ? d.name + 1 : 0;
        while (has_name && token_is(t, first - 1, "::"))
            first -= 2;
        char *name = tokens_join(t, first, last);
        char *path = text_format("%s%s%s", prefix, name, has_name ? "::" : "");
        *ARRAY_ADD(t->prefixes, t->prefix_count, t->prefix_room) = path;
        read_scope(t, d.body + 1, t->list[d.body].pair, path);
        free(name);
    }
}

void decl_read_all(tokens *t) {
    read_scope(t, 0, t->count, "");
}

at decl_find_param_name(const tokens *t, at begin, at end) {
    static const char qualifiers[] = "const volatile restrict device thread constant threadgroup";
    static const char types[] = "struct unsigned signed bool char short int long float half uint "
                                "ushort uchar ulong void typename auto";
    at name = NOT_FOUND;
    uint32_t words = 0; /* that can be a type's name or the parameter's */
    bool typed = false;
    for (at i = begin; i < end && !token_is(t, i, "="); i++) {
        if (token_is(t, i, "(") && token_is_one_of(t, i + 1, "* &")) {
            at inside = t->list[i].pair - 1;
            return t->list[inside].kind == TOKEN_WORD ? inside : NOT_FOUND;
        } else if (token_is_one_of(t, i, "( [")) {
            i = t->list[i].pair;
        } else if (token_is(t, i, "<")) {
            at close = tokens_close_angle(t, i);
            i = close < end ? close : i;
            name = NOT_FOUND;
        } else if (t->list[i].kind != TOKEN_WORD) {
            name = NOT_FOUND;
        } else if (token_is_one_of(t, i, types) || token_is_one_of(t, i, qualifiers)) {
            typed = typed || !token_is_one_of(t, i, qualifiers);
            name = NOT_FOUND;
        } else {
            words += !token_is(t, i - 1, "::");
            name = token_is(t, i - 1, "::") && i > begin ? NOT_FOUND : i;
        }
    }
    return words + typed > 1 ? name : NOT_FOUND;
}
