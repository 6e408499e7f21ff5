/* unit: a parsed file, as the rest of the project holds it; its kernels as a launch sees them; and the
 * versions of the language. */
#include "internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is a token in the head of a kernel or in an explicit instantiation of one? */
static bool is_in_head(const msl_unit *u, at i) {
    for (size_t k = 0; k < u->entry_count; k++) {
        const range r = u->entries[k]->where;
        const decl *d = &u->kernels[u->entries[k]->kernel].where;
        if ((i >= d->begin && i < d->head_end) || (r.begin >= d->end && i >= r.begin && i < r.end))
            return true;
    }
    return false;
}

/* Without coherent(device), which is of MSL 3.2, or with a cast to it somewhere, nothing can be said
 * against any buffer. */
static void note_coherence(msl_unit *u) {
    bool is_unknown = u->language < 320;
    for (at i = 0; i < u->tokens.count && !is_unknown; i++)
        is_unknown = token_is(&u->tokens, i, "coherent") && !is_in_head(u, i);
    for (size_t k = 0; k < u->entry_count && is_unknown; k++)
        for (size_t p = 0; p < u->entries[k]->signature.count; p++)
            u->entries[k]->signature.params[p].is_coherent = true;
}

/* Takes the texts. */
static msl_unit *new_unit(const char *name, const msl_extras *extras, char *source, char *whole,
                          err *e) {
    if (!source)
        return NULL;
    msl_unit *u = array_new(1, sizeof *u);
    u->language = extras->language ? extras->language : MSL_LANGUAGE;
    u->whole = whole;
    u->name = text_copy(name, strlen(name));
    u->source = source;
    tokens_cut(&u->tokens, name, source);
    bool ok = tokens_pair(&u->tokens, e);
    if (ok)
        decl_read_all(&u->tokens);
    if (!ok || !constant_read_all(u, e)) {
        msl_free(u);
        return NULL;
    }
    kernel_read_all(u);
    note_coherence(u);
    return u;
}

msl_unit *msl_load_with(const char *path, const msl_extras *extras, err *e) {
    char *whole = NULL, *source = source_load(path, extras, &whole, e);
    return new_unit(path, extras, source, whole, e);
}

msl_unit *msl_from_text_with(const char *name, const char *given, const msl_extras *extras,
                             err *e) {
    char *whole = NULL, *source = source_from_text(name, given, extras, &whole, e);
    return new_unit(name, extras, source, whole, e);
}

msl_unit *msl_from_text(const char *name, const char *given, err *e) {
    return msl_from_text_with(name, given, &(msl_extras){0}, e);
}

void msl_free(msl_unit *u) {
    if (!u)
        return;
    for (size_t i = 0; i < u->kernel_count; i++) {
        free(u->kernels[i].name);
        free(u->kernels[i].problem);
        free(u->kernels[i].params);
    }
    for (size_t i = 0; i < u->entry_count; i++) {
        free(u->entries[i]->address);
        free(u->entries[i]->problem);
        free(u->entries[i]);
    }
    free(u->kernels);
    free(u->entries);
    free(u->constants);
    free(u->dropped);
    tokens_free(&u->tokens);
    free(u->source);
    free(u->whole);
    free(u->name);
    free(u);
}

const char *msl_get_expanded(const msl_unit *u) {
    return u->source;
}

const char *msl_get_name(const msl_unit *u) {
    return u->name;
}

int msl_get_language(const msl_unit *u) {
    return u->language;
}

const char *msl_get_text(const msl_unit *u) {
    return u->whole ? u->whole : u->source;
}

size_t msl_count_kernels(const msl_unit *u) {
    return u->entry_count;
}

const msl_signature *msl_get_kernel(const msl_unit *u, size_t i) {
    assert(i < u->entry_count);
    return &u->entries[i]->signature;
}

size_t msl_count_constants(const msl_unit *u) {
    return u->constant_count;
}

const msl_constant *msl_get_constant(const msl_unit *u, size_t i) {
    assert(i < u->constant_count);
    return &u->constants[i].constant;
}

const char *msl_get_problem(const msl_unit *u, size_t i) {
    assert(i < u->entry_count);
    return u->entries[i]->problem;
}

/* Does a token between two have the line? With #line the lines of a kernel need not be in order. */
static bool has_line(const tokens *t, range r, const char *file, int line) {
    for (at i = r.begin; i < r.end; i++)
        if (t->list[i].line == line && strcmp(token_file(t, i), file) == 0)
            return true;
    return false;
}

bool msl_mark_kernels(const msl_unit *u, const char *file, int line, bool *marks) {
    bool is_found = false;
    for (size_t i = 0; i < u->kernel_count; i++) { /* also a template without instantiation */
        const decl *d = &u->kernels[i].where;
        if (!has_line(&u->tokens, (range){d->begin, d->end}, file, line))
            continue;
        is_found = true;
        for (size_t k = 0; k < u->entry_count; k++)
            marks[k] = marks[k] || u->entries[k]->kernel == i;
    }
    return is_found;
}

bool msl_mark_instantiations(const msl_unit *u, const char *file, int line, bool *marks) {
    bool is_found = false;
    for (size_t i = 0; i < u->entry_count; i++)
        if (has_line(&u->tokens, u->entries[i]->where, file, line))
            is_found = marks[i] = true;
    return is_found;
}

/* Kernels ------------------------------------------------------------------------------------- */

const entry *entry_find(const msl_unit *u, const char *host_name, err *e) {
    for (size_t i = 0; i < u->entry_count; i++) {
        const entry *w = u->entries[i];
        if (strcmp(w->signature.host_name, host_name) != 0)
            continue;
        return w->problem ? err_null(e, EXIT_USAGE, "%s", w->problem) : w;
    }
    if (!u->entry_count)
        return err_null(e, EXIT_USAGE, "there is no kernel %.80s in %.100s, which has none",
                        host_name, u->name);
    text names = {0};
    for (size_t i = 0; i < u->entry_count; i++)
        text_print(&names, "%s%s", i ? ", " : "", u->entries[i]->signature.host_name);
    err_set(e, EXIT_USAGE, "there is no kernel %.60s in %.60s; it has %.100s%s", host_name, u->name,
            names.data, names.used > 100 ? "..." : "");
    err_set_detail(e, names.data);
    free(names.data);
    return NULL;
}

const msl_signature *msl_find_kernel(const msl_unit *u, const char *host_name, err *e) {
    const entry *w = entry_find(u, host_name, e);
    return w ? &w->signature : NULL;
}

bool entry_is_param_on(const msl_unit *u, const entry *w, const msl_param *p,
                       const msl_constant_text *given, size_t count, bool *on, err *e) {
    *on = true;
    if (!p->gate[0])
        return true;
    scope s = {.unit = u, .given = given, .given_count = count};
    int64_t value;
    if (constant_evaluate_name(&s, p->gate, &value)) {
        *on = value != 0;
        return true;
    }
    if (s.missing)
        return err_set(
            e, EXIT_USAGE,
            "kernel %.80s: parameter %.60s needs the function constant %.60s (index %d), "
            "which is not given",
            w->signature.host_name, p->name, s.missing->constant.name, s.missing->constant.index);
    return err_set(e, EXIT_USAGE,
                   "kernel %.80s: parameter %.60s is switched by %.60s, whose value is unknown",
                   w->signature.host_name, p->name, p->gate);
}

/* Two parameters may share an index as long as one of them is always off. */
static bool check_indices(const msl_signature *s, err *e) {
    for (size_t i = 0; i < s->count; i++)
        for (size_t k = 0; k < i; k++)
            if (s->params[i].index >= 0 && s->params[i].kind == s->params[k].kind &&
                s->params[i].index == s->params[k].index)
                return err_set(e, EXIT_USAGE, "kernel %.80s: %.50s and %.50s are both %s %d",
                               s->host_name, s->params[k].name, s->params[i].name,
                               param_spell_kind(s->params[i].kind), s->params[i].index);
    return true;
}

bool msl_specialise(const msl_unit *u, const char *host_name, const msl_constant_text *constants,
                    size_t count, msl_signature *out, err *e) {
    const entry *w = entry_find(u, host_name, e);
    if (!w)
        return false;
    *out = w->signature;
    out->count = 0;
    for (size_t i = 0; i < w->signature.count; i++) {
        bool on;
        if (!entry_is_param_on(u, w, &w->signature.params[i], constants, count, &on, e))
            return false;
        if (on)
            out->params[out->count++] = w->signature.params[i];
    }
    return check_indices(out, e);
}

uint32_t msl_get_alignment(const msl_param *p) {
    char pointee[sizeof p->type];
    uint32_t alignment;
    type_get_pointee(p->type, pointee, sizeof pointee);
    if (type_size(pointee, &alignment) == p->value_bytes && alignment)
        return alignment;
    uint32_t low = p->value_bytes & (0 - p->value_bytes);
    return !low ? 1 : low < 4 ? low : 4;
}

/* Versions of the language -------------------------------------------------------------------- */

const int msl_languages[MSL_LANGUAGES] = {300, 310, 320, 400};

void msl_spell_language(int language, char spelled[MSL_LANGUAGE_TEXT]) {
    snprintf(spelled, MSL_LANGUAGE_TEXT, "%d.%d", language / 100, language / 10 % 10);
}

bool msl_read_language(const char *spelled, int *language, err *e) {
    char known[MSL_LANGUAGE_TEXT];
    for (int i = 0; i < MSL_LANGUAGES; i++) {
        msl_spell_language(msl_languages[i], known);
        *language = msl_languages[i];
        if (strcmp(spelled, known) == 0)
            return true;
    }
    return err_set(e, EXIT_USAGE, "there is no language '%.40s' (valid: 3.0 3.1 3.2 4.0)", spelled);
}

bool msl_ask_language(int *language, err *e) {
    const char *spelled = getenv("ASSAY_LANGUAGE");
    return !spelled || !*spelled || msl_read_language(spelled, language, e);
}
