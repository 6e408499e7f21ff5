/* rewrite: MSL text to C++ text, for one pipeline.
 *
 * Every token is kept, dropped or replaced; what lies between tokens is copied, so a line of the
 * output is the same line of the .metal file. */
#include "internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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

/* 0.5 is a float in MSL. Clang has an option for that, but ignores it inside templates. 0.5H is 0.5h,
 * and 0.5bf gets a suffix that shim/literal.h can define. */
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
        else if (rest == 2 && d->unit->language >= 310 &&
                 (strncmp(p + digits, "bf", 2) == 0 || strncmp(p + digits, "BF", 2) == 0))
            suffix = "_assay_bf";
        if (!suffix)
            continue;
        text literal = {0};
        text_print(&literal, "%.*s%s", (int)digits, p, suffix);
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

/* Does the ')' at close end a cast? What follows is then something to cast. */
static bool ends_cast(const tokens *t, at close) {
    static const char *const words[] = {"return", "else", "case", "do", NULL};
    static const char *const after[] = {"const", "noexcept", "override", "final", "volatile", NULL};
    const at before = token_before(t->list[close].pair), next = close + 1;
    if (before != NOT_FOUND && t->list[before].kind == TOKEN_WORD &&
        !token_is_one_of(t, before, words))
        return false;
    return token_is(t, next, "(") || token_is(t, next, "&") ||
           (t->list[next].kind == TOKEN_WORD && !token_is_one_of(t, next, after));
}

/* The type of a cast to a pointer into shared memory, without its address space; else NULL. Private
 * memory is left alone: how it is aligned is the compiler's choice. The caller frees it. */
static char *spell_pointer(const tokens *t, at begin, at end) {
    static const char *const spaces[] = {"device", "constant", "threadgroup", NULL};
    bool has_space = false, is_type = end > begin + 2 && end - begin < 32;
    int depth = 0;
    text type = {0};
    for (at k = begin; k < end && is_type; k++) {
        bool is_space = token_is_one_of(t, k, spaces);
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

static void add_cast(edits *d, at close, const char *type) {
    text cast = {0};
    text_print(&cast, ")ASSAY_CAST(%s)", type);
    edits_replace(d, close, text_take(&cast));
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
            add_cast(d, close, type);
        if (type && is_named) {
            d->edit[i] = d->edit[i + 1] = "(";
            d->edit[t->list[close + 1].pair] = "))";
        }
        free(type);
    }
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

static bool rewrite(edits *d, const entry *w, const msl_constant_text *given, size_t count,
                    bool traced, text *out, err *e) {
    const msl_unit *u = d->unit;
    if (!foreign_refuse(u, e))
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
    rewrite_pointer_casts(d);
    spin_rewrite(d);
    rewrite_returns(d);
    if (traced)
        step_rewrite(d);
    if (w)
        reach_drop_others(d, w);
    edits_print(d, out);
    return w ? print_glue(u, w, given, count, out, e) : print_instantiations(u, out);
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
