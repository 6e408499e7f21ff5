/* evaluate: integer values of constant expressions: buffer indices, thread limits, gates.
 *
 * It knows numbers, operators, enumerators, constants of the file, template arguments and function
 * constants that are given. For anything else it reports that the value is unknown, and the caller
 * decides whether that matters. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 48 };

typedef struct {
    scope *s;
    const tokens *t;
    at i, end;
} cursor;

static bool read_binary(cursor *c, int strength, int64_t *value);

const function_constant *constant_find(const msl_unit *u, at name) {
    for (size_t i = 0; i < u->constant_count; i++)
        if (token_is(&u->tokens, name, u->constants[i].constant.name))
            return &u->constants[i];
    return NULL;
}

const msl_constant_text *constant_get_text(const function_constant *c,
                                           const msl_constant_text *given, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (given[i].index == c->constant.index)
            return &given[i];
    return NULL;
}

static bool parse_number(const char *p, size_t bytes, int64_t *value) {
    char digits[64];
    size_t n = 0;
    for (size_t i = 0; i < bytes && n + 1 < sizeof digits; i++)
        if (p[i] != '\'')
            digits[n++] = p[i];
    digits[n] = 0;
    char *after;
    bool binary = digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B');
    *value = (int64_t)strtoull(binary ? digits + 2 : digits, &after, binary ? 2 : 0);
    return after != digits && after[strspn(after, "uUlLzZ")] == 0;
}

static bool evaluate_text(const char *p, int64_t *value) {
    bool negative = *p == '-';
    p += negative;
    if (strcmp(p, "true") == 0 || strcmp(p, "false") == 0) {
        *value = *p == 't';
        return true;
    }
    if (!parse_number(p, strlen(p), value))
        return false;
    if (negative)
        *value = (int64_t)(0 - (uint64_t)*value);
    return true;
}

typedef struct {
    scope *s;
    const char *name;
    size_t bytes;
    bool found, ok;
    int64_t value;
} lookup;

static bool is_name(const tokens *t, at i, const lookup *l) {
    return i < t->count && t->list[i].kind == TOKEN_WORD && t->list[i].bytes == l->bytes &&
           memcmp(token_text(t, i), l->name, l->bytes) == 0;
}

static void search_enum(lookup *l, at open) {
    const tokens *t = &l->s->unit->tokens;
    at close = t->list[open].pair, base = NOT_FOUND;
    int64_t offset = 0;
    for (at i = open + 1; i < close; offset++) {
        at end = tokens_end_item(t, i, close);
        at equals = attribute_skip(t, i + 1);
        if (token_is(t, equals, "=") && equals < end) {
            base = equals + 1;
            offset = 0;
        }
        if (is_name(t, i, l)) {
            int64_t from = 0;
            l->found = true;
            l->ok = base == NOT_FOUND ||
                    constant_evaluate(l->s, base, tokens_end_item(t, base, close), &from);
            l->value = from + offset;
            return;
        }
        i = end + 1;
    }
}

/* A declaration at namespace scope: does it give the name a value? */
static bool search_declaration(void *context, const decl *d, const char *prefix) {
    (void)prefix;
    lookup *l = context;
    const tokens *t = &l->s->unit->tokens;
    if (d->kind != DECL_OTHER)
        return true;
    if (token_is(t, d->begin, "enum") || token_is(t, d->begin + 1, "enum")) {
        for (at i = d->begin; i < d->end && !l->found; i++)
            if (token_is(t, i, "{")) {
                search_enum(l, i);
                break;
            }
        return !l->found;
    }
    if (!token_is(t, d->head_end, "=") || !is_name(t, d->name, l) || d->end == 0)
        return true;
    l->found = true;
    at end = tokens_end_item(t, d->head_end + 1, d->end - 1);
    l->ok = constant_evaluate(l->s, d->head_end + 1, end, &l->value);
    return false;
}

static bool search_file(scope *s, const char *name, size_t bytes, int64_t *value) {
    lookup l = {.s = s, .name = name, .bytes = bytes};
    decl_visit(&s->unit->tokens, search_declaration, &l);
    *value = l.value;
    return l.found && l.ok;
}

static bool evaluate_word(scope *s, const char *name, size_t bytes, int64_t *value) {
    const tokens *t = &s->unit->tokens;
    if (bytes == 4 && memcmp(name, "true", 4) == 0)
        return *value = 1, true;
    if (bytes == 5 && memcmp(name, "false", 5) == 0)
        return *value = 0, true;
    lookup l = {.s = s, .name = name, .bytes = bytes};
    for (size_t i = 0; i < s->argument_count; i++)
        if (is_name(t, s->arguments[i].name, &l)) {
            range v = s->arguments[i].value;
            return constant_evaluate(s, v.begin, v.end, value);
        }
    for (size_t i = 0; i < s->unit->constant_count; i++) {
        const function_constant *c = &s->unit->constants[i];
        if (strlen(c->constant.name) != bytes || memcmp(c->constant.name, name, bytes) != 0)
            continue;
        const msl_constant_text *given = constant_get_text(c, s->given, s->given_count);
        if (!given)
            s->missing = c;
        return given && evaluate_text(given->text, value);
    }
    return search_file(s, name, bytes, value);
}

static bool evaluate_defined(cursor *c, int64_t *value) {
    at close = c->t->list[c->i + 1].pair;
    const function_constant *k = constant_find(c->s->unit, close - 1);
    c->i = close + 1;
    *value = k && constant_get_text(k, c->s->given, c->s->given_count);
    return k != NULL;
}

static bool evaluate_sizeof(cursor *c, int64_t *value) {
    at close = c->t->list[c->i + 1].pair;
    char *type = tokens_join(c->t, c->i + 2, close);
    uint32_t alignment;
    *value = type_size(type, &alignment);
    free(type);
    c->i = close + 1;
    return *value != 0;
}

static bool read_unary(cursor *c, int64_t *value) {
    const tokens *t = c->t;
    if (c->i >= c->end)
        return false;
    char mark =
        t->list[c->i].kind == TOKEN_MARK && t->list[c->i].bytes == 1 ? *token_text(t, c->i) : 0;
    if (mark && strchr("-+!~", mark)) {
        c->i++;
        c->s->depth++;
        bool ok = c->s->depth < DEEPEST && read_unary(c, value);
        c->s->depth--;
        if (!ok)
            return false;
        *value = mark == '-'   ? (int64_t)(0 - (uint64_t)*value)
                 : mark == '!' ? !*value
                 : mark == '~' ? ~*value
                               : *value;
        return true;
    }
    if (mark == '(') {
        at close = t->list[c->i].pair;
        bool ok = constant_evaluate(c->s, c->i + 1, close, value);
        c->i = close + 1;
        return ok;
    }
    if (t->list[c->i].kind == TOKEN_NUMBER) {
        at i = c->i++;
        return parse_number(token_text(t, i), t->list[i].bytes, value);
    }
    if (t->list[c->i].kind != TOKEN_WORD)
        return false;
    if (token_is(t, c->i + 1, "(") && token_is(t, c->i, "is_function_constant_defined"))
        return evaluate_defined(c, value);
    if (token_is(t, c->i + 1, "(") && token_is(t, c->i, "sizeof"))
        return evaluate_sizeof(c, value);
    while (token_is(t, c->i + 1, "::"))
        c->i += 2;
    if (token_is(t, c->i + 1, "(") || token_is(t, c->i + 1, "<") || c->i >= c->end ||
        t->list[c->i].kind != TOKEN_WORD)
        return false;
    at i = c->i++;
    return evaluate_word(c->s, token_text(t, i), t->list[i].bytes, value);
}

static const struct {
    const char *mark;
    int strength;
} operators[] = {{"||", 1}, {"&&", 2}, {"|", 3}, {"^", 4},  {"&", 5},  {"==", 6},
                 {"!=", 6}, {"<", 7},  {">", 7}, {"<=", 7}, {">=", 7}, {"<<", 8},
                 {">>", 8}, {"+", 9},  {"-", 9}, {"*", 10}, {"/", 10}, {"%", 10}};
enum { OPERATORS = sizeof operators / sizeof *operators };

static bool apply(const char *mark, int64_t a, int64_t b, int64_t *value) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (mark[0]) {
    case '+':
        *value = (int64_t)(x + y);
        return true;
    case '-':
        *value = (int64_t)(x - y);
        return true;
    case '*':
        *value = (int64_t)(x * y);
        return true;
    case '/':
    case '%':
        if (b == 0 || (a == INT64_MIN && b == -1))
            return false;
        *value = mark[0] == '/' ? a / b : a % b;
        return true;
    case '|':
        *value = mark[1] ? a || b : (int64_t)(x | y);
        return true;
    case '&':
        *value = mark[1] ? a && b : (int64_t)(x & y);
        return true;
    case '^':
        *value = (int64_t)(x ^ y);
        return true;
    case '=':
        *value = a == b;
        return true;
    case '!':
        *value = a != b;
        return true;
    }
    if (mark[1] == '<' || mark[1] == '>') {
        if (y > 62)
            return false;
        *value = mark[0] == '<' ? (int64_t)(x << y) : (int64_t)(x >> y);
    } else {
        *value = mark[0] == '<' ? (mark[1] ? a <= b : a < b) : (mark[1] ? a >= b : a > b);
    }
    return true;
}

static bool read_binary(cursor *c, int strength, int64_t *value) {
    if (!read_unary(c, value))
        return false;
    while (c->i < c->end) {
        int k = 0;
        while (k < OPERATORS && !token_is(c->t, c->i, operators[k].mark))
            k++;
        if (k == OPERATORS || operators[k].strength < strength)
            return true;
        int64_t right;
        c->i++;
        if (!read_binary(c, operators[k].strength + 1, &right) ||
            !apply(operators[k].mark, *value, right, value))
            return false;
    }
    return true;
}

bool constant_evaluate(scope *s, at begin, at end, int64_t *value) {
    cursor c = {s, &s->unit->tokens, begin, end};
    *value = 0;
    if (s->depth >= DEEPEST)
        return false;
    s->depth++;
    bool ok = read_binary(&c, 1, value);
    if (ok && c.i < end && token_is(c.t, c.i, "?")) {
        at colon = c.i + 1;
        while (colon < end && !token_is(c.t, colon, ":"))
            colon = c.t->list[colon].pair != NOT_FOUND && c.t->list[colon].pair > colon
                        ? c.t->list[colon].pair + 1
                        : colon + 1;
        ok = colon < end && (*value ? constant_evaluate(s, c.i + 1, colon, value)
                                    : constant_evaluate(s, colon + 1, end, value));
    } else {
        ok = ok && c.i == end;
    }
    s->depth--;
    return ok;
}

bool constant_evaluate_name(scope *s, const char *name, int64_t *value) {
    s->depth = 0;
    return evaluate_word(s, name, strlen(name), value);
}
