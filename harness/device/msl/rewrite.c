/* rewrite: MSL text to C++ text, for one pipeline.
 *
 * Every token is kept, dropped or replaced; what lies between tokens is copied, so a line of the
 * output is the same line of the .metal file. */
#include "internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Edits --------------------------------------------------------------------------------------- */

edits edits_new(const msl_unit *u) {
    edits d = {.unit = u};
    d.edit = array_new((size_t)u->tokens.count + 1, sizeof *d.edit);
    return d;
}

void edits_free(edits *d) {
    for (size_t i = 0; i < d->owned_count; i++)
        free(d->owned[i]);
    free(d->owned);
    free(d->edit);
}

void edits_drop(edits *d, at begin, at end) {
    for (at i = begin; i < end; i++)
        d->edit[i] = "";
}

void edits_replace(edits *d, at i, char *owned) {
    *ARRAY_ADD(d->owned, d->owned_count, d->owned_room) = owned;
    d->edit[i] = owned;
}

/* C++ does not want it. */
static bool is_dropped_directive(const tokens *t, const directive *d) {
    static const char *const pragmas[] = {"unroll", "METAL", "once", "unused", NULL};
    bool is_dropped = directive_is(t, d, "include import");
    for (size_t i = 0; pragmas[i] && directive_is(t, d, "pragma") && !is_dropped; i++)
        is_dropped = directive_has(t, d, pragmas[i]);
    return is_dropped;
}

/* Copies what lies between two tokens, without the directives that C++ does not want. */
static void add_trivia(text *out, const tokens *t, uint32_t from, uint32_t to, size_t *next) {
    while (*next < t->directive_count && t->directives[*next].begin < to) {
        const directive *d = &t->directives[(*next)++];
        text_add(out, t->source + from, d->begin - from);
        from = d->begin + d->bytes;
        bool is_dropped = is_dropped_directive(t, d);
        for (uint32_t i = d->begin; i < from; i++)
            if (!is_dropped || t->source[i] == '\n')
                text_add(out, t->source + i, 1);
    }
    text_add(out, t->source + from, to - from);
}

static bool is_word_char(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* Blanks inside a dropped range are dropped too; comments and line ends stay. */
static bool is_dropped_blank(const edits *d, at i, uint32_t from) {
    const token *k = &d->unit->tokens.list[i];
    if (i == 0 || i >= d->unit->tokens.count || !d->edit[i] || *d->edit[i] || !d->edit[i - 1])
        return false;
    return strspn(d->unit->tokens.source + from, " \t") >= k->begin - from;
}

void edits_print(const edits *d, text *out) {
    const tokens *t = &d->unit->tokens;
    uint32_t from = 0;
    size_t directive_next = 0;
    for (at i = 0; i <= t->count; i++) {
        const token *k = &t->list[i];
        const char *edit = i < t->count ? d->edit[i] : "";
        if (!is_dropped_blank(d, i, from))
            add_trivia(out, t, from, k->begin, &directive_next);
        from = k->begin + k->bytes;
        const char *p = edit ? edit : t->source + k->begin;
        size_t bytes = edit ? strlen(edit) : k->bytes;
        bool touches =
            bytes && out->used && is_word_char(out->data[out->used - 1]) && is_word_char(*p);
        if (touches)
            text_add(out, " ", 1);
        text_add(out, p, bytes);
    }
}

/* Threadgroup memory: `threadgroup T x[n], y;` inside a kernel is memory that the whole threadgroup
 * shares. Each variable becomes a reference to a slot of the running threadgroup. Slots are numbered in
 * each kernel, because one pipeline runs one kernel. An initialiser is dropped: threadgroup memory has no
 * first value in MSL. ------------------------------------------------------------------------ */

typedef struct {
    at begin, keyword, end; /* first token, `threadgroup`, the ';' */
    at name;                /* of the first variable */
    char *type;
    char *alignment; /* "alignas(16)" or "" */
} statement;

static bool is_alignment(const tokens *t, at i) {
    return token_is_one_of(t, i, "alignas __attribute__") && token_is(t, i + 1, "(");
}

static const char storage_specifiers[] = "const static volatile constexpr";

/* Walks back over what may precede `threadgroup`; true if a statement begins there. */
static bool find_begin(const tokens *t, statement *s) {
    at i = s->keyword;
    for (;;) {
        at before = token_before(i);
        if (before == NOT_FOUND)
            break;
        if (token_is_one_of(t, before, storage_specifiers)) {
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
            (!token_is_one_of(t, i, storage_specifiers) || token_is(t, i, "volatile")))
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

/* `threadgroup` at i, in a kernel: if it declares storage, does it all and says so. */
static bool rewrite_storage(edits *d, at i, const kernel *k, uint32_t *slot, bool *done, err *e) {
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

/* Address spaces and attributes: a CPU has one address space, so `device` and `thread` mean nothing and
 * `constant` means const. `threadgroup` means nothing in front of a pointer and storage in front of a
 * variable. ---------------------------------------------------------------------- */

static const char spaces[] = "device thread constant threadgroup ray_data object_data";

/* The '(' of a method's parameters if the space word at i qualifies the method: `f() const device`.
 */
static at find_method(const tokens *t, at i) {
    at before = token_before(i);
    while (token_is_one_of(t, before, "const volatile") || token_is_one_of(t, before, spaces))
        before = token_before(before);
    bool is_method =
        token_is(t, before, ")") && token_is_one_of(t, i + 1, "{ : ; -> noexcept = const");
    return is_method ? t->list[before].pair : NOT_FOUND;
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
    at before = token_before(token_before(open));
    if (token_is(t, token_before(open), "operator"))
        return false;
    return before == NOT_FOUND ||
           token_is_one_of(t, before, "; { } : explicit constexpr inline METAL_FUNC ] ~") ||
           (token_is(t, before, ">") && closes_template_head(t, before));
}

/* Is there a const among the specifiers around i? */
static bool has_const_beside(const edits *d, at i) {
    static const char specifiers[] = "static constexpr inline extern const volatile constant";
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

void edits_drop_attributes(edits *d) {
    const tokens *t = &d->unit->tokens;
    for (at i = 0; i < t->count; i++)
        if (attribute_begins(t, i)) {
            edits_drop(d, i, t->list[i].pair + 1);
            i = t->list[i].pair;
        }
}

/* Words that take an argument and mean nothing here: coherent(system), _Pragma("unroll"). */
static bool drop_call(edits *d, at i) {
    const tokens *t = &d->unit->tokens;
    bool coherent = token_is(t, i, "coherent");
    if (!coherent && !token_is(t, i, "_Pragma"))
        return false;
    bool call = token_is(t, i + 1, "(");
    if (coherent && !call && !token_is_one_of(t, i + 1, spaces))
        return false;
    edits_drop(d, i, call ? t->list[i + 1].pair + 1 : i + 1);
    return true;
}

static bool rewrite_spaces(edits *d, err *e) {
    const msl_unit *u = d->unit;
    const tokens *t = &u->tokens;
    size_t next = 0;
    uint32_t slot = 0;
    edits_drop_attributes(d);
    for (at i = 0; i < t->count; i++) {
        if (next < u->kernel_count && i == u->kernels[next].where.body)
            slot = 0;
        if (next < u->kernel_count && i >= u->kernels[next].where.end)
            next++;
        if (d->edit[i] || drop_call(d, i) || !token_is_one_of(t, i, spaces))
            continue;
        bool inside = next < u->kernel_count && i > u->kernels[next].where.body;
        bool done = false;
        if (token_is(t, i, "constant")) {
            rewrite_constant(d, i);
        } else if (token_is(t, i, "threadgroup") && find_method(t, i) == NOT_FOUND &&
                   !rewrite_storage(d, i, inside ? &u->kernels[next] : NULL, &slot, &done, e)) {
            return false;
        } else if (!done) {
            d->edit[i] = "";
        }
    }
    return true;
}

/* Overloads that only differed by address space: without them `f(device T *p)` and
 * `f(threadgroup T *p)` are one function, defined twice. The first is kept. Identical text that was
 * written twice is left for the compiler to refuse. ------------------------------------------ */

/* The head of a declaration as hashes: as written, and as it is now. */
typedef struct {
    uint64_t written, now;
    uint32_t order;
    decl where;
} key;

typedef struct {
    key *list;
    size_t count, room;
} keys;

static void hash_token(const edits *d, at i, key *k) {
    k->written = token_hash(&d->unit->tokens, i, k->written);
    if (!d->edit[i])
        k->now = token_hash(&d->unit->tokens, i, k->now);
    else if (*d->edit[i])
        k->now = text_hash(d->edit[i], strlen(d->edit[i]), k->now);
}

/* Names and defaults of parameters do not make a different function. */
static void hash_params(const edits *d, at open, key *k) {
    const tokens *t = &d->unit->tokens;
    at close = t->list[open].pair;
    for (at i = open; i < close;) {
        hash_token(d, i, k);
        at end = tokens_end_item(t, i + 1, close);
        at name = decl_find_param_name(t, i + 1, end);
        for (i++; i < end && !token_is(t, i, "="); i++)
            if (i != name)
                hash_token(d, i, k);
        i = end;
    }
}

static bool make_key(const edits *d, const decl *w, bool in_class, key *k) {
    const tokens *t = &d->unit->tokens;
    bool template = token_is(t, w->begin, "template");
    bool wanted = w->kind == DECL_FUNCTION ? w->body != NOT_FOUND || in_class : template;
    if (!wanted || (d->edit[w->begin] && !d->edit[w->begin][0] && d->edit[w->end - 1]))
        return false;
    *k = (key){.where = *w};
    for (at i = w->begin; i < w->head_end; i++) {
        if (i == w->open) {
            hash_params(d, i, k);
            i = t->list[i].pair;
        }
        hash_token(d, i, k);
    }
    return true;
}

static int compare_keys(const void *a, const void *b) {
    const key *x = a, *y = b;
    if (x->now != y->now)
        return x->now < y->now ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void dedupe_scope(edits *d, at i, at end, bool in_class) {
    const tokens *t = &d->unit->tokens;
    keys all = {0};
    decl w;
    while (decl_next(t, &i, end, &w)) {
        if (w.kind == DECL_NAMESPACE || (w.kind == DECL_CLASS && w.body != NOT_FOUND))
            dedupe_scope(d, w.body + 1, t->list[w.body].pair, w.kind == DECL_CLASS);
        key k;
        if (w.kind == DECL_NAMESPACE || !make_key(d, &w, in_class, &k))
            continue;
        k.order = (uint32_t)all.count;
        *ARRAY_ADD(all.list, all.count, all.room) = k;
    }
    if (all.count)
        qsort(all.list, all.count, sizeof *all.list, compare_keys);
    for (size_t n = 1, first = 0; n < all.count; n++) {
        if (all.list[n].now != all.list[first].now)
            first = n;
        else if (all.list[n].written != all.list[first].written)
            edits_drop(d, all.list[n].where.begin, all.list[n].where.end);
    }
    free(all.list);
}

/* Constants, literals, casts, kernels --------------------------------------------------------- */

/* `constant uint n [[function_constant(0)]];` to `static constexpr uint n = 64u;` */
static void rewrite_function_constants(edits *d, const msl_constant_text *given, size_t count) {
    const tokens *t = &d->unit->tokens;
    for (size_t n = 0; n < d->unit->constant_count; n++) {
        const function_constant *c = &d->unit->constants[n];
        const msl_constant_text *value = constant_get_text(c, given, count);
        const char *qualifier = "static constexpr";
        for (at i = c->where.begin; i < c->attribute; i++)
            if (token_is_one_of(t, i, "constant static const constexpr inline extern device")) {
                d->edit[i] = qualifier;
                qualifier = "";
            }
        edits_replace(d, c->attribute, text_format("= %s", value ? value->text : "{}"));
    }
    for (at i = 0; i + 1 < t->count; i++) {
        if (!token_is(t, i, "is_function_constant_defined") || !token_is(t, i + 1, "("))
            continue;
        at close = t->list[i + 1].pair;
        const function_constant *c = constant_find(d->unit, close - 1);
        if (token_is(t, i - 1, "::"))
            edits_drop(d, i - 2, i);
        edits_drop(d, i, close + 1);
        d->edit[i] = c && constant_get_text(c, given, count) ? "true" : "false";
    }
}

/* 0.5 is a float in MSL. Clang has an option for that, but ignores it inside templates. 0.5H is 0.5h,
 * and 0.5bf gets a suffix that shim/types.h can define. */
static void rewrite_literals(edits *d) {
    const tokens *t = &d->unit->tokens;
    for (at i = 0; i < t->count; i++) {
        const token *k = &t->list[i];
        uint32_t digits = d->edit[i] ? 0 : token_measure_float(t, i);
        if (digits == 0)
            continue;
        const char *p = token_text(t, i), *suffix = NULL;
        uint32_t rest = k->bytes - digits;
        if (rest == 0)
            suffix = "f";
        else if (rest == 1 && p[digits] == 'H')
            suffix = "h";
        else if (d->unit->language >= 310 && word_is_one_of(p + digits, rest, "bf BF"))
            suffix = "_assay_bf";
        if (suffix)
            edits_replace(d, i, text_format("%.*s%s", (int)digits, p, suffix));
    }
}

/* C++ compilers cast between half and bfloat through float only. */
static void rewrite_casts(edits *d) {
    const tokens *t = &d->unit->tokens;
    bool bfloat = tokens_have(t, 0, t->count, "bfloat");
    for (at i = 0; i < t->count && bfloat; i++)
        if (token_is(t, i, "static_cast") && !d->edit[i])
            d->edit[i] = "assay::cast";
}

/* Does the ')' at close end a cast? What follows is then something to cast. */
static bool ends_cast(const tokens *t, at close) {
    const at before = token_before(t->list[close].pair), next = close + 1;
    if (token_is_word(t, before) && !token_is_one_of(t, before, "return else case do"))
        return false;
    return token_is_one_of(t, next, "( &") ||
           (token_is_word(t, next) &&
            !token_is_one_of(t, next, "const noexcept override final volatile"));
}

/* The type of a cast to a pointer into shared memory, without its address space; else NULL. Private
 * memory is left alone: how it is aligned is the compiler's choice. The caller frees it. */
static char *spell_pointer(const tokens *t, at begin, at end) {
    bool has_space = false, is_type = end > begin + 2 && end - begin < 32;
    int depth = 0;
    text type = {0};
    for (at k = begin; k < end && is_type; k++) {
        bool is_space = token_is_one_of(t, k, "device constant threadgroup");
        has_space = has_space || is_space;
        depth += token_is(t, k, "<") ? 1 : token_is(t, k, ">") ? -1 : token_is(t, k, ">>") ? -2 : 0;
        is_type = !token_is(t, k, "(") && !(token_is(t, k, ",") && depth == 0);
        if (!is_space || token_is(t, k, "constant"))
            text_print(&type, " %.*s", is_space ? 5 : (int)t->list[k].bytes,
                       is_space ? "const" : token_text(t, k));
    }
    char *spelled = text_take(&type);
    if (is_type && has_space && token_is(t, end - 1, "*"))
        return spelled;
    free(spelled);
    return NULL;
}

/* `(device T *)x` to `(T *)ASSAY_CAST(T *)x`, and reinterpret_cast likewise: checked mode wants to
 * know which type memory is taken for. */
static void rewrite_pointer_casts(edits *d) {
    const tokens *t = &d->unit->tokens;
    for (at i = 0; i + 4 < t->count; i++) {
        bool is_named = token_is(t, i, "reinterpret_cast") && token_is(t, i + 1, "<");
        const at close = is_named              ? tokens_close_angle(t, i + 1)
                         : token_is(t, i, "(") ? t->list[i].pair
                                               : NOT_FOUND;
        if (close == NOT_FOUND || d->edit[close] ||
            !(is_named ? token_is(t, close + 1, "(") : ends_cast(t, close)))
            continue;
        char *type = spell_pointer(t, i + 1 + is_named, close);
        if (type)
            edits_replace(d, close, text_format(")ASSAY_CAST(%s)", type));
        if (type && is_named) {
            d->edit[i] = d->edit[i + 1] = "(";
            d->edit[t->list[close + 1].pair] = "))";
        }
        free(type);
    }
}

/* `kernel` or [[kernel]] becomes the mark. */
void edits_mark_kernel(edits *d, const kernel *k, const char *mark) {
    const tokens *t = &d->unit->tokens;
    attribute a = attribute_start(k->where.begin);
    while (attribute_next(t, k->where.open, &a))
        if (token_is(t, a.name, "kernel"))
            d->edit[a.begin] = mark;
    for (at i = k->where.begin; i < k->where.open; i++)
        if (token_is(t, i, "kernel") && !d->edit[i])
            d->edit[i] = mark;
}

/* Kernels that are not wanted are static, so that they are parsed but not compiled. wanted is NULL
 * when none is. */
static void rewrite_kernels(edits *d, const entry *wanted) {
    const msl_unit *u = d->unit;
    const tokens *t = &u->tokens;
    for (size_t n = 0; n < u->kernel_count; n++) {
        const kernel *k = &u->kernels[n];
        bool is_wanted = wanted && n == wanted->kernel;
        if (k->problem && !is_wanted) {
            edits_drop(d, k->where.begin, k->where.end);
            continue;
        }
        bool plain = !is_wanted && k->template_open == NOT_FOUND &&
                     !tokens_have(t, k->where.begin, k->where.open, "static inline");
        const char *mark = plain ? "static" : "";
        edits_mark_kernel(d, k, mark);
    }
}

/* `return;` of a kernel notes where it left: a later barrier may wait for this thread. */
static void rewrite_returns(edits *d) {
    const tokens *t = &d->unit->tokens;
    for (size_t n = 0; n < d->unit->kernel_count; n++) {
        const decl *k = &d->unit->kernels[n].where;
        for (at i = k->body; i < k->end; i++)
            if (token_is(t, i, "return") && token_is(t, i + 1, ";") && !d->edit[i])
                d->edit[i] = "return ASSAY_LEAVE";
    }
}

enum { MOST_THREADS = 1024 }; /* of a threadgroup on any GPU */

static const char elements_mark[] = "struct assay_elements;\n";

static bool print_glue(const msl_unit *u, const entry *w, const msl_constant_text *given,
                       size_t count, text *out, err *e) {
    text_print(out, "\n#line 1 \"entry of %s\"\nusing assay_params = assay::params<",
               w->signature.host_name);
    for (size_t i = 0; i < w->signature.count; i++) {
        const msl_param *p = &w->signature.params[i];
        bool on;
        if (!entry_is_param_on(u, w, p, given, count, &on, e))
            return false;
        text_print(out, "%s\n    assay::param<assay::kind_%s, %d>", i ? "," : "",
                   on ? param_spell_kind(p->kind) : "off", p->index < 0 ? 0 : p->index);
    }
    text_print(out, ">;\nstatic constexpr auto assay_function = %s;\n%s", w->address,
               msl_uses_elements(u, w->signature.host_name) ? elements_mark : "");
    uint32_t most = w->signature.max_total_threads;
    if (most > 0 && most <= MOST_THREADS)
        text_print(out, "ASSAY_EXPORT_FOR(%u)\n", most);
    else
        text_print(out, "ASSAY_EXPORT\n");
    return true;
}

/* Asks for each instantiation where the file does, so that a mistake which only one of them has is
 * reported with its line. */
static void print_instantiations(const msl_unit *u, text *out) {
    const tokens *t = &u->tokens;
    for (size_t i = 0; i < u->entry_count; i++) {
        const entry *w = u->entries[i];
        if (w->problem || u->kernels[w->kernel].template_open == NOT_FOUND)
            continue;
        text_print(out, "\n#line %d \"%s\"\nstatic constexpr auto assay_entry_%zu = %s;",
                   t->list[w->where.begin].line, token_file(t, w->where.begin), i, w->address);
    }
    text_print(out, "\n");
}

static bool rewrite(edits *d, const entry *w, const msl_constant_text *given, size_t count,
                    bool traced, text *out, err *e) {
    const msl_unit *u = d->unit;
    if (!foreign_refuse(u, e))
        return false;
    for (size_t i = 0; i < u->dropped_count; i++)
        edits_drop(d, u->dropped[i].begin, u->dropped[i].end);
    if (!rewrite_spaces(d, e))
        return false;
    rewrite_kernels(d, w);
    rewrite_function_constants(d, given, count);
    dedupe_scope(d, 0, u->tokens.count, false);
    rewrite_literals(d);
    rewrite_casts(d);
    rewrite_pointer_casts(d);
    marks_add_spins(d);
    rewrite_returns(d);
    if (traced)
        marks_add_steps(d);
    if (w)
        reach_drop_others(d, w);
    edits_print(d, out);
    if (w)
        return print_glue(u, w, given, count, out, e);
    print_instantiations(u, out);
    return true;
}

/* w is NULL for the whole file. */
static char *rewrite_text(const msl_unit *u, const entry *w, const msl_constant_text *constants,
                          size_t count, bool traced, err *e) {
    edits d = edits_new(u);
    text out = {0};
    bool ok = rewrite(&d, w, constants, count, traced, &out, e);
    edits_free(&d);
    if (ok)
        return text_take(&out);
    free(out.data);
    return NULL;
}

bool msl_text_has_tensors(const char *written) {
    return strstr(written, "struct assay_tensors;") != NULL;
}

bool msl_text_uses_elements(const char *written) {
    return strstr(written, elements_mark) != NULL;
}

char *msl_rewrite_whole(const msl_unit *u, err *e) {
    return rewrite_text(u, NULL, NULL, 0, false, e);
}

char *msl_rewrite_for(const msl_unit *u, const char *host_name, const msl_constant_text *constants,
                      size_t count, bool is_traced, err *e) {
    const entry *w = entry_find(u, host_name, e);
    return w && msl_check_constants(u, host_name, constants, count, e)
               ? rewrite_text(u, w, constants, count, is_traced, e)
               : NULL;
}

char *msl_rewrite(const msl_unit *u, const char *host_name, const msl_constant_text *constants,
                  size_t count, err *e) {
    return msl_rewrite_for(u, host_name, constants, count, false, e);
}
