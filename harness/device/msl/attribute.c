/* attribute: reads [[a, b(c)]]. Two '[' in a row are always an attribute in C++, so a[b[i]] and
 * lambdas cannot be mistaken for one. */
#include "internal.h"

bool attribute_begins(const tokens *t, at i) {
    return token_is(t, i, "[") && token_is(t, i + 1, "[") &&
           t->list[i].pair == t->list[i + 1].pair + 1;
}

at attribute_skip(const tokens *t, at i) {
    return attribute_begins(t, i) ? t->list[i].pair + 1 : i;
}

attribute attribute_start(at begin) {
    return (attribute){NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND, begin};
}

/* Moves a->next into the next [[ ]]; false when there is none. */
static bool enter(const tokens *t, at end, attribute *a) {
    for (at i = a->next; i < end; i++) {
        if (attribute_begins(t, i)) {
            a->begin = i;
            a->close = t->list[i].pair;
            a->next = i + 2;
            return true;
        }
        if (t->list[i].pair != NOT_FOUND && t->list[i].pair > i)
            i = t->list[i].pair;
    }
    return false;
}

bool attribute_next(const tokens *t, at end, attribute *a) {
    for (;;) {
        if (a->close == NOT_FOUND && !enter(t, end, a))
            return false;
        at stop = a->close - 1;
        if (a->next >= stop) {
            a->next = a->close + 1;
            a->close = NOT_FOUND;
            continue;
        }
        at item_end = tokens_end_item(t, a->next, stop);
        a->name = a->open = NOT_FOUND;
        for (at i = a->next; i < item_end && a->open == NOT_FOUND; i++) {
            if (t->list[i].kind == TOKEN_WORD)
                a->name = i;
            else if (token_is(t, i, "("))
                a->open = i;
        }
        a->next = item_end + 1;
        if (a->name != NOT_FOUND)
            return true;
    }
}

char *attribute_string(const tokens *t, const attribute *a) {
    if (a->open == NOT_FOUND)
        return text_copy("", 0);
    return tokens_unquote(t, a->open + 1, t->list[a->open].pair);
}
