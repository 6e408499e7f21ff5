/* unit: a parsed file, as the rest of the project holds it. */
#include "internal.h"

#include <assert.h>
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
    if (!tokens_pair(&u->tokens, e) || !constant_read_all(u, e)) {
        msl_free(u);
        return NULL;
    }
    parse_kernels(u);
    note_coherence(u);
    return u;
}

msl_unit *msl_load_with(const char *path, const msl_extras *extras, err *e) {
    char *whole = NULL, *source = source_load(path, extras, &whole, e);
    return new_unit(path, extras, source, whole, e);
}

msl_unit *msl_load(const char *path, err *e) {
    return msl_load_with(path, &(msl_extras){0}, e);
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
    for (size_t i = 0; i < u->entry_count; i++) {
        const decl *d = &u->kernels[u->entries[i]->kernel].where;
        if (has_line(&u->tokens, (range){d->begin, d->end}, file, line))
            is_found = marks[i] = true;
    }
    for (size_t i = 0; i < u->kernel_count && !is_found; i++) /* a template without instantiation */
        is_found = has_line(&u->tokens, (range){u->kernels[i].where.begin, u->kernels[i].where.end},
                            file, line);
    return is_found;
}

bool msl_mark_instantiations(const msl_unit *u, const char *file, int line, bool *marks) {
    bool is_found = false;
    for (size_t i = 0; i < u->entry_count; i++)
        if (has_line(&u->tokens, u->entries[i]->where, file, line))
            is_found = marks[i] = true;
    return is_found;
}
