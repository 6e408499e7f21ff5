/* mutate: see mutate.h. First what each operator edits and the walk over a file, then the text of a
 * mutant, how it is shown, and which kernels it is part of. */
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

/* A word that is an operand. */
static bool is_name(const finder *f, at i) {
    return is_kind(f, i, TOKEN_WORD) && !token_is_one_of(f->t, i, "return case else throw");
}

/* A word or a number alone between operators. */
static bool is_simple(const finder *f, at i) {
    return is_name(f, i) || is_kind(f, i, TOKEN_NUMBER);
}

static bool ends_operand(const finder *f, at i) {
    return is_simple(f, i) || (is_kind(f, i, TOKEN_MARK) && token_is_one_of(f->t, i, ") ]"));
}

static bool has_blanks(const finder *f, at i) {
    const token *k = &f->t->list[i];
    return k->begin > 0 && isspace((unsigned char)f->t->source[k->begin - 1]) &&
           isspace((unsigned char)f->t->source[k->begin + k->bytes]);
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

static void add_owned(finder *f, mutate_kind kind, at first, at last, char *with) {
    add(f, kind, first, last, with);
    free(with);
}

/* Operators --------------------------------------------------------------------------------- */

/* One token for another, where it is what `where` asks for. */
typedef enum { ANYWHERE, BETWEEN_BLANKS, CALLED, COMPONENT } exchange_place;

static const struct {
    mutate_kind kind;
    exchange_place where;
    const char *from, *to;
} exchanges[] = {
    {MUTATE_BOUND, BETWEEN_BLANKS, "<", "<="},
    {MUTATE_BOUND, BETWEEN_BLANKS, "<=", "<"},
    {MUTATE_BOUND, BETWEEN_BLANKS, ">", ">="},
    {MUTATE_BOUND, BETWEEN_BLANKS, ">=", ">"},
    {MUTATE_INDEX, COMPONENT, "x", "y"},
    {MUTATE_INDEX, COMPONENT, "y", "x"},
    {MUTATE_INDEX, COMPONENT, "z", "x"},
    {MUTATE_INDEX, COMPONENT, "w", "z"},
    {MUTATE_PLUS, ANYWHERE, "+=", "-="},
    {MUTATE_MINUS, ANYWHERE, "-=", "+="},
    {MUTATE_LANE, CALLED, "simd_sum", "simd_max"},
    {MUTATE_LANE, CALLED, "simd_product", "simd_sum"},
    {MUTATE_LANE, CALLED, "simd_max", "simd_min"},
    {MUTATE_LANE, CALLED, "simd_min", "simd_max"},
    {MUTATE_LANE, CALLED, "simd_and", "simd_or"},
    {MUTATE_LANE, CALLED, "simd_or", "simd_and"},
    {MUTATE_LANE, CALLED, "simd_any", "simd_all"},
    {MUTATE_LANE, CALLED, "simd_all", "simd_any"},
    {MUTATE_LANE, CALLED, "simd_shuffle_down", "simd_shuffle_up"},
    {MUTATE_LANE, CALLED, "simd_shuffle_up", "simd_shuffle_down"},
    {MUTATE_LANE, CALLED, "simd_shuffle_xor", "simd_shuffle_down"},
    {MUTATE_LANE, CALLED, "simd_shuffle", "simd_shuffle_xor"},
    {MUTATE_LANE, CALLED, "simd_broadcast", "simd_shuffle_xor"},
    {MUTATE_LANE, CALLED, "simd_prefix_exclusive_sum", "simd_prefix_inclusive_sum"},
    {MUTATE_LANE, CALLED, "simd_prefix_inclusive_sum", "simd_prefix_exclusive_sum"},
    {MUTATE_LANE, CALLED, "quad_sum", "quad_max"},
};

static void find_exchange(finder *f, at i) {
    for (size_t k = 0; k < sizeof exchanges / sizeof *exchanges; k++)
        if (token_is(f->t, i, exchanges[k].from) &&
            (exchanges[k].where != BETWEEN_BLANKS || has_blanks(f, i)) &&
            (exchanges[k].where != CALLED || token_is(f->t, i + 1, "(")) &&
            (exchanges[k].where != COMPONENT || (i > f->begin && token_is(f->t, i - 1, "."))))
            add(f, exchanges[k].kind, i, i, exchanges[k].to);
}

/* The last token of the statement at i. */
static at end_statement(const finder *f, at i) {
    if (token_is(f->t, i, "{"))
        return f->t->list[i].pair;
    return tokens_find(f->t, i, f->end, ";");
}

static void find_guard(finder *f, at i) {
    const tokens *t = f->t;
    if (!token_is(t, i, "if") || !token_is(t, i + 1, "("))
        return;
    at close = t->list[i + 1].pair, body = close + 1, last = end_statement(f, body);
    if (last >= f->end || token_is(t, last + 1, "else"))
        return;
    at inner = token_is(t, body, "{") ? body + 1 : body;
    bool leaves = token_is_one_of(t, inner, "return continue") && token_is(t, inner + 1, ";") &&
                  inner + 1 + (inner > body) == last;
    if (leaves)
        add(f, MUTATE_GUARD, i, last, ";");
    else
        add(f, MUTATE_GUARD, i + 2, close - 1, "true");
}

static void find_barrier(finder *f, at i) {
    if (token_is_one_of(f->t, i, "threadgroup_barrier simdgroup_barrier") &&
        token_is(f->t, i + 1, "(") && token_is(f->t, f->t->list[i + 1].pair + 1, ";"))
        add(f, MUTATE_BARRIER, i, f->t->list[i + 1].pair, "");
}

/* a * b + c: row and column are swapped. A number is the stride; if there is none, the
 * second factor is. */
static void find_exchanged_places(finder *f, at i) {
    const tokens *t = f->t;
    if (!is_simple(f, i) || !token_is(t, i + 1, "*") || !has_blanks(f, i + 1) ||
        !is_simple(f, i + 2) || !token_is(t, i + 3, "+") || !is_simple(f, i + 4) ||
        (i > f->begin && token_is_one_of(t, i - 1, "* / % . -> ::")) ||
        token_is_one_of(t, i + 5, "* / % . -> :: ( ["))
        return;
    at row = t->list[i].kind == TOKEN_NUMBER ? i + 2 : i;
    if (!token_is_same(t, row, i + 4))
        add_owned(f, MUTATE_INDEX, i, i + 4,
                  row == i ? text_format("%.*s * %.*s + %.*s", TOKEN_SPELL(t, i + 4),
                                         TOKEN_SPELL(t, i + 2), TOKEN_SPELL(t, i))
                           : text_format("%.*s * %.*s + %.*s", TOKEN_SPELL(t, i),
                                         TOKEN_SPELL(t, i + 4), TOKEN_SPELL(t, i + 2)));
}

static void find_exchanged_subscripts(finder *f, at i) {
    const tokens *t = f->t;
    if (!token_is(t, i, "[") || !ends_operand(f, i - 1) || !token_is(t, t->list[i].pair + 1, "["))
        return;
    at second = t->list[i].pair + 1, last = t->list[second].pair;
    char *a = tokens_join(t, i, second), *b = tokens_join(t, second, last + 1);
    if (strcmp(a, b) != 0)
        add_owned(f, MUTATE_INDEX, i, last, text_format("%s%s", b, a));
    free(a);
    free(b);
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
    return tokens_find(f->t, tokens_close(f->t, i) + 1, f->end,
                       "+ - ) ] } ; , < > <= >= == != && | ? : || & ^ << >>");
}

static void find_sum(finder *f, at i) {
    if (token_is(f->t, i, "+") && ends_operand(f, i - 1)) {
        add(f, MUTATE_PLUS, i, i, "-");
        add(f, MUTATE_TERM, i, end_term(f, i + 1) - 1, "");
    } else if (token_is(f->t, i, "+=")) {
        if (i > f->header_end) /* a loop that sets its counter never ends */
            add(f, MUTATE_TERM, i, i, "=");
    } else if (token_is(f->t, i, "-")) {
        add(f, MUTATE_MINUS, i, i, ends_operand(f, i - 1) ? "+" : "");
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
           is_name(f, open - 2);
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
    char suffix[8], with[16];
    if (token_is(f->t, i, "==") && is_integer(f, i + 1, 0, suffix, sizeof suffix)) {
        snprintf(with, sizeof with, "1%s", suffix);
        add(f, MUTATE_LANE, i + 1, i + 1, with);
    }
}

/* Made of literals and names of constants only: `0.0f`, `float4(0.0f)`, `{-INFINITY, NOTHING}`. */
static bool is_plain_value(const finder *f, at begin, at end) {
    bool has_value = false;
    for (at i = begin; i < end; i++) {
        bool is_word = is_kind(f, i, TOKEN_WORD);
        if (is_word && !token_is(f->t, i + 1, "("))
            for (uint32_t k = 0; k < f->t->list[i].bytes; k++)
                if (islower((unsigned char)token_text(f->t, i)[k]))
                    return false;
        if (!is_word && !is_kind(f, i, TOKEN_NUMBER) && !token_is_one_of(f->t, i, "- ( ) { } ,"))
            return false;
        has_value = has_value || is_word || is_kind(f, i, TOKEN_NUMBER);
    }
    return has_value;
}

/* `float sum = 0.0f;` */
static void find_unset(finder *f, at i) {
    static const char fixed[] = "const constexpr constant auto";
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
    at end = tokens_find(t, i + 1, f->end, "; ,");
    if (!token_is_one_of(t, start, fixed) && is_plain_value(f, i + 1, end))
        add(f, MUTATE_UNSET, i, end - 1, "");
}

/* Names of variables: constants are in capitals. */
static bool is_variable(const finder *f, at i) {
    return is_name(f, i) && islower((unsigned char)*token_text(f->t, i));
}

/* `i < n` leaves out the last, or the last partial simdgroup. */
static void find_short_range(finder *f, at i) {
    bool is_less = token_is(f->t, i, "<");
    if ((!is_less && !token_is(f->t, i, ">=")) || !has_blanks(f, i) || !ends_operand(f, i - 1))
        return;
    add(f, MUTATE_EDGE, i, i, is_less ? "+ 1 <" : "+ 1 >=");
    if (is_variable(f, i + 1) && token_is_one_of(f->t, i + 2, ") ; && || ?"))
        add_owned(f, MUTATE_EDGE, i + 1, i + 1,
                  text_format("(%.*s & ~31u)", TOKEN_SPELL(f->t, i + 1)));
}

/* `x[i]` and `size_t(row)`, wrong at one place. */
static void find_one_place(finder *f, at i) {
    const tokens *t = f->t;
    if (!is_variable(f, i + 1) || i + 2 >= f->end)
        return;
    const char *forms[2] = {NULL, NULL};
    if (token_is(t, i, "[") && token_is(t, i + 2, "]") && ends_operand(f, i - 1) &&
        !(i >= f->begin + 2 && is_name(f, i - 2))) {
        forms[0] = "%.*s - (%.*s == 4)";
        forms[1] = "%.*s + (%.*s == 0)";
    } else if (token_is(t, i, "(") && token_is(t, i + 2, ")") && i > f->begin &&
               token_is_one_of(t, i - 1, "size_t float")) {
        forms[0] = "%.*s - (%.*s == 64)";
    }
    for (int k = 0; k < 2 && forms[k]; k++)
        add_owned(f, MUTATE_EDGE, i + 1, i + 1,
                  text_format(forms[k], TOKEN_SPELL(t, i + 1), TOKEN_SPELL(t, i + 1)));
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
        find_exchange(f, i);
        find_guard(f, i);
        find_barrier(f, i);
        find_exchanged_places(f, i);
        find_exchanged_subscripts(f, i);
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

/* The name of a declaration; "" for one without, such as an operator. */
static void name_decl(const tokens *t, const decl *d, char *name, size_t size) {
    name[0] = 0;
    if (d->name == NOT_FOUND || token_is(t, d->name, "operator") || t->list[d->name].bytes >= size)
        return;
    memcpy(name, token_text(t, d->name), t->list[d->name].bytes);
    name[t->list[d->name].bytes] = 0;
}

static void find_between(finder *f, const decl *named, at begin, at end, bool is_body) {
    f->begin = begin;
    f->end = end;
    f->is_body = is_body;
    name_decl(f->t, named, f->where, sizeof f->where);
    find_in(f);
}

static void find_in_decl(finder *f, const decl *d) {
    decl member;
    f->header_end = 0;
    if (d->kind == DECL_FUNCTION && d->body != NOT_FOUND)
        find_between(f, d, d->body + 1, f->t->list[d->body].pair, true);
    else if (d->kind != DECL_CLASS && d->kind != DECL_FUNCTION)
        find_between(f, d, d->head_end, d->end, false);
    else if (d->kind == DECL_CLASS)
        for (at i = d->body + 1; decl_next(f->t, &i, f->t->list[d->body].pair, &member);)
            if (member.kind == DECL_FUNCTION && member.body != NOT_FOUND)
                find_between(f, d, member.body + 1, f->t->list[member.body].pair, true);
}

static bool read_tokens(tokens *t, const char *name, const char *source, err *e) {
    tokens_cut(t, name, source);
    if (!tokens_pair(t, e))
        return false;
    decl_read_all(t);
    return true;
}

bool mutate_find(const char *name, const char *source, mutation_list *out, err *e) {
    *out = (mutation_list){NULL, 0, 0};
    tokens t;
    finder f = {.t = &t, .out = out};
    bool ok = read_tokens(&t, name, source, e);
    for (size_t i = 0; ok && i < t.decl_count; i++)
        find_in_decl(&f, &t.decls[i]);
    tokens_free(&t);
    return ok;
}

/* Text ---------------------------------------------------------------------------------------- */

const char *mutate_get_name(mutate_kind kind) {
    static const char *const names[MUTATE_KINDS] = {
        [MUTATE_BOUND] = "off-by-one bound",
        [MUTATE_GUARD] = "dropped guard",
        [MUTATE_BARRIER] = "dropped barrier",
        [MUTATE_INDEX] = "swapped index",
        [MUTATE_NIBBLE] = "wrong nibble",
        [MUTATE_PLUS] = "+ to -",
        [MUTATE_MINUS] = "- to +",
        [MUTATE_TIMES] = "* to +",
        [MUTATE_TERM] = "dropped term",
        [MUTATE_CONSTANT] = "constant +-1",
        [MUTATE_LANE] = "wrong lane",
        [MUTATE_UNSET] = "uninitialised",
        [MUTATE_EDGE] = "one edge",
    };
    return names[kind];
}

void mutate_free(mutation_list *l) {
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i].with);
    free(l->items);
    *l = (mutation_list){NULL, 0, 0};
}

char *mutate_apply(const char *source, const mutation *m) {
    text out = {0};
    text_add(&out, source, m->begin);
    text_add(&out, m->with, strlen(m->with));
    /* Line ends of the removed text are kept, so that what follows keeps its line. */
    for (uint32_t i = 0; i < m->bytes; i++)
        if (source[m->begin + i] == '\n')
            text_add(&out, "\n", 1);
    const char *rest = source + m->begin + m->bytes;
    text_add(&out, rest, strlen(rest));
    return text_take(&out);
}

/* The lines of a range, with blanks folded to one. */
static char *fold_lines(const char *source, size_t begin, size_t end) {
    text out = {0};
    while (begin > 0 && source[begin - 1] != '\n')
        begin--;
    while (source[end] && source[end] != '\n')
        end++;
    for (const char *p = source + begin; p < source + end; p++) {
        bool is_blank = isspace((unsigned char)*p) != 0;
        if (!is_blank)
            text_add(&out, p, 1);
        else if (out.used > 0 && p + 1 < source + end && !isspace((unsigned char)p[1]))
            text_add(&out, " ", 1);
    }
    return text_take(&out);
}

void mutate_describe(const char *source, const mutation *m, char **before, char **after) {
    char *changed = mutate_apply(source, m);
    size_t rest = strlen(source) - m->begin - m->bytes;
    *before = fold_lines(source, m->begin, m->begin + m->bytes);
    *after = fold_lines(changed, m->begin, strlen(changed) - rest);
    free(changed);
}

/* Parts ------------------------------------------------------------------------------------- */

bool mutate_has_part(const mutate_parts *p, const char *name) {
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->names[i], name) == 0)
            return true;
    return !*name;
}

void mutate_free_parts(mutate_parts *p) {
    for (size_t i = 0; i < p->count; i++)
        free(p->names[i]);
    free(p->names);
    *p = (mutate_parts){NULL, 0, 0};
}

/* False if it is there already. */
static bool add_part(mutate_parts *p, const char *data, size_t bytes) {
    char *name = text_copy(data, bytes);
    bool is_new = !mutate_has_part(p, name);
    if (is_new)
        *ARRAY_ADD(p->names, p->count, p->room) = name;
    else
        free(name);
    return is_new;
}

/* The kernel's name, as a word, or as strings that stand side by side and give it. */
static bool is_kernel_name(const tokens *t, at i, const char *name) {
    at end = i;
    while (end < t->count && t->list[end].kind == TOKEN_STRING)
        end++;
    if (end == i)
        return token_is(t, i, name);
    char *joined = tokens_unquote(t, i, end);
    bool is_name = strcmp(joined, name) == 0;
    free(joined);
    return is_name;
}

/* The kernel is it, or is named in it: by a host name, or by a macro that makes it. */
static bool mentions_kernel(const tokens *t, const decl *d, const char *wanted) {
    for (at i = d->begin; i < d->end; i++)
        if (is_kernel_name(t, i, wanted))
            return true;
    return false;
}

/* Adds what the declaration mentions, if it is a part; true if there was something new. */
static bool collect(const tokens *t, const decl *d, const char *wanted, mutate_parts *parts) {
    bool has_grown = false;
    char name[64];
    name_decl(t, d, name, sizeof name);
    if (!mutate_has_part(parts, name) && !mentions_kernel(t, d, wanted))
        return false;
    for (at i = d->begin; i < d->end; i++)
        if (t->list[i].kind == TOKEN_WORD && add_part(parts, token_text(t, i), t->list[i].bytes))
            has_grown = true;
    return has_grown;
}

/* What macros mention: any text may use them. */
static void collect_macros(const tokens *t, mutate_parts *p) {
    for (size_t i = 0; i < t->directive_count; i++) {
        const directive *d = &t->directives[i];
        if (!directive_is(t, d, "define"))
            continue;
        char *operand;
        tokens define = tokens_cut_define(t, d, &operand);
        for (at k = 0; k < define.count; k++)
            if (token_is_word(&define, k))
                add_part(p, token_text(&define, k), define.list[k].bytes);
        tokens_free(&define);
        free(operand);
    }
}

bool mutate_find_parts(const char *const *sources, size_t count, const char *name,
                       mutate_parts *out, err *e) {
    *out = (mutate_parts){NULL, 0, 0};
    tokens *t = array_new(count + 1, sizeof *t);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        ok = read_tokens(&t[i], "kernel", sources[i], e);
        collect_macros(&t[i], out);
    }
    add_part(out, name, strlen(name));
    for (bool has_grown = ok; has_grown;) {
        has_grown = false;
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < t[i].decl_count; k++)
                has_grown |= collect(&t[i], &t[i].decls[k], name, out);
    }
    for (size_t i = 0; i < count; i++)
        tokens_free(&t[i]);
    free(t);
    return ok;
}
