/* constant: finds function constants, and which of them a kernel needs.
 *
 * A function constant that is used and not given has an undefined value on a GPU, which is hard to
 * debug, so it is an error here. "Used" means: reached by the kernel (reach.c). */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_qualifier(const tokens *t, at i) {
    static const char *const words[] = {"constant", "static", "const",  "constexpr",
                                        "inline",   "extern", "device", NULL};
    return token_is_one_of(t, i, words);
}

/* The type before the first name of a declaration. */
static range find_type(const tokens *t, const decl *d) {
    attribute first = attribute_start(d->begin);
    range type = {d->begin, d->begin};
    if (!attribute_next(t, d->head_end, &first) || first.begin == d->begin)
        return type;
    type.end = first.begin - 1;
    while (type.begin < type.end && is_qualifier(t, type.begin))
        type.begin++;
    while (type.begin < type.end && is_qualifier(t, type.end - 1))
        type.end--;
    return type;
}

static bool read_constant(msl_unit *u, const attribute *a, const decl *d, at begin, at end,
                          err *e) {
    const tokens *t = &u->tokens;
    at name = token_before(a->begin);
    scope s = {.unit = u};
    int64_t index = -1;
    if (a->open == NOT_FOUND || name == NOT_FOUND || name < begin ||
        !constant_evaluate(&s, a->open + 1, t->list[a->open].pair, &index) || index < 0 ||
        index > 65535)
        return err_set(e, EXIT_USAGE,
                       "%.120s:%d: the index of this function constant is not a number from 0 to "
                       "65535 that is known here",
                       token_file(t, a->begin), t->list[a->begin].line);
    range type = find_type(t, d);
    function_constant *c = ARRAY_ADD(u->constants, u->constant_count, u->constant_room);
    *c = (function_constant){.attribute = a->begin, .where = {begin, end}};
    c->constant.index = (int)index;
    c->constant.line = t->list[name].line;
    char *words = token_copy(t, name);
    snprintf(c->constant.name, sizeof c->constant.name, "%s", words);
    free(words);
    words = tokens_join(t, type.begin, type.end);
    snprintf(c->constant.type, sizeof c->constant.type, "%s", words);
    free(words);
    return true;
}

typedef struct {
    msl_unit *unit;
    err *e;
} reader;

static bool visit_constant(void *context, const decl *d, const char *prefix) {
    (void)prefix;
    reader *r = context;
    const tokens *t = &r->unit->tokens;
    if (d->kind != DECL_OTHER)
        return true;
    for (at begin = d->begin; begin < d->head_end;) {
        at end = tokens_end_item(t, begin, d->head_end);
        attribute a = attribute_start(begin);
        while (attribute_next(t, end, &a))
            if (token_is(t, a.name, "function_constant")) {
                if (!read_constant(r->unit, &a, d, begin, end, r->e))
                    return false;
                break;
            }
        begin = end + 1;
    }
    return true;
}

bool constant_read_all(msl_unit *u, err *e) {
    reader r = {u, e};
    const tokens *t = &u->tokens;
    if (!decl_visit(t, visit_constant, &r))
        return false;
    for (at i = 0; u->constant_count && i + 2 < t->count; i++)
        if (token_is(t, i, "is_function_constant_defined") && token_is(t, i + 1, "("))
            for (size_t k = 0; k < u->constant_count; k++)
                if (constant_find(u, t->list[i + 1].pair - 1) == &u->constants[k])
                    u->constants[k].optional = true;
    return true;
}

typedef struct {
    const msl_unit *unit;
    const msl_constant_text *given;
    size_t count;
    const function_constant *unset;
} search;

static bool visit_word(void *context, at word) {
    search *s = context;
    const function_constant *c = constant_find(s->unit, word);
    if (c && !c->optional && word + 1 != c->attribute && !constant_get_text(c, s->given, s->count))
        s->unset = c;
    return s->unset == NULL;
}

const function_constant *constant_find_unset(const msl_unit *u, const entry *which,
                                             const msl_constant_text *given, size_t count) {
    search s = {.unit = u, .given = given, .count = count};
    size_t unset = 0;
    for (size_t i = 0; i < u->constant_count; i++)
        unset += !u->constants[i].optional && !constant_get_text(&u->constants[i], given, count);
    if (unset)
        reach_visit(u, which, visit_word, &s);
    return s.unset;
}
