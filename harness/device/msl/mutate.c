/* mutate: see mutate.h. Owns the walk over a file and what each operator edits; mutate_text.c
 * applies edits and tells which kernels they can reach. */
#include "mutate.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

typedef struct {
    const tokens *t;
    mutation_list *out;
    char where[64];
    at begin, end; /* of the body or value that is looked at */
    at header_end; /* ')' of the for statement whose head this is; or in the past */
    bool is_body;  /* of a function, not a constant's value */
} finder;

/* Tokens ------------------------------------------------------------------------------------ */

static bool is_kind(const finder *f, at i, token_kind kind) {
    return i >= f->begin && i < f->end && f->t->list[i].kind == kind;
}

static bool is_keyword(const finder *f, at i) {
    static const char *const words[] = {"return", "case", "else", "throw", NULL};
    return token_is_one_of(f->t, i, words);
}

static bool ends_operand(const finder *f, at i) {
    return (is_kind(f, i, TOKEN_WORD) && !is_keyword(f, i)) || is_kind(f, i, TOKEN_NUMBER) ||
           (i >= f->begin && i < f->end && (token_is(f->t, i, ")") || token_is(f->t, i, "]")));
}

static bool has_blanks(const finder *f, at i) {
    const token *k = &f->t->list[i];
    return k->begin > 0 && isspace((unsigned char)f->t->source[k->begin - 1]) &&
           isspace((unsigned char)f->t->source[k->begin + k->bytes]);
}

/* A word or a number alone between operators. */
static bool is_simple(const finder *f, at i) {
    return (is_kind(f, i, TOKEN_WORD) && !is_keyword(f, i)) || is_kind(f, i, TOKEN_NUMBER);
}

static bool is_same_text(const finder *f, at a, at b) {
    const token *x = &f->t->list[a], *y = &f->t->list[b];
    return x->bytes == y->bytes && memcmp(token_text(f->t, a), token_text(f->t, b), x->bytes) == 0;
}

/* The value and the suffix of an integer literal; false for anything else. */
static bool read_integer(const finder *f, at i, unsigned long long *value, char *suffix,
                         size_t size) {
    if (!is_kind(f, i, TOKEN_NUMBER))
        return false;
    char *digits = token_copy(f->t, i), *end;
    *value = strtoull(digits, &end, 0);
    bool ok = strspn(end, "uUlL") == strlen(end) && !strpbrk(digits, ".'");
    snprintf(suffix, size, "%s", end);
    free(digits);
    return ok;
}

static bool is_integer(const finder *f, at i, unsigned long long wanted, char *suffix,
                       size_t size) {
    unsigned long long value;
    return read_integer(f, i, &value, suffix, size) && value == wanted;
}

/* Edits ------------------------------------------------------------------------------------- */

/* Tokens first to last become `with`. An edit that is there already is not another mutant. */
static void add(finder *f, mutate_kind kind, at first, at last, const char *with) {
    const token *a = &f->t->list[first], *b = &f->t->list[last];
    mutation m = {
        .kind = kind, .begin = a->begin, .bytes = b->begin + b->bytes - a->begin, .line = a->line};
    assert(!strchr(with, '\n'));
    for (size_t i = f->out->count; i-- > 0 && f->out->items[i].line == m.line;)
        if (f->out->items[i].begin == m.begin && f->out->items[i].bytes == m.bytes &&
            strcmp(f->out->items[i].with, with) == 0)
            return;
    m.with = text_copy(with, strlen(with));
    memcpy(m.where, f->where, sizeof m.where);
    *ARRAY_ADD(f->out->items, f->out->count, f->out->room) = m;
}

static void add_exchanged(finder *f, at first, at a, at b, at last) {
    text out = {0};
    for (at i = first; i <= last; i++) {
        at from = i == a ? b : i == b ? a : i;
        if (i > first)
            text_add(&out, " ", 1);
        text_add(&out, token_text(f->t, from), f->t->list[from].bytes);
    }
    char *with = text_take(&out);
    add(f, MUTATE_INDEX, first, last, with);
    free(with);
}

/* Operators --------------------------------------------------------------------------------- */

static void find_bound(finder *f, at i) {
    static const char *const from[] = {"<", "<=", ">", ">="}, *const to[] = {"<=", "<", ">=", ">"};
    for (int k = 0; k < 4; k++)
        if (token_is(f->t, i, from[k]) && has_blanks(f, i))
            add(f, MUTATE_BOUND, i, i, to[k]);
}

/* The last token of the statement at i. */
static at end_statement(const finder *f, at i) {
    if (token_is(f->t, i, "{"))
        return f->t->list[i].pair;
    for (; i < f->end && !token_is(f->t, i, ";"); i++)
        if (f->t->list[i].pair != NOT_FOUND && f->t->list[i].pair > i)
            i = f->t->list[i].pair;
    return i;
}

static void find_guard(finder *f, at i) {
    const tokens *t = f->t;
    if (!token_is(t, i, "if") || !token_is(t, i + 1, "("))
        return;
    at close = t->list[i + 1].pair, body = close + 1, last = end_statement(f, body);
    if (last >= f->end || token_is(t, last + 1, "else"))
        return;
    at inner = token_is(t, body, "{") ? body + 1 : body;
    bool leaves = (token_is(t, inner, "return") || token_is(t, inner, "continue")) &&
                  token_is(t, inner + 1, ";") && inner + 1 + (inner > body) == last;
    if (leaves)
        add(f, MUTATE_GUARD, i, last, ";");
    else
        add(f, MUTATE_GUARD, i + 2, close - 1, "true");
}

static void find_barrier(finder *f, at i) {
    static const char *const words[] = {"threadgroup_barrier", "simdgroup_barrier", NULL};
    if (token_is_one_of(f->t, i, words) && token_is(f->t, i + 1, "(") &&
        token_is(f->t, f->t->list[i + 1].pair + 1, ";"))
        add(f, MUTATE_BARRIER, i, f->t->list[i + 1].pair, "");
}

/* a * b + c: row and column are swapped. A number is the stride; if there is none, the
 * second factor is. */
static void find_exchanged_places(finder *f, at i) {
    static const char *const binds_before[] = {"*", "/", "%", ".", "->", "::", NULL};
    static const char *const binds_after[] = {"*", "/", "%", ".", "->", "::", "(", "[", NULL};
    const tokens *t = f->t;
    if (!is_simple(f, i) || !token_is(t, i + 1, "*") || !has_blanks(f, i + 1) ||
        !is_simple(f, i + 2) || !token_is(t, i + 3, "+") || !is_simple(f, i + 4) ||
        (i > f->begin && token_is_one_of(t, i - 1, binds_before)) ||
        token_is_one_of(t, i + 5, binds_after))
        return;
    at row = t->list[i].kind == TOKEN_NUMBER ? i + 2 : i;
    if (!is_same_text(f, row, i + 4))
        add_exchanged(f, i, row, i + 4, i + 4);
}

static void find_exchanged_subscripts(finder *f, at i) {
    const tokens *t = f->t;
    if (!token_is(t, i, "[") || !ends_operand(f, i - 1) || !token_is(t, t->list[i].pair + 1, "["))
        return;
    at second = t->list[i].pair + 1, last = t->list[second].pair;
    char *a = tokens_join(t, i, second), *b = tokens_join(t, second, last + 1);
    text both = {0};
    text_print(&both, "%s%s", b, a);
    char *with = text_take(&both);
    if (strcmp(a, b) != 0)
        add(f, MUTATE_INDEX, i, last, with);
    free(with);
    free(a);
    free(b);
}

static void find_component(finder *f, at i) {
    static const char *const from[] = {"x", "y", "z", "w"}, *const to[] = {"y", "x", "x", "z"};
    for (int k = 0; k < 4 && i > f->begin && token_is(f->t, i - 1, "."); k++)
        if (token_is(f->t, i, from[k]))
            add(f, MUTATE_INDEX, i, i, to[k]);
}

static void find_nibble(finder *f, at i) {
    char suffix[8], with[24];
    if (token_is(f->t, i, "&") && is_integer(f, i + 1, 15, suffix, sizeof suffix))
        snprintf(with, sizeof with, ">> 4%s", suffix);
    else if (token_is(f->t, i, ">>") && is_integer(f, i + 1, 4, suffix, sizeof suffix))
        snprintf(with, sizeof with, "& 15%s", suffix);
    else
        return;
    add(f, MUTATE_NIBBLE, i, i + 1, with);
}

/* The token after the product that begins at i. */
static at end_term(const finder *f, at i) {
    static const char *const ends[] = {"+", "-",  ")",  "]",  "}",  ";",  ",", "<",
                                       ">", "<=", ">=", "==", "!=", "&&", "|", "?",
                                       ":", "||", "&",  "^",  "<<", ">>", NULL};
    for (at first = i; i < f->end; i++) {
        if (i > first && token_is_one_of(f->t, i, ends))
            return i;
        if (f->t->list[i].pair != NOT_FOUND && f->t->list[i].pair > i)
            i = f->t->list[i].pair;
    }
    return f->end;
}

static void find_sum(finder *f, at i) {
    if (token_is(f->t, i, "+") && ends_operand(f, i - 1)) {
        add(f, MUTATE_PLUS, i, i, "-");
        add(f, MUTATE_TERM, i, end_term(f, i + 1) - 1, "");
    } else if (token_is(f->t, i, "+=")) {
        add(f, MUTATE_PLUS, i, i, "-=");
        if (i > f->header_end) /* a loop that sets its counter never ends */
            add(f, MUTATE_TERM, i, i, "=");
    } else if (token_is(f->t, i, "-")) {
        add(f, MUTATE_MINUS, i, i, ends_operand(f, i - 1) ? "+" : "");
    } else if (token_is(f->t, i, "-=")) {
        add(f, MUTATE_MINUS, i, i, "+=");
    } else if (token_is(f->t, i, "*") && has_blanks(f, i) && ends_operand(f, i - 1)) {
        add(f, MUTATE_TIMES, i, i, "+");
    }
}

/* `float partial[2 * N]`: a larger array has no visible effect. */
static bool is_array_size(const finder *f, at i) {
    at open = i;
    while (open > f->begin + 2 && !strchr("[];{}", *token_text(f->t, open)))
        open--;
    return token_is(f->t, open, "[") && open >= f->begin + 2 && is_kind(f, open - 1, TOKEN_WORD) &&
           is_kind(f, open - 2, TOKEN_WORD) && !is_keyword(f, open - 2);
}

static void find_constant(finder *f, at i) {
    unsigned long long value;
    char suffix[8], with[40];
    if (!read_integer(f, i, &value, suffix, sizeof suffix) ||
        (value == 0 && i > f->begin && token_is(f->t, i - 1, "==")))
        return;
    snprintf(with, sizeof with, "%llu%s", value + 1, suffix);
    if (!is_array_size(f, i))
        add(f, MUTATE_CONSTANT, i, i, with);
    if (value == 0)
        snprintf(with, sizeof with, "-1");
    else
        snprintf(with, sizeof with, "%llu%s", value - 1, suffix);
    add(f, MUTATE_CONSTANT, i, i, with);
}

static void find_lane(finder *f, at i) {
    static const char *const functions[][2] = {
        {"simd_sum", "simd_max"},
        {"simd_product", "simd_sum"},
        {"simd_max", "simd_min"},
        {"simd_min", "simd_max"},
        {"simd_and", "simd_or"},
        {"simd_or", "simd_and"},
        {"simd_any", "simd_all"},
        {"simd_all", "simd_any"},
        {"simd_shuffle_down", "simd_shuffle_up"},
        {"simd_shuffle_up", "simd_shuffle_down"},
        {"simd_shuffle_xor", "simd_shuffle_down"},
        {"simd_shuffle", "simd_shuffle_xor"},
        {"simd_broadcast", "simd_shuffle_xor"},
        {"simd_prefix_exclusive_sum", "simd_prefix_inclusive_sum"},
        {"simd_prefix_inclusive_sum", "simd_prefix_exclusive_sum"},
        {"quad_sum", "quad_max"},
    };
    char suffix[8], with[16];
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (token_is(f->t, i, functions[k][0]) && token_is(f->t, i + 1, "("))
            add(f, MUTATE_LANE, i, i, functions[k][1]);
    if (token_is(f->t, i, "==") && is_integer(f, i + 1, 0, suffix, sizeof suffix)) {
        snprintf(with, sizeof with, "1%s", suffix);
        add(f, MUTATE_LANE, i + 1, i + 1, with);
    }
}

/* Made of literals and names of constants only: `0.0f`, `float4(0.0f)`, `{-INFINITY, NOTHING}`. */
static bool is_plain_value(const finder *f, at begin, at end) {
    static const char *const marks[] = {"-", "(", ")", "{", "}", ",", NULL};
    bool has_value = false;
    for (at i = begin; i < end; i++) {
        bool is_word = is_kind(f, i, TOKEN_WORD);
        if (is_word && !token_is(f->t, i + 1, "("))
            for (uint32_t k = 0; k < f->t->list[i].bytes; k++)
                if (islower((unsigned char)token_text(f->t, i)[k]))
                    return false;
        if (!is_word && !is_kind(f, i, TOKEN_NUMBER) && !token_is_one_of(f->t, i, marks))
            return false;
        has_value = has_value || is_word || is_kind(f, i, TOKEN_NUMBER);
    }
    return has_value;
}

/* `float sum = 0.0f;` */
static void find_unset(finder *f, at i) {
    static const char *const fixed[] = {"const", "constexpr", "constant", "auto", NULL};
    const tokens *t = f->t;
    if (!f->is_body || i <= f->header_end || !token_is(t, i, "=") || i < f->begin + 2)
        return;
    at name = token_is(t, i - 1, "]") ? t->list[i - 1].pair - 1 : i - 1, start = name;
    if (!is_kind(f, name, TOKEN_WORD) ||
        !(is_kind(f, name - 1, TOKEN_WORD) || token_is(t, name - 1, ">")))
        return;
    for (; start > f->begin && !strchr(";{})", *token_text(t, start - 1)); start--)
        if (token_is_one_of(t, start, fixed))
            return;
    at end = i + 1;
    for (; end < f->end && !token_is(t, end, ";") && !token_is(t, end, ","); end++)
        if (t->list[end].pair != NOT_FOUND && t->list[end].pair > end)
            end = t->list[end].pair;
    if (!token_is_one_of(t, start, fixed) && is_plain_value(f, i + 1, end))
        add(f, MUTATE_UNSET, i, end - 1, "");
}

/* The word w at i becomes w, `before`, w, `after`. */
static void add_word(finder *f, at i, const char *before, const char *after) {
    char *w = token_copy(f->t, i);
    text out = {0};
    text_print(&out, "%s%s%s%s", w, before, w, after);
    char *with = text_take(&out);
    add(f, MUTATE_EDGE, i, i, with);
    free(with);
    free(w);
}

/* Names of variables: constants are in capitals. */
static bool is_variable(const finder *f, at i) {
    return is_kind(f, i, TOKEN_WORD) && islower((unsigned char)*token_text(f->t, i)) &&
           !is_keyword(f, i);
}

/* `i < n` leaves out the last, or the last partial simdgroup. */
static void find_short_range(finder *f, at i) {
    static const char *const ends[] = {")", ";", "&&", "||", "?", NULL};
    bool is_less = token_is(f->t, i, "<");
    if ((!is_less && !token_is(f->t, i, ">=")) || !has_blanks(f, i) || !ends_operand(f, i - 1))
        return;
    add(f, MUTATE_EDGE, i, i, is_less ? "+ 1 <" : "+ 1 >=");
    if (!is_variable(f, i + 1) || !token_is_one_of(f->t, i + 2, ends))
        return;
    char *n = token_copy(f->t, i + 1);
    text out = {0};
    text_print(&out, "(%s & ~31u)", n);
    char *with = text_take(&out);
    add(f, MUTATE_EDGE, i + 1, i + 1, with);
    free(with);
    free(n);
}

/* `x[i]` and `size_t(row)`, wrong at one place. */
static void find_one_place(finder *f, at i) {
    static const char *const casts[] = {"size_t", "float", NULL};
    const tokens *t = f->t;
    if (!is_variable(f, i + 1) || i + 2 >= f->end)
        return;
    if (token_is(t, i, "[") && token_is(t, i + 2, "]") && ends_operand(f, i - 1) &&
        !(i >= f->begin + 2 && is_kind(f, i - 2, TOKEN_WORD) && !is_keyword(f, i - 2))) {
        add_word(f, i + 1, " - (", " == 4)");
        add_word(f, i + 1, " + (", " == 0)");
    } else if (token_is(t, i, "(") && token_is(t, i + 2, ")") && i > f->begin &&
               token_is_one_of(t, i - 1, casts)) {
        add_word(f, i + 1, " - (", " == 64)");
    }
}

/* The walk ---------------------------------------------------------------------------------- */

/* Past what only looks like code: attributes, template arguments, assertions of the compiler. */
static at skip_silent(const finder *f, at i) {
    if (attribute_begins(f->t, i))
        return attribute_skip(f->t, i);
    if (token_is(f->t, i, "static_assert"))
        return end_statement(f, i) + 1;
    if (token_is(f->t, i, "<") && !has_blanks(f, i) && is_kind(f, i - 1, TOKEN_WORD)) {
        at close = tokens_close_angle(f->t, i);
        return close < f->end ? close + 1 : i;
    }
    return i;
}

static void find_in(finder *f) {
    for (at i = f->begin; i < f->end;) {
        at after = skip_silent(f, i);
        if (after > i) {
            i = after;
            continue;
        }
        if (token_is(f->t, i, "for") && token_is(f->t, i + 1, "("))
            f->header_end = f->t->list[i + 1].pair;
        find_bound(f, i);
        find_guard(f, i);
        find_barrier(f, i);
        find_exchanged_places(f, i);
        find_exchanged_subscripts(f, i);
        find_component(f, i);
        find_nibble(f, i);
        find_sum(f, i);
        find_constant(f, i);
        find_lane(f, i);
        find_unset(f, i);
        find_short_range(f, i);
        find_one_place(f, i);
        i++;
    }
}

static bool find_in_decl(void *context, const decl *d, const char *prefix) {
    (void)prefix;
    finder *f = context;
    f->is_body = d->kind == DECL_FUNCTION;
    f->header_end = 0;
    if (d->kind == DECL_CLASS) {
        decl member;
        for (at i = d->body + 1; decl_next(f->t, &i, f->t->list[d->body].pair, &member);)
            if (member.kind == DECL_FUNCTION && member.body != NOT_FOUND) {
                f->begin = member.body + 1;
                f->end = f->t->list[member.body].pair;
                f->is_body = true;
                mutate_name_decl(f->t, d, f->where, sizeof f->where);
                find_in(f);
            }
        return true;
    }
    f->begin = f->is_body && d->body != NOT_FOUND ? d->body + 1 : d->head_end;
    f->end = f->is_body && d->body != NOT_FOUND ? f->t->list[d->body].pair : d->end;
    mutate_name_decl(f->t, d, f->where, sizeof f->where);
    if (f->begin < f->end && (!f->is_body || d->body != NOT_FOUND))
        find_in(f);
    return true;
}

bool mutate_find(const char *name, const char *source, mutation_list *out, err *e) {
    *out = (mutation_list){NULL, 0, 0};
    tokens t;
    tokens_cut(&t, name, source);
    finder f = {.t = &t, .out = out};
    bool ok = tokens_pair(&t, e) && decl_visit(&t, find_in_decl, &f);
    tokens_free(&t);
    return ok;
}
