/* refused: C++ that Apple's compiler refuses and clang's does not, told by tokens, in Apple's words:
 * lambdas before MSL 3.2, noexcept, long long, goto, labels, names that the language got later, and pointer
 * and reference types without an address space.
 *
 * A type is told by its name: one of the language, or a class of the file. Template parameters, auto
 * and typedefs may bring a space along, so of them nothing is said. Nor is anything said of words after
 * `#pragma METAL internals : enable`, with which Apple's own headers are compiled. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const msl_unit *unit;
    remark_list *out;
    at *classes; /* their names, each once */
    size_t class_count, class_room;
} refusal;

static int find_column(const tokens *t, at i) {
    uint32_t begin = t->list[i].begin;
    while (begin > 0 && t->source[begin - 1] != '\n')
        begin--;
    return (int)(t->list[i].begin - begin + 1);
}

#define REFUSE(r, i, rule, ...)                                                                    \
    remark_add((r)->out, REMARK_ERROR, token_file(&(r)->unit->tokens, i),                          \
               (r)->unit->tokens.list[i].line, find_column(&(r)->unit->tokens, i), rule,           \
               __VA_ARGS__)

static bool is_word(const tokens *t, at i) {
    return i < t->count && t->list[i].kind == TOKEN_WORD;
}

static bool is_same(const tokens *t, at a, at b) {
    return t->list[a].bytes == t->list[b].bytes &&
           memcmp(token_text(t, a), token_text(t, b), t->list[a].bytes) == 0;
}

/* Words --------------------------------------------------------------------------------------- */

/* `[` that is no index, no array and no attribute, before parameters or a body. */
static bool is_lambda(const tokens *t, at i) {
    static const char *const words[] = {"return", "else", "do", "case", NULL};
    static const char *const values[] = {")", "]", ">", NULL};
    at before = token_before(i);
    if (!token_is(t, i, "[") || attribute_begins(t, i))
        return false;
    bool follows_value = before != NOT_FOUND &&
                         (t->list[before].kind != TOKEN_MARK ? !token_is_one_of(t, before, words)
                                                             : token_is_one_of(t, before, values));
    at after = t->list[i].pair + 1;
    return !follows_value && (token_is(t, after, "(") || token_is(t, after, "{"));
}

/* Does the file define the name itself? */
static bool is_defined(const tokens *t, at name) {
    static const char *const heads[] = {"struct", "class", "using", NULL};
    for (at i = 1; i < t->count; i++)
        if (is_same(t, i, name) && is_word(t, i - 1) &&
            (token_is_one_of(t, i - 1, heads) || token_is(t, i + 1, ";")))
            return true;
    return false;
}

/* Names of the library by the version that brought them. */
static void check_version(const refusal *r, at i) {
    static const struct {
        int since;
        const char *name;
        bool is_type;
    } names[] = {{310, "bfloat", true},
                 {310, "bfloat2", true},
                 {310, "bfloat3", true},
                 {310, "bfloat4", true},
                 {310, "simdgroup_bfloat8x8", true},
                 {320, "atomic_thread_fence", false}};
    const tokens *t = &r->unit->tokens;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if (r->unit->language < names[n].since && token_is(t, i, names[n].name) &&
            !token_is(t, token_before(i), ".") && !token_is(t, token_before(i), "->") &&
            !is_defined(t, i))
            REFUSE(r, i, "version",
                   names[n].is_type ? "unknown type name '%s'"
                                    : "use of undeclared identifier '%s'",
                   names[n].name);
}

static void check_word(const refusal *r, at i) {
    const tokens *t = &r->unit->tokens;
    if (token_is(t, i, "noexcept") || token_is(t, i, "goto"))
        REFUSE(r, i, "language", "'%.*s' is not supported in Metal", (int)t->list[i].bytes,
               token_text(t, i));
    else if (token_is(t, i, "long") && token_is(t, i + 1, "long"))
        REFUSE(r, i, "language", "'long long' is not supported in Metal");
    else
        check_version(r, i);
}

/* Pointers and references --------------------------------------------------------------------- */

static const char *const spaces[] = {
    "device",   "constant",    "thread", "threadgroup", "threadgroup_imageblock",
    "ray_data", "object_data", NULL};
static const char *const qualifiers[] = {"const", "volatile", "restrict", NULL};

/* A name that a variable has too is no type where it stands before an operator. */
static bool is_named(const tokens *t, at name) {
    static const char *const heads[] = {
        "struct",  "class",       "union",    "enum",   "typename",   "template",
        "return",  "const",       "volatile", "static", "inline",     "using",
        "typedef", "constexpr",   "friend",   "device", "thread",     "constant",
        "case",    "threadgroup", "else",     "new",    "METAL_FUNC", NULL};
    for (at i = 1; i < t->count; i++)
        if (is_word(t, i) && is_word(t, i - 1) && is_same(t, i, name) &&
            !token_is_one_of(t, i - 1, heads))
            return true;
    return false;
}

static void find_classes(refusal *r) {
    static const char *const heads[] = {"struct", "class", "union", NULL};
    const tokens *t = &r->unit->tokens;
    for (at i = 0; i + 2 < t->count; i++) {
        if (!token_is_one_of(t, i, heads) || !is_word(t, i + 1) || is_named(t, i + 1))
            continue;
        bool is_parameter = token_is(t, token_before(i), "<") || token_is(t, token_before(i), ",");
        if (!is_parameter) /* template <class T> */
            *ARRAY_ADD(r->classes, r->class_count, r->class_room) = i + 1;
    }
}

static bool is_type(const refusal *r, at i) {
    static const char *const more[] = {"void", "unsigned", "signed", NULL};
    const tokens *t = &r->unit->tokens;
    if (!is_word(t, i))
        return false;
    uint32_t alignment;
    char *name = token_copy(t, i);
    bool is_known = type_size(name, &alignment) > 0 || token_is_one_of(t, i, more);
    free(name);
    for (size_t n = 0; n < r->class_count && !is_known; n++)
        is_known = is_same(t, r->classes[n], i);
    return is_known;
}

/* `name:` where a statement begins, but for those of a switch and of a class; `uint : 3` is a field. */
static void check_label(const refusal *r, at i) {
    static const char *const others[] = {"default", "public", "private", "protected",
                                         "enum",    "struct", "class",   NULL};
    static const char *const ends[] = {";", "{", "}", NULL};
    const tokens *t = &r->unit->tokens;
    if (token_is(t, i + 1, ":") && token_is_one_of(t, token_before(i), ends) &&
        !token_is_one_of(t, i, others) && !is_type(r, i))
        REFUSE(r, i, "language", "labeled statements are not supported in Metal");
}

/* The `<` that the `>` at i closes; i if there is none. */
static at open_angle(const tokens *t, at i) {
    int depth = 0;
    for (at k = i; k != NOT_FOUND && i - k < 64; k = token_before(k)) {
        depth += token_is(t, k, ">") - token_is(t, k, "<");
        if (token_is(t, k, ";") || token_is(t, k, "{") || token_is(t, k, "}"))
            break;
        if (depth == 0)
            return k;
    }
    return i;
}

/* `before` is the last token of what may be a type. Is it one, and is no space among its words? */
static bool lacks_space(const refusal *r, at before) {
    const tokens *t = &r->unit->tokens;
    while (before != NOT_FOUND && token_is_one_of(t, before, qualifiers))
        before = token_before(before);
    if (before == NOT_FOUND)
        return false;
    at name = token_is(t, before, ">") ? token_before(open_angle(t, before)) : before;
    if (name == NOT_FOUND || !is_type(r, name))
        return false;
    for (at i = name; i != NOT_FOUND; i = token_before(i)) {
        if (token_is_one_of(t, i, spaces))
            return false;
        if (!is_word(t, i) && !token_is(t, i, "::"))
            break;
    }
    at room = token_is(t, token_before(name), "::") ? name - 2 : NOT_FOUND;
    return room == NOT_FOUND || token_is(t, room, "metal"); /* T::float2 may be anything */
}

/* `float *` and `float &`; `float (&x)[2]`, but not `float (*f)(float)`: functions have no space. */
static void check_pointer(const refusal *r, at i) {
    const tokens *t = &r->unit->tokens;
    at before = token_before(i);
    if (before != NOT_FOUND && token_is(t, before, "(")) {
        if (!token_is(t, t->list[before].pair + 1, "["))
            return;
        before = token_before(before);
    }
    if (before != NOT_FOUND && lacks_space(r, before))
        REFUSE(r, i, "address-space", "%s type must have explicit address space qualifier",
               token_is(t, i, "*") ? "pointer" : "reference");
}

/* Reads the pragmas in front of token i. */
static void read_pragmas(const tokens *t, at i, size_t *next, bool *is_internal) {
    for (; *next < t->directive_count && t->directives[*next].begin < t->list[i].begin; ++*next) {
        char line[64], state[16];
        const directive *d = &t->directives[*next];
        snprintf(line, sizeof line, "%.*s", (int)d->bytes, t->source + d->begin);
        if (sscanf(line, " # pragma METAL internals : %15s", state) == 1)
            *is_internal = strcmp(state, "enable") == 0;
    }
}

void msl_check_refused(const msl_unit *u, remark_list *out) {
    const tokens *t = &u->tokens;
    refusal r = {.unit = u, .out = out};
    size_t pragma = 0;
    bool is_internal = false;
    find_classes(&r);
    for (at i = 0; i < t->count; i++) {
        read_pragmas(t, i, &pragma, &is_internal);
        if (attribute_begins(t, i))
            i = attribute_skip(t, i) - 1;
        else if (is_word(t, i) && !is_internal) {
            check_word(&r, i);
            check_label(&r, i);
        } else if (u->language < 320 && !is_internal && is_lambda(t, i))
            REFUSE(&r, i, "language", "lambda expressions are not supported in Metal");
        else if (token_is(t, i, "*") || token_is(t, i, "&") || token_is(t, i, "&&"))
            check_pointer(&r, i);
    }
    free(r.classes);
}
