/* space: takes address spaces and attributes out of the text.
 *
 * On a CPU there is one address space, so `device` and `thread` mean nothing and `constant` means
 * const. `threadgroup` means nothing in front of a pointer and storage in front of a variable
 * (storage.c). */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static bool is_space(const tokens *t, at i) {
    static const char *const words[] = {"device",   "thread",      "constant", "threadgroup",
                                        "ray_data", "object_data", NULL};
    return i < t->count && t->list[i].kind == TOKEN_WORD && token_is_one_of(t, i, words);
}

/* The '(' of a method's parameters if the space word at i qualifies the method: `f() const device`.
 */
static at find_method(const tokens *t, at i) {
    static const char *const after[] = {"{", ":", ";", "->", "noexcept", "=", "const", NULL};
    at before = token_before(i);
    while (token_is(t, before, "const") || token_is(t, before, "volatile") || is_space(t, before))
        before = token_before(before);
    if (!token_is(t, before, ")") || !token_is_one_of(t, i + 1, after))
        return NOT_FOUND;
    return t->list[before].pair;
}

/* Where a template head that ends with the '>' at i begins to be a template; NOT_FOUND if it is the
 * end of a type. */
static bool closes_template_head(const tokens *t, at i) {
    int depth = 0;
    for (at k = i; k != NOT_FOUND && i - k < 256; k = token_before(k)) {
        depth += token_is(t, k, ">") ? 1 : token_is(t, k, ">>") ? 2 : token_is(t, k, "<") ? -1 : 0;
        if (depth == 0)
            return token_is(t, token_before(k), "template");
    }
    return false;
}

/* Constructors have no type in front of their names, and cannot be const. */
static bool is_constructor(const tokens *t, at open) {
    static const char *const starts[] = {";",      "{",          "}", ":", "explicit", "constexpr",
                                         "inline", "METAL_FUNC", "]", "~", NULL};
    at before = token_before(token_before(open));
    if (token_is(t, token_before(open), "operator"))
        return false;
    return before == NOT_FOUND || token_is_one_of(t, before, starts) ||
           (token_is(t, before, ">") && closes_template_head(t, before));
}

/* Is there a const among the specifiers around i? */
static bool has_const_beside(const edits *d, at i) {
    static const char *const specifiers[] = {"static", "constexpr", "inline",   "extern",
                                             "const",  "volatile",  "constant", NULL};
    const tokens *t = &d->unit->tokens;
    for (at k = token_before(i); token_is_one_of(t, k, specifiers); k = token_before(k))
        if (token_is(t, k, "const") || (d->edit[k] && strcmp(d->edit[k], "const") == 0))
            return true;
    for (at k = i + 1; token_is_one_of(t, k, specifiers); k++)
        if (token_is(t, k, "const"))
            return true;
    return false;
}

static void rewrite_constant(edits *d, at i) {
    const tokens *t = &d->unit->tokens;
    at open = find_method(t, i);
    bool drop = open != NOT_FOUND ? token_is(t, i + 1, ":") || is_constructor(t, open) : false;
    d->edit[i] = drop || has_const_beside(d, i) ? "" : "const";
}

static void drop_attributes(edits *d) {
    const tokens *t = &d->unit->tokens;
    for (at i = 0; i < t->count; i++)
        if (attribute_begins(t, i)) {
            at end = attribute_skip(t, i);
            edits_drop(d, i, end);
            i = end - 1;
        }
}

/* Words that take an argument and mean nothing here: coherent(system), _Pragma("unroll"). */
static bool drop_call(edits *d, at i) {
    const tokens *t = &d->unit->tokens;
    bool coherent = token_is(t, i, "coherent");
    if (!coherent && !token_is(t, i, "_Pragma"))
        return false;
    bool call = token_is(t, i + 1, "(");
    if (coherent && !call && !is_space(t, i + 1))
        return false;
    edits_drop(d, i, call ? t->list[i + 1].pair + 1 : i + 1);
    return true;
}

bool space_rewrite(edits *d, err *e) {
    const msl_unit *u = d->unit;
    const tokens *t = &u->tokens;
    size_t next = 0;
    uint32_t slot = 0;
    drop_attributes(d);
    for (at i = 0; i < t->count; i++) {
        if (next < u->kernel_count && i == u->kernels[next].where.body)
            slot = 0;
        if (next < u->kernel_count && i >= u->kernels[next].where.end)
            next++;
        if (d->edit[i] || t->list[i].kind != TOKEN_WORD || drop_call(d, i) || !is_space(t, i))
            continue;
        bool inside = next < u->kernel_count && i > u->kernels[next].where.body;
        bool done = false;
        if (token_is(t, i, "constant")) {
            rewrite_constant(d, i);
        } else if (token_is(t, i, "threadgroup") && find_method(t, i) == NOT_FOUND &&
                   !storage_rewrite(d, i, inside ? &u->kernels[next] : NULL, &slot, &done, e)) {
            return false;
        } else if (!done) {
            d->edit[i] = "";
        }
    }
    return true;
}
