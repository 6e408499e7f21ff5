/* dedupe: removes overloads that only differed by address space.
 *
 * Without address spaces `f(device T *p)` and `f(threadgroup T *p)` are one function, defined
 * twice. The first is kept. Identical text that was written twice is left for the compiler to
 * refuse. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

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
        at name = param_find_name(t, i + 1, end);
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

void dedupe_rewrite(edits *d) {
    dedupe_scope(d, 0, d->unit->tokens.count, false);
}
