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
    bool *seen;     /* declarations that were reached */
    uint32_t *todo; /* those whose texts are still to be followed */
} index_of_names;

static void add_name(index_of_names *x, at name) {
    if (name == NOT_FOUND)
        return;
    *ARRAY_ADD(x->names, x->name_count, x->name_room) =
        (named){token_hash(&x->unit->tokens, name, 0), (uint32_t)x->decl_count};
}

/* Does an attribute make something else call or keep it? Such code is refused later, not hidden. */
static bool has_caller(const tokens *t, const decl *d) {
    return tokens_have(t, d->begin, d->body == NOT_FOUND ? d->end : d->body,
                       "constructor destructor section used retain __constructor__ "
                       "__destructor__ __section__ __used__ __retain__");
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
    for (size_t i = 0; i < u->dropped_count; i++)
        if (d->begin >= u->dropped[i].begin && d->begin < u->dropped[i].end)
            return false;
    if (name_of_function_type(t, d) != NOT_FOUND)
        return false;
    /* numeric_limits of a type is Metal's, and asks for the last one. */
    return d->kind == DECL_OTHER || d->name == NOT_FOUND || has_caller(t, d) ||
           token_is_one_of(t, d->name,
                           "operator begin end get final class union struct _numeric_limits_impl");
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
static void reach(const index_of_names *x, uint64_t hash, size_t *count) {
    size_t low = 0, high = x->name_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (x->names[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < x->name_count && x->names[low].hash == hash; low++)
        if (!x->seen[x->names[low].decl]) {
            x->seen[x->names[low].decl] = true;
            x->todo[(*count)++] = x->names[low].decl;
        }
}

/* False when visit said that it has seen enough. */
static bool follow(const index_of_names *x, range from, reach_visitor *visit, void *context) {
    const tokens *t = &x->unit->tokens;
    size_t left = 0;
    for (;;) {
        for (at i = from.begin; i < from.end; i++) {
            if (t->list[i].kind != TOKEN_WORD)
                continue;
            if (visit && !visit(context, i))
                return false;
            reach(x, token_hash(t, i, 0), &left);
        }
        if (!left)
            return true;
        from = x->decls[x->todo[--left]].where;
    }
}

/* Follows what the entry is: its kernel's text and its instantiation. The caller frees the index. */
static index_of_names follow_entry(const msl_unit *u, const entry *which, reach_visitor *visit,
                                   void *context) {
    index_of_names x = {.unit = u};
    const decl *own = &u->kernels[which->kernel].where;
    decl_visit(&u->tokens, visit_names, &x);
    if (x.name_count > 0)
        qsort(x.names, x.name_count, sizeof *x.names, compare_names);
    x.seen = array_new(x.decl_count + 1, sizeof *x.seen);
    x.todo = array_new(x.decl_count + 1, sizeof *x.todo);
    if (follow(&x, (range){own->begin, own->end}, visit, context))
        follow(&x, which->where, visit, context);
    return x;
}

static void free_index(index_of_names *x) {
    free(x->seen);
    free(x->todo);
    free(x->names);
    free(x->decls);
}

void reach_visit(const msl_unit *u, const entry *which, reach_visitor *visit, void *context) {
    index_of_names x = follow_entry(u, which, visit, context);
    free_index(&x);
}

void reach_drop_others(edits *d, const entry *which) {
    index_of_names x = follow_entry(d->unit, which, NULL, NULL);
    for (size_t i = 0; i < x.decl_count; i++)
        if (x.decls[i].is_always) {
            x.seen[i] = true;
            follow(&x, x.decls[i].where, NULL, NULL);
        }
    for (size_t i = 0; i < x.decl_count; i++)
        if (!x.seen[i] && x.decls[i].where.begin != d->unit->kernels[which->kernel].where.begin)
            edits_drop(d, x.decls[i].where.begin, x.decls[i].where.end);
    free_index(&x);
}

/* Questions about a kernel -------------------------------------------------------------------- */

typedef struct {
    const msl_unit *unit;
    const char *words;
    bool is_found;
} word_search;

static bool visit_word(void *context, at word) {
    word_search *s = context;
    s->is_found = token_is_one_of(&s->unit->tokens, word, s->words);
    return !s->is_found;
}

static bool reaches_word(const msl_unit *u, const char *host_name, const char *words) {
    word_search s = {.unit = u, .words = words};
    const entry *w = entry_find(u, host_name, NULL);
    if (w)
        reach_visit(u, w, visit_word, &s);
    return s.is_found;
}

bool msl_uses_simdgroups(const msl_unit *u, const char *host_name) {
    return reaches_word(u, host_name,
                        "simd_* simdgroup_* thread_index_in_simdgroup simdgroups_per_threadgroup "
                        "dispatch_simdgroups_per_threadgroup threads_per_simdgroup "
                        "thread_execution_width");
}

bool msl_uses_matrices(const msl_unit *u, const char *host_name) {
    return reaches_word(u, host_name,
                        "simdgroup_matrix simdgroup_float8x8 simdgroup_half8x8 "
                        "simdgroup_bfloat8x8 simdgroup_multiply simdgroup_multiply_accumulate");
}

bool msl_uses_elements(const msl_unit *u, const char *host_name) {
    return reaches_word(u, host_name, "thread_elements");
}

/* Function constants: one that is used and not given has an undefined value on a GPU, which is hard to
 * debug, so it is an error here. ------------------------------------------------------------- */

typedef struct {
    const msl_unit *unit;
    const msl_constant_text *given;
    size_t count;
    const function_constant *unset;
} constant_search;

static bool visit_constant(void *context, at word) {
    constant_search *s = context;
    const function_constant *c = constant_find(s->unit, word);
    if (c && !c->optional && word + 1 != c->attribute && !constant_get_text(c, s->given, s->count))
        s->unset = c;
    return s->unset == NULL;
}

bool msl_check_constants(const msl_unit *u, const char *host_name,
                         const msl_constant_text *constants, size_t count, err *e) {
    const entry *w = entry_find(u, host_name, e);
    constant_search s = {.unit = u, .given = constants, .count = count};
    bool has_unset = false;
    for (size_t i = 0; i < u->constant_count; i++)
        has_unset = has_unset || (!u->constants[i].optional &&
                                  !constant_get_text(&u->constants[i], constants, count));
    if (w && has_unset)
        reach_visit(u, w, visit_constant, &s);
    if (!s.unset)
        return w != NULL;
    const msl_constant *c = &s.unset->constant;
    return err_set(
        e, EXIT_USAGE,
        "kernel %.80s uses the function constant %.60s (%.30s, index %d), which is not given",
        host_name, c->name, c->type, c->index);
}
