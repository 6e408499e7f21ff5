/* reach: what a kernel's text reaches: the names in it are followed through the declarations of the
 * file, which may reach too much but never too little of plain functions. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* A name that a declaration gives, as a hash. */
typedef struct {
    uint64_t hash;
    uint32_t decl;
} named;

typedef struct {
    range where;
    bool is_always; /* nothing needs to name it */
} reached;

typedef struct {
    const msl_unit *unit;
    reached *decls;
    size_t decl_count, decl_room;
    named *names;
    size_t name_count, name_room;
} index_of_names;

static void add_name(index_of_names *x, at name) {
    if (name == NOT_FOUND)
        return;
    *ARRAY_ADD(x->names, x->name_count, x->name_room) =
        (named){token_hash(&x->unit->tokens, name, 0), (uint32_t)x->decl_count};
}

/* Does an attribute make something else call or keep it? Such code is refused later, not hidden. */
static bool has_caller(const tokens *t, const decl *d) {
    static const char *const words[] = {
        "constructor",    "destructor",  "section",  "used",       "retain", "__constructor__",
        "__destructor__", "__section__", "__used__", "__retain__", NULL};
    at end = d->body == NOT_FOUND ? d->end : d->body;
    for (at i = d->begin; i < end; i++)
        if (t->list[i].kind == TOKEN_WORD && token_is_one_of(t, i, words))
            return true;
    return false;
}

/* The name in `typedef decltype(kernel<half>) kernel_t;`: the type of a kernel, which instantiations
 * of that kernel name. Nothing else needs it, so it must not keep the kernel. */
static at name_of_function_type(const tokens *t, const decl *d) {
    at open = d->begin + 2;
    if (d->kind != DECL_OTHER || open >= d->end || !token_is(t, d->begin, "typedef") ||
        !token_is(t, d->begin + 1, "decltype") || t->list[open].pair == NOT_FOUND)
        return NOT_FOUND;
    at name = t->list[open].pair + 1;
    return name + 1 < d->end && token_is(t, name + 1, ";") ? name : NOT_FOUND;
}

/* Is it used without being named? Variables, aliases and assertions count as such, and what the
 * language itself calls. */
static bool is_used_unnamed(const msl_unit *u, const decl *d) {
    const tokens *t = &u->tokens;
    /* numeric_limits of a type is Metal's, and asks for the last one. */
    static const char *const words[] = {"operator", "begin",  "end",
                                        "get",      "final",  "class",
                                        "union",    "struct", "_numeric_limits_impl",
                                        NULL};
    for (size_t i = 0; i < u->dropped_count; i++)
        if (d->begin >= u->dropped[i].begin && d->begin < u->dropped[i].end)
            return false;
    if (name_of_function_type(t, d) != NOT_FOUND)
        return false;
    return d->kind == DECL_OTHER || d->name == NOT_FOUND || token_is_one_of(t, d->name, words) ||
           has_caller(t, d);
}

static bool visit_names(void *context, const decl *d, const char *prefix) {
    (void)prefix;
    index_of_names *x = context;
    const tokens *t = &x->unit->tokens;
    add_name(x, d->name);
    add_name(x, name_of_function_type(t, d));
    for (at i = tokens_end_item(t, d->begin, d->end) + 1; d->kind == DECL_OTHER && i < d->end;
         i = tokens_end_item(t, i, d->end) + 1)
        if (t->list[i].kind == TOKEN_WORD)
            add_name(x, i);
    for (at i = d->kind == DECL_CLASS ? t->list[d->body].pair : d->end; i < d->end; i++)
        if (t->list[i].kind == TOKEN_WORD)
            add_name(x, i); /* of variables that are declared with their class */
    *ARRAY_ADD(x->decls, x->decl_count, x->decl_room) =
        (reached){{d->begin, d->end}, is_used_unnamed(x->unit, d)};
    return true;
}

static int compare_names(const void *a, const void *b) {
    uint64_t x = ((const named *)a)->hash, y = ((const named *)b)->hash;
    return x < y ? -1 : x > y;
}

/* Adds the declarations of a word to those to look at. */
static void reach(const index_of_names *x, uint64_t hash, bool *seen, uint32_t *todo,
                  size_t *count) {
    size_t low = 0, high = x->name_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (x->names[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < x->name_count && x->names[low].hash == hash; low++)
        if (!seen[x->names[low].decl]) {
            seen[x->names[low].decl] = true;
            todo[(*count)++] = x->names[low].decl;
        }
}

/* False when visit said that it has seen enough. */
static bool follow(const index_of_names *x, range from, bool *seen, uint32_t *todo,
                   reach_visitor *visit, void *context) {
    const tokens *t = &x->unit->tokens;
    size_t left = 0;
    for (;;) {
        for (at i = from.begin; i < from.end; i++) {
            if (t->list[i].kind != TOKEN_WORD)
                continue;
            if (!visit(context, i))
                return false;
            reach(x, token_hash(t, i, 0), seen, todo, &left);
        }
        if (!left)
            return true;
        from = x->decls[todo[--left]].where;
    }
}

static index_of_names index_names(const msl_unit *u) {
    index_of_names x = {.unit = u};
    decl_visit(&u->tokens, visit_names, &x);
    if (x.name_count > 0)
        qsort(x.names, x.name_count, sizeof *x.names, compare_names);
    return x;
}

void reach_visit(const msl_unit *u, const entry *which, reach_visitor *visit, void *context) {
    index_of_names x = index_names(u);
    bool *seen = array_new(x.decl_count + 1, sizeof *seen);
    uint32_t *todo = array_new(x.decl_count + 1, sizeof *todo);
    const decl *own = &u->kernels[which->kernel].where;
    if (follow(&x, (range){own->begin, own->end}, seen, todo, visit, context))
        follow(&x, which->where, seen, todo, visit, context);
    free(seen);
    free(todo);
    free(x.names);
    free(x.decls);
}

static bool go_on(void *context, at word) {
    (void)context;
    (void)word;
    return true;
}

void reach_drop_others(edits *d, const entry *which) {
    const msl_unit *u = d->unit;
    index_of_names x = index_names(u);
    bool *seen = array_new(x.decl_count + 1, sizeof *seen);
    uint32_t *todo = array_new(x.decl_count + 1, sizeof *todo);
    const decl *own = &u->kernels[which->kernel].where;
    follow(&x, (range){own->begin, own->end}, seen, todo, go_on, NULL);
    follow(&x, which->where, seen, todo, go_on, NULL);
    for (size_t i = 0; i < x.decl_count; i++)
        if (x.decls[i].is_always) {
            seen[i] = true;
            follow(&x, x.decls[i].where, seen, todo, go_on, NULL);
        }
    for (size_t i = 0; i < x.decl_count; i++)
        if (!seen[i] && x.decls[i].where.begin != own->begin)
            edits_drop(d, x.decls[i].where.begin, x.decls[i].where.end);
    free(seen);
    free(todo);
    free(x.names);
    free(x.decls);
}

/* Words ----------------------------------------------------------------------------------------- */

typedef struct {
    const tokens *tokens;
    const char *const *words;
    bool is_found;
} word_search;

static bool visit_word(void *context, at word) {
    word_search *s = context;
    const token *t = &s->tokens->list[word];
    const char *spelled = token_text(s->tokens, word);
    for (const char *const *w = s->words; *w && !s->is_found; w++) {
        size_t length = strcspn(*w, "*");
        s->is_found = ((*w)[length] ? t->bytes > length : t->bytes == length) &&
                      strncmp(spelled, *w, length) == 0;
    }
    return !s->is_found;
}

/* A word that ends in * is the beginning of longer ones. */
static bool reaches_word(const msl_unit *u, const char *host_name, const char *const *words) {
    word_search s = {.tokens = &u->tokens, .words = words};
    const entry *w = entry_find(u, host_name, NULL);
    if (w)
        reach_visit(u, w, visit_word, &s);
    return s.is_found;
}

bool msl_uses_simdgroups(const msl_unit *u, const char *host_name) {
    static const char *const words[] = {"simd_*",
                                        "simdgroup_*",
                                        "thread_index_in_simdgroup",
                                        "simdgroups_per_threadgroup",
                                        "dispatch_simdgroups_per_threadgroup",
                                        "threads_per_simdgroup",
                                        "thread_execution_width",
                                        NULL};
    return reaches_word(u, host_name, words);
}

bool msl_uses_matrices(const msl_unit *u, const char *host_name) {
    static const char *const words[] = {"simdgroup_matrix",
                                        "simdgroup_float8x8",
                                        "simdgroup_half8x8",
                                        "simdgroup_bfloat8x8",
                                        "simdgroup_multiply",
                                        "simdgroup_multiply_accumulate",
                                        NULL};
    return reaches_word(u, host_name, words);
}

bool msl_uses_elements(const msl_unit *u, const char *host_name) {
    static const char *const words[] = {"thread_elements", NULL};
    return reaches_word(u, host_name, words);
}
