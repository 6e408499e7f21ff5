/* storage: `threadgroup T x[n], y;` inside a kernel is memory that the whole threadgroup shares.
 *
 * Each variable becomes a reference to a slot of the running threadgroup. Slots are numbered in
 * each kernel, because one pipeline runs one kernel. An initialiser is dropped: threadgroup memory
 * has no first value in MSL. */
#include "internal.h"

#include "limits.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    at begin, keyword, end; /* first token, `threadgroup`, the ';' */
    at name;                /* of the first variable */
    char *type;
    char *alignment; /* "alignas(16)" or "" */
} statement;

static bool is_alignment(const tokens *t, at i) {
    return token_is_one_of(t, i, "alignas __attribute__") && token_is(t, i + 1, "(");
}

static const char specifiers[] = "const static volatile constexpr";

/* Walks back over what may precede `threadgroup`; true if a statement begins there. */
static bool find_begin(const tokens *t, statement *s) {
    at i = s->keyword;
    for (;;) {
        at before = token_before(i);
        if (before == NOT_FOUND)
            break;
        if (token_is_one_of(t, before, specifiers)) {
            i = before;
        } else if (token_is(t, before, "]") && attribute_begins(t, t->list[before].pair)) {
            i = t->list[before].pair;
        } else if (token_is(t, before, ")") && is_alignment(t, t->list[before].pair - 1)) {
            i = t->list[before].pair - 1;
        } else {
            s->begin = i;
            return token_is_one_of(t, before, "; { } :");
        }
    }
    s->begin = i;
    return true;
}

/* Finds name and end; false when it declares a pointer, a reference, or is not understood. */
static bool find_name(const tokens *t, statement *s) {
    s->name = NOT_FOUND;
    for (at i = s->keyword + 1; i < t->count && s->name == NOT_FOUND; i++) {
        if (attribute_begins(t, i)) {
            i = t->list[i].pair;
        } else if (is_alignment(t, i)) {
            i = t->list[i + 1].pair;
        } else if (token_is(t, i, "<")) {
            at close = tokens_close_angle(t, i);
            if (close == NOT_FOUND)
                return false;
            i = close;
        } else if (token_is_word(t, i)) {
            if (token_is_one_of(t, attribute_skip(t, i + 1), "[ , = ; { __attribute__"))
                s->name = i;
        } else if (!token_is(t, i, "::")) {
            return false;
        }
    }
    s->end = s->name == NOT_FOUND ? t->count : tokens_find(t, s->name, t->count, ";");
    return s->end < t->count;
}

static bool read_statement(const tokens *t, at i, statement *s) {
    *s = (statement){.keyword = i};
    return find_begin(t, s) && find_name(t, s);
}

static void add_token(const tokens *t, text *out, at i) {
    text_print(out, "%s%.*s", out->used ? " " : "", TOKEN_SPELL(t, i));
}

/* Past the attribute or alignment at i, to its last token; an alignment is kept. */
static bool skip_alignment(const tokens *t, at *i, text *alignment) {
    if (attribute_begins(t, *i)) {
        *i = t->list[*i].pair;
        return true;
    }
    if (!is_alignment(t, *i))
        return false;
    for (at close = t->list[*i + 1].pair; *i < close; ++*i)
        add_token(t, alignment, *i);
    add_token(t, alignment, *i);
    return true;
}

/* Splits the tokens before the first name into type and alignment. */
static void read_type(const tokens *t, statement *s) {
    text type = {0}, alignment = {0};
    for (at i = s->begin; i < s->name; i++)
        if (!skip_alignment(t, &i, &alignment) && i != s->keyword &&
            (!token_is_one_of(t, i, specifiers) || token_is(t, i, "volatile")))
            add_token(t, &type, i);
    s->type = text_take(&type);
    s->alignment = text_take(&alignment);
}

/* One variable of the statement: name, then its array bounds and alignment. */
static void declare(const tokens *t, const statement *s, at name, at end, uint32_t slot,
                    text *out) {
    text bounds = {0}, alignment = {0};
    text_add(&alignment, s->alignment, strlen(s->alignment));
    for (at i = name + 1; i < end && !token_is_one_of(t, i, "= {"); i++)
        if (!skip_alignment(t, &i, &alignment))
            add_token(t, &bounds, i);
    char *shape = text_take(&bounds), *align = text_take(&alignment), *word = token_copy(t, name);
    if (*align)
        text_print(out,
                   "struct assay_type_%u { %s %s value%s; }; auto &%s = "
                   "assay::threadgroup_variable<assay_type_%u, %u>(\"%s\").value; ",
                   slot, align, s->type, shape, word, slot, slot, word);
    else
        text_print(out,
                   "typedef %s assay_type_%u%s; assay_type_%u &%s = "
                   "assay::threadgroup_variable<assay_type_%u, %u>(\"%s\"); ",
                   s->type, slot, shape, slot, word, slot, slot, word);
    free(shape);
    free(align);
    free(word);
}

bool storage_rewrite(edits *d, at i, const kernel *k, uint32_t *slot, bool *done, err *e) {
    const tokens *t = &d->unit->tokens;
    statement s;
    *done = read_statement(t, i, &s);
    if (!*done)
        return true;
    if (!k)
        return err_set(e, EXIT_USAGE,
                       "%.120s:%d: the threadgroup variable %.*s is declared outside a kernel, "
                       "and MSL has them in kernels only",
                       TOKEN_PLACE(t, i), TOKEN_SPELL(t, s.name));
    read_type(t, &s);
    text out = {0};
    for (at name = s.name; name < s.end && *slot < MSL_STATIC_SLOTS;) {
        at end = tokens_end_item(t, name, s.end);
        declare(t, &s, name, end, (*slot)++, &out);
        name = end + 1;
    }
    free(s.type);
    free(s.alignment);
    edits_drop(d, s.begin, s.end + 1);
    edits_replace(d, s.begin, text_take(&out));
    if (*slot >= MSL_STATIC_SLOTS)
        return err_set(e, EXIT_USAGE,
                       "%.120s:%d: kernel %.80s has more than %d threadgroup variables",
                       TOKEN_PLACE(t, i), k->name, MSL_STATIC_SLOTS - 1);
    return true;
}

/* `[a][b]` after the name at i: a * b; 1 for a variable without bounds, 0 if one is unknown. */
static uint64_t count_elements(const msl_unit *u, at i, at end) {
    const tokens *t = &u->tokens;
    uint64_t count = 1;
    for (i++; i < end && !token_is_one_of(t, i, "= {"); i++) {
        scope s = {.unit = u};
        int64_t bound = 1;
        if (!token_is(t, i, "["))
            continue;
        if (!attribute_begins(t, i) &&
            (!constant_evaluate(&s, i + 1, t->list[i].pair, &bound) || bound < 0 ||
             (bound > 0 && count > UINT32_MAX / (uint64_t)bound)))
            return 0;
        count *= (uint64_t)bound;
        i = t->list[i].pair;
    }
    return count;
}

uint64_t storage_measure(const msl_unit *u, at i, at *end) {
    const tokens *t = &u->tokens;
    statement s;
    *end = i + 1;
    if (!read_statement(t, i, &s))
        return 0;
    read_type(t, &s);
    uint32_t alignment;
    uint64_t bytes = 0, size = type_size(s.type, &alignment);
    for (at name = s.name; name < s.end; name = tokens_end_item(t, name, s.end) + 1)
        bytes += size * count_elements(u, name, tokens_end_item(t, name, s.end));
    free(s.type);
    free(s.alignment);
    *end = s.end + 1;
    return bytes;
}

at storage_find_value(const msl_unit *u, at i) {
    const tokens *t = &u->tokens;
    statement s;
    at value = read_statement(t, i, &s) ? tokens_find(t, s.name, s.end, "= {") : NOT_FOUND;
    return value != NOT_FOUND && value < s.end ? value : NOT_FOUND;
}
