/* rewrite: MSL text to C++ text, for one pipeline.
 *
 * Every token is kept, dropped or replaced; what lies between tokens is copied, so a line of the
 * output is the same line of the .metal file. */
#include "internal.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void edits_drop(edits *d, at begin, at end) {
    for (at i = begin; i < end; i++)
        d->edit[i] = "";
}

void edits_replace(edits *d, at i, char *owned) {
    d->owned = msl_grow(d->owned, sizeof *d->owned, d->owned_count, &d->owned_room);
    d->owned[d->owned_count++] = owned;
    d->edit[i] = owned;
}

/* `constant uint n [[function_constant(0)]];` to `static constexpr uint n = 64u;` */
static void rewrite_function_constants(edits *d, const msl_constant_text *given, size_t count) {
    static const char *const words[] = {"constant", "static", "const",  "constexpr",
                                        "inline",   "extern", "device", NULL};
    const tokens *t = &d->unit->tokens;
    for (size_t n = 0; n < d->unit->constant_count; n++) {
        const function_constant *c = &d->unit->constants[n];
        const msl_constant_text *value = constant_get_text(c, given, count);
        const char *qualifier = "static constexpr";
        for (at i = c->where.begin; i < c->attribute; i++)
            if (token_is_one_of(t, i, words)) {
                d->edit[i] = qualifier;
                qualifier = "";
            }
        text equals = {0};
        if (value)
            text_print(&equals, "= %s", value->text);
        else
            text_print(&equals, "= {}");
        edits_replace(d, c->attribute, text_take(&equals));
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

/* 0.5 is a float in MSL. Clang has an option for that, but ignores it inside templates. */
static void rewrite_literals(edits *d) {
    const tokens *t = &d->unit->tokens;
    for (at i = 0; i < t->count; i++) {
        const token *k = &t->list[i];
        if (k->kind != TOKEN_NUMBER || d->edit[i])
            continue;
        const char *p = token_text(t, i);
        bool hex = k->bytes > 1 && (p[1] == 'x' || p[1] == 'X'), point = false;
        for (uint32_t n = 0; n < k->bytes; n++)
            point = point || strchr(hex ? "pP" : ".eE", p[n]);
        char last = p[k->bytes - 1];
        if (!point || !(isdigit((unsigned char)last) || last == '.'))
            continue;
        text literal = {0};
        text_print(&literal, "%.*sf", (int)k->bytes, p);
        edits_replace(d, i, text_take(&literal));
    }
}

/* C++ compilers cast between half and bfloat through float only (shim/cast.h). */
static void rewrite_casts(edits *d) {
    const tokens *t = &d->unit->tokens;
    bool bfloat = false;
    for (at i = 0; i < t->count && !bfloat; i++)
        bfloat = token_is(t, i, "bfloat");
    for (at i = 0; i < t->count && bfloat; i++)
        if (token_is(t, i, "static_cast") && !d->edit[i])
            d->edit[i] = "assay::cast";
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
        bool plain = !is_wanted && k->template_open == NOT_FOUND;
        const char *mark = plain ? "static" : "";
        for (at i = k->where.begin; i < k->where.open; i++)
            if (token_is(t, i, "static") || token_is(t, i, "inline"))
                mark = "";
        attribute a = attribute_start(k->where.begin);
        while (attribute_next(t, k->where.open, &a))
            if (token_is(t, a.name, "kernel"))
                d->edit[a.begin] = mark;
        for (at i = k->where.begin; i < k->where.open; i++)
            if (token_is(t, i, "kernel") && !d->edit[i])
                d->edit[i] = mark;
    }
}

static bool is_dropped_directive(const char *p, size_t bytes) {
    const char *end = p + bytes;
    p++;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    size_t left = (size_t)(end - p);
    if (left >= 7 && (strncmp(p, "include", 7) == 0 || strncmp(p, "import ", 7) == 0))
        return true;
    if (left < 6 || strncmp(p, "pragma", 6) != 0)
        return false;
    static const char *const words[] = {"unroll", "METAL", "once", NULL};
    for (size_t i = 0; words[i]; i++)
        for (const char *q = p; q + strlen(words[i]) <= end; q++)
            if (strncmp(q, words[i], strlen(words[i])) == 0)
                return true;
    return false;
}

/* Copies what lies between two tokens, without the directives that C++ does not want. */
static void add_trivia(text *out, const tokens *t, uint32_t from, uint32_t to, size_t *next) {
    while (*next < t->directive_count && t->directives[*next].begin < to) {
        const directive *d = &t->directives[(*next)++];
        text_add(out, t->source + from, d->begin - from);
        from = d->begin + d->bytes;
        if (!is_dropped_directive(t->source + d->begin, d->bytes))
            text_add(out, t->source + d->begin, d->bytes);
        else
            for (uint32_t i = d->begin; i < from; i++)
                if (t->source[i] == '\n')
                    text_add(out, "\n", 1);
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
    text_print(out, ">;\nstatic constexpr auto assay_function = %s;\nASSAY_EXPORT\n", w->address);
    return true;
}

/* Asks for each instantiation where the file does, so that a mistake which only one of them has is
 * reported with its line. */
static bool print_instantiations(const msl_unit *u, text *out) {
    const tokens *t = &u->tokens;
    for (size_t i = 0; i < u->entry_count; i++) {
        const entry *w = u->entries[i];
        if (w->problem || u->kernels[w->kernel].template_open == NOT_FOUND)
            continue;
        text_print(out, "\n#line %d \"%s\"\nstatic constexpr auto assay_entry_%zu = %s;",
                   t->list[w->where.begin].line, token_file(t, w->where.begin), i, w->address);
    }
    text_print(out, "\n");
    return true;
}

/* What is compiled here is loaded into this process: it may hold nothing but MSL. */
static bool refuse_assembly(const msl_unit *u, err *e) {
    static const char *const words[] = {"asm", "__asm", "__asm__", NULL};
    const tokens *t = &u->tokens;
    for (at i = 0; i < t->count; i++)
        if (t->list[i].kind == TOKEN_WORD && token_is_one_of(t, i, words))
            return err_set(e, EXIT_WRONG, "%.160s:%d: assembly is not part of MSL",
                           token_file(t, i), t->list[i].line);
    return true;
}

static bool rewrite(edits *d, const entry *w, const msl_constant_text *given, size_t count,
                    bool traced, text *out, err *e) {
    const msl_unit *u = d->unit;
    if (!refuse_assembly(u, e))
        return false;
    for (size_t i = 0; i < u->dropped_count; i++)
        edits_drop(d, u->dropped[i].begin, u->dropped[i].end);
    if (!space_rewrite(d, e))
        return false;
    rewrite_kernels(d, w);
    rewrite_function_constants(d, given, count);
    dedupe_rewrite(d);
    rewrite_literals(d);
    rewrite_casts(d);
    declare_rewrite(d);
    if (traced)
        step_rewrite(d);
    edits_print(d, out);
    return w ? print_glue(u, w, given, count, out, e) : print_instantiations(u, out);
}

edits edits_new(const msl_unit *u) {
    edits d = {.unit = u};
    d.edit = calloc((size_t)u->tokens.count + 1, sizeof *d.edit);
    assert(d.edit && "out of memory");
    return d;
}

void edits_free(edits *d) {
    for (size_t i = 0; i < d->owned_count; i++)
        free(d->owned[i]);
    free(d->owned);
    free(d->edit);
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

bool msl_check_constants(const msl_unit *u, const char *host_name,
                         const msl_constant_text *constants, size_t count, err *e) {
    const entry *w = entry_find(u, host_name, e);
    const function_constant *unset = w ? constant_find_unset(u, w, constants, count) : NULL;
    if (!unset)
        return w != NULL;
    return err_set(
        e, EXIT_USAGE,
        "kernel %.80s uses the function constant %.60s (%.30s, index %d), which is not given",
        host_name, unset->constant.name, unset->constant.type, unset->constant.index);
}

static char *rewrite_entry(const msl_unit *u, const char *host_name,
                           const msl_constant_text *constants, size_t count, bool traced, err *e) {
    const entry *w = entry_find(u, host_name, e);
    if (!w || !msl_check_constants(u, host_name, constants, count, e))
        return NULL;
    return rewrite_text(u, w, constants, count, traced, e);
}

char *msl_rewrite_whole(const msl_unit *u, err *e) {
    return rewrite_text(u, NULL, NULL, 0, false, e);
}

char *msl_rewrite(const msl_unit *u, const char *host_name, const msl_constant_text *constants,
                  size_t count, err *e) {
    return rewrite_entry(u, host_name, constants, count, false, e);
}

char *msl_rewrite_traced(const msl_unit *u, const char *host_name,
                         const msl_constant_text *constants, size_t count, err *e) {
    return rewrite_entry(u, host_name, constants, count, true, e);
}
