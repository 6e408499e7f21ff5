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
    const msl_unit *unit;
    named *names;
    size_t name_count, name_room;
    bool *seen;     /* declarations of the file that were reached */
    uint32_t *todo; /* those whose texts are still to be followed */
    at *words;      /* that were reached, in their order */
    size_t word_count, word_room;
} index_of_names;

static void add_name(index_of_names *x, at name, size_t number) {
    if (name != NOT_FOUND)
        *ARRAY_ADD(x->names, x->name_count, x->name_room) =
            (named){token_hash(&x->unit->tokens, name, 0), (uint32_t)number};
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
    return d->kind == DECL_OTHER || d->name == NOT_FOUND ||
           token_is_one_of(t, d->name,
                           "operator begin end get final class union struct _numeric_limits_impl");
}

static void add_names(index_of_names *x, size_t i) {
    const tokens *t = &x->unit->tokens;
    const decl *d = &t->decls[i];
    add_name(x, d->name, i);
    add_name(x, name_of_function_type(t, d), i);
    for (at k = tokens_end_item(t, d->begin, d->end) + 1; d->kind == DECL_OTHER && k < d->end;
         k = tokens_end_item(t, k, d->end) + 1)
        if (t->list[k].kind == TOKEN_WORD)
            add_name(x, k, i);
    for (at k = d->kind == DECL_CLASS ? t->list[d->body].pair : d->end; k < d->end; k++)
        if (t->list[k].kind == TOKEN_WORD)
            add_name(x, k, i); /* of variables that are declared with their class */
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

static void follow(index_of_names *x, at begin, at end) {
    const tokens *t = &x->unit->tokens;
    size_t left = 0;
    for (;;) {
        for (at i = begin; i < end; i++) {
            if (t->list[i].kind != TOKEN_WORD)
                continue;
            *ARRAY_ADD(x->words, x->word_count, x->word_room) = i;
            reach(x, token_hash(t, i, 0), &left);
        }
        if (!left)
            return;
        const decl *next = &t->decls[x->todo[--left]];
        begin = next->begin;
        end = next->end;
    }
}

/* Follows what the entry is: its kernel's text and its instantiation. The caller frees the index. */
static index_of_names follow_entry(const msl_unit *u, const entry *which) {
    index_of_names x = {.unit = u};
    const decl *own = &u->kernels[which->kernel].where;
    const size_t count = u->tokens.decl_count;
    for (size_t i = 0; i < count; i++)
        add_names(&x, i);
    if (x.name_count > 0)
        qsort(x.names, x.name_count, sizeof *x.names, compare_names);
    x.seen = array_new(count + 1, sizeof *x.seen);
    x.todo = array_new(count + 1, sizeof *x.todo);
    follow(&x, own->begin, own->end);
    follow(&x, which->where.begin, which->where.end);
    return x;
}

static void free_index(index_of_names *x) {
    free(x->seen);
    free(x->todo);
    free(x->names);
    free(x->words);
}

void reach_drop_others(edits *d, const entry *which) {
    const msl_unit *u = d->unit;
    const tokens *t = &u->tokens;
    index_of_names x = follow_entry(u, which);
    for (size_t i = 0; i < t->decl_count; i++)
        if (is_used_unnamed(u, &t->decls[i])) {
            x.seen[i] = true;
            follow(&x, t->decls[i].begin, t->decls[i].end);
        }
    for (size_t i = 0; i < t->decl_count; i++)
        if (!x.seen[i] && t->decls[i].begin != u->kernels[which->kernel].where.begin)
            edits_drop(d, t->decls[i].begin, t->decls[i].end);
    free_index(&x);
}

/* Questions about a kernel -------------------------------------------------------------------- */

static bool reaches_word(const msl_unit *u, const char *host_name, const char *words) {
    const entry *w = entry_find(u, host_name, NULL);
    bool is_found = false;
    if (!w)
        return false;
    index_of_names x = follow_entry(u, w);
    for (size_t i = 0; i < x.word_count && !is_found; i++)
        is_found = token_is_one_of(&u->tokens, x.words[i], words);
    free_index(&x);
    return is_found;
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

bool msl_check_constants(const msl_unit *u, const char *host_name,
                         const msl_constant_text *constants, size_t count, err *e) {
    const entry *w = entry_find(u, host_name, e);
    const function_constant *unset = NULL;
    if (!w || !u->constant_count)
        return w != NULL;
    index_of_names x = follow_entry(u, w);
    for (size_t i = 0; i < x.word_count && !unset; i++) {
        const function_constant *c = constant_find(u, x.words[i]);
        if (c && !c->optional && x.words[i] + 1 != c->attribute &&
            !constant_get_text(c, constants, count))
            unset = c;
    }
    free_index(&x);
    return !unset ||
           err_set(e, EXIT_USAGE,
                   "kernel %.80s uses the function constant %.60s (%.30s, index %d), "
                   "which is not given",
                   host_name, unset->constant.name, unset->constant.type, unset->constant.index);
}
