/* value: sizes of types, from their names, and integer values of constant expressions: buffer
 * indices, thread limits, gates.
 *
 * It knows numbers, operators, enumerators, constants of the file, template arguments and function
 * constants that are given. Of anything else it reports that the value is unknown, and the caller
 * decides whether that matters. The sizes of other types (structs, template parameters) only the
 * compiler knows. */
#include "internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Types --------------------------------------------------------------------------------------- */

/* Of all scalars with that many bytes. "unsigned" and the like may be followed by another word. */
static const struct {
    uint32_t bytes;
    const char *names;
} scalars[] = {
    {1, "bool char uchar int8_t uint8_t"},
    {2, "short ushort int16_t uint16_t half bfloat"},
    {4, "int uint int32_t uint32_t float atomic_int atomic_uint atomic_bool atomic_float unsigned"},
    {8, "long ulong int64_t uint64_t size_t ptrdiff_t atomic_ulong uintptr_t intptr_t"},
};

static uint32_t scalar_size(const char *name, size_t bytes) {
    bool is_unsigned = bytes > 9 && strncmp(name, "unsigned ", 9) == 0;
    if (bytes == 11 && memcmp(name, "signed char", 11) == 0)
        return 1;
    if (is_unsigned && !word_is_one_of(name + 9, bytes - 9, "int char short long"))
        return 0;
    name += is_unsigned ? 9 : 0;
    bytes -= is_unsigned ? 9 : 0;
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars && bytes > 0; i++)
        if (word_is_one_of(name, bytes, scalars[i].names))
            return scalars[i].bytes;
    return 0;
}

/* "float4" is float and 4, "packed_half3" half and 3, "half2x4" half, 2 and 4. */
static uint32_t vector_size(const char *type, bool packed, uint32_t *alignment) {
    size_t stem = strcspn(type, "0123456789");
    const char *p = type + stem;
    uint32_t element = scalar_size(type, stem);
    if (!element || *p < '2' || *p > '4')
        return 0;
    uint32_t columns = 1, rows = (uint32_t)(*p - '0');
    if (p[1] == 'x' && p[2] >= '2' && p[2] <= '4' && !p[3]) {
        columns = rows;
        rows = (uint32_t)(p[2] - '0');
    } else if (p[1]) {
        return 0;
    }
    uint32_t column = element * (rows == 3 && !packed ? 4 : rows);
    *alignment = packed ? element : column;
    return columns * column;
}

uint32_t type_size(const char *type, uint32_t *alignment) {
    type += strncmp(type, "metal::", 7) == 0 ? 7 : 0;
    *alignment = scalar_size(type, strlen(type));
    if (*alignment)
        return *alignment;
    bool packed = strncmp(type, "packed_", 7) == 0;
    return vector_size(packed ? type + 7 : type, packed, alignment);
}

void type_get_pointee(const char *type, char *out, size_t size) {
    size_t n = strcspn(type, " ");
    while (type[n] && word_is_one_of(type, n, "const volatile restrict")) {
        type += n + 1;
        n = strcspn(type, " ");
    }
    n = strcspn(type, "*&[(");
    while (n > 0 && type[n - 1] == ' ')
        n--;
    if (n > 6 && strncmp(type + n - 6, " const", 6) == 0)
        n -= 6;
    /* A pointer to pointers, or to arrays: not a type whose size follows from its name. */
    const char *mark = strpbrk(type, "*&[(");
    bool once = mark && (*mark == '*' || *mark == '&') && !strpbrk(mark + 1, "*&[(");
    snprintf(out, size, "%.*s", once ? (int)n : 0, type);
}

uint32_t type_count_dimensions(const char *type) {
    size_t n = strlen(type);
    char last = n > 1 && isdigit((unsigned char)type[n - 1]) ? type[n - 1] : '1';
    return last == '2' ? 2 : last == '3' ? 3 : 1;
}

/* Function constants -------------------------------------------------------------------------- */

static const char qualifiers[] = "constant static const constexpr inline extern device";

/* The type before the first name of a declaration. */
static range find_type(const tokens *t, const decl *d) {
    attribute first = attribute_start(d->begin);
    range type = {d->begin, d->begin};
    if (!attribute_next(t, d->head_end, &first) || first.begin == d->begin)
        return type;
    type.end = first.begin - 1;
    while (type.begin < type.end && token_is_one_of(t, type.begin, qualifiers))
        type.begin++;
    while (type.begin < type.end && token_is_one_of(t, type.end - 1, qualifiers))
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
                       TOKEN_PLACE(t, a->begin));
    range type = find_type(t, d);
    function_constant *c = ARRAY_ADD(u->constants, u->constant_count, u->constant_room);
    *c = (function_constant){.attribute = a->begin, .where = {begin, end}};
    c->constant.index = (int)index;
    c->constant.line = t->list[name].line;
    tokens_spell(t, name, name + 1, c->constant.name, sizeof c->constant.name);
    tokens_spell(t, type.begin, type.end, c->constant.type, sizeof c->constant.type);
    return true;
}

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

static bool read_constants(msl_unit *u, const decl *d, err *e) {
    const tokens *t = &u->tokens;
    for (at begin = d->begin, end; begin < d->head_end; begin = end + 1) {
        end = tokens_end_item(t, begin, d->head_end);
        attribute a = attribute_start(begin);
        bool is_one = false;
        while (!is_one && attribute_next(t, end, &a))
            is_one = token_is(t, a.name, "function_constant");
        if (is_one && !read_constant(u, &a, d, begin, end, e))
            return false;
    }
    return true;
}

bool constant_read_all(msl_unit *u, err *e) {
    const tokens *t = &u->tokens;
    for (size_t i = 0; i < t->decl_count; i++)
        if (t->decls[i].kind == DECL_OTHER && !read_constants(u, &t->decls[i], e))
            return false;
    for (at i = 0; u->constant_count && i + 2 < t->count; i++)
        if (token_is(t, i, "is_function_constant_defined") && token_is(t, i + 1, "(")) {
            const function_constant *c = constant_find(u, t->list[i + 1].pair - 1);
            if (c)
                u->constants[c - u->constants].optional = true;
        }
    return true;
}

/* Names --------------------------------------------------------------------------------------- */

enum { DEEPEST = 48 };

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
    *value = *p == 't';
    if (strcmp(p, "true") == 0 || strcmp(p, "false") == 0)
        return true;
    if (!parse_number(p, strlen(p), value))
        return false;
    if (negative)
        *value = (int64_t)(0 - (uint64_t)*value);
    return true;
}

typedef struct {
    scope *s;
    const char *name;
    bool found, ok;
    int64_t value;
} lookup;

static void search_enum(lookup *l, at open) {
    const tokens *t = &l->s->unit->tokens;
    at close = t->list[open].pair, base = NOT_FOUND;
    int64_t offset = 0;
    for (at i = open + 1, end; i < close && !l->found; i = end + 1, offset++) {
        end = tokens_end_item(t, i, close);
        at equals = attribute_skip(t, i + 1);
        if (token_is(t, equals, "=") && equals < end) {
            base = equals + 1;
            offset = 0;
        }
        if (!token_is(t, i, l->name))
            continue;
        int64_t from = 0;
        l->found = true;
        l->ok = base == NOT_FOUND ||
                constant_evaluate(l->s, base, tokens_end_item(t, base, close), &from);
        l->value = from + offset;
    }
}

/* A declaration at namespace scope: does it give the name a value? */
static void search_declaration(lookup *l, const decl *d) {
    const tokens *t = &l->s->unit->tokens;
    if (token_is(t, d->begin, "enum") || token_is(t, d->begin + 1, "enum")) {
        at open = d->begin;
        while (open < d->end && !token_is(t, open, "{"))
            open++;
        if (open < d->end)
            search_enum(l, open);
    } else if (token_is(t, d->head_end, "=") && token_is(t, d->name, l->name) && d->end > 0) {
        l->found = true;
        at end = tokens_end_item(t, d->head_end + 1, d->end - 1);
        l->ok = constant_evaluate(l->s, d->head_end + 1, end, &l->value);
    }
}

bool constant_evaluate_name(scope *s, const char *name, int64_t *value) {
    const tokens *t = &s->unit->tokens;
    *value = *name == 't';
    if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0)
        return true;
    for (size_t i = 0; i < s->argument_count; i++)
        if (token_is(t, s->arguments[i].name, name)) {
            range v = s->arguments[i].value;
            return constant_evaluate(s, v.begin, v.end, value);
        }
    for (size_t i = 0; i < s->unit->constant_count; i++) {
        const function_constant *c = &s->unit->constants[i];
        if (strcmp(c->constant.name, name) != 0)
            continue;
        const msl_constant_text *given = constant_get_text(c, s->given, s->given_count);
        if (!given)
            s->missing = c;
        return given && evaluate_text(given->text, value);
    }
    lookup l = {.s = s, .name = name};
    for (size_t i = 0; i < t->decl_count && !l.found; i++)
        if (t->decls[i].kind == DECL_OTHER)
            search_declaration(&l, &t->decls[i]);
    *value = l.value;
    return l.found && l.ok;
}

/* Expressions --------------------------------------------------------------------------------- */

typedef struct {
    scope *s;
    const tokens *t;
    at i, end;
} cursor;

/* `is_function_constant_defined(name)`, `sizeof(type)`. */
static bool evaluate_call(cursor *c, int64_t *value) {
    const at call = c->i, close = c->t->list[call + 1].pair;
    c->i = close + 1;
    if (token_is(c->t, call, "sizeof")) {
        char type[96];
        uint32_t alignment;
        tokens_spell(c->t, call + 2, close, type, sizeof type);
        *value = type_size(type, &alignment);
        return *value != 0;
    }
    const function_constant *k = constant_find(c->s->unit, close - 1);
    *value = k && constant_get_text(k, c->s->given, c->s->given_count);
    return k != NULL;
}

static bool read_unary(cursor *c, int64_t *value) {
    const tokens *t = c->t;
    const at i = c->i++;
    if (i >= c->end)
        return false;
    if (token_is_one_of(t, i, "- + ! ~")) {
        char mark = *token_text(t, i);
        bool ok = ++c->s->depth < DEEPEST && read_unary(c, value);
        c->s->depth--;
        *value = mark == '-'   ? (int64_t)(0 - (uint64_t)*value)
                 : mark == '!' ? !*value
                 : mark == '~' ? ~*value
                               : *value;
        return ok;
    }
    if (token_is(t, i, "(")) {
        c->i = t->list[i].pair + 1;
        return constant_evaluate(c->s, i + 1, t->list[i].pair, value);
    }
    if (t->list[i].kind == TOKEN_NUMBER)
        return parse_number(token_text(t, i), t->list[i].bytes, value);
    if (t->list[i].kind != TOKEN_WORD)
        return false;
    c->i = i;
    if (token_is(t, i + 1, "(") && token_is_one_of(t, i, "is_function_constant_defined sizeof"))
        return evaluate_call(c, value);
    while (token_is(t, c->i + 1, "::"))
        c->i += 2;
    if (token_is_one_of(t, c->i + 1, "( <") || c->i >= c->end || !token_is_word(t, c->i))
        return false;
    char *name = token_copy(t, c->i++);
    bool ok = constant_evaluate_name(c->s, name, value);
    free(name);
    return ok;
}

/* Of two operands, by how strongly they bind. */
static const char *const operators[] = {"||",    "&&",        "|",     "^",   "&",
                                        "== !=", "< > <= >=", "<< >>", "+ -", "* / %"};
enum { LEVELS = sizeof operators / sizeof *operators };

static bool apply(const char *mark, int64_t a, int64_t b, int64_t *value) {
    const uint64_t x = (uint64_t)a, y = (uint64_t)b;
    const char c = *mark;
    const bool is_double = mark[1] == c, is_equal = mark[1] == '=';
    const bool is_shift = is_double && (c == '<' || c == '>'), divides = c == '/' || c == '%';
    if ((is_shift && y > 62) || (divides && (b == 0 || (a == INT64_MIN && b == -1))))
        return false;
    *value = c == '+'               ? (int64_t)(x + y)
             : c == '-'             ? (int64_t)(x - y)
             : c == '*'             ? (int64_t)(x * y)
             : c == '/'             ? a / b
             : c == '%'             ? a % b
             : c == '^'             ? (int64_t)(x ^ y)
             : c == '|'             ? (is_double ? a || b : (int64_t)(x | y))
             : c == '&'             ? (is_double ? a && b : (int64_t)(x & y))
             : c == '=' || c == '!' ? (a == b) == (c == '=')
             : is_shift             ? (int64_t)(c == '<' ? x << y : x >> y)
             : c == '<'             ? (is_equal ? a <= b : a < b)
                                    : (is_equal ? a >= b : a > b);
    return true;
}

static bool read_binary(cursor *c, int least, int64_t *value) {
    if (!read_unary(c, value))
        return false;
    while (c->i < c->end) {
        int level = 0;
        while (level < LEVELS && !token_is_one_of(c->t, c->i, operators[level]))
            level++;
        if (level == LEVELS || level < least)
            return true;
        const char *mark = token_text(c->t, c->i++);
        int64_t right;
        if (!read_binary(c, level + 1, &right) || !apply(mark, *value, right, value))
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
    bool ok = read_binary(&c, 0, value);
    if (ok && c.i < end && token_is(c.t, c.i, "?")) {
        at colon = tokens_find(c.t, c.i + 1, end, ":");
        ok = colon < end && (*value ? constant_evaluate(s, c.i + 1, colon, value)
                                    : constant_evaluate(s, colon + 1, end, value));
    } else {
        ok = ok && c.i == end;
    }
    s->depth--;
    return ok;
}
