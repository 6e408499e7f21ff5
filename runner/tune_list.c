/* tune_list: what there is to choose; see tune.h. */
#include <stdlib.h>

#include "harness/base/array.h"
#include "kernels/kernels.h"
#include "kernels/record.h"
#include "model.h"
#include "tune.h"
#include "variants.h"

void choice_list_add(choice_list *l, const choice *c) {
    for (size_t i = 0; i < l->count; i++)
        if (choice_compare(&l->items[i], c) == 0)
            return;
    *ARRAY_ADD(l->items, l->count, l->capacity) = *c;
}

void choice_list_free(choice_list *l) {
    free(l->items);
    *l = (choice_list){.items = NULL};
}

/* Kernels alone, then several products in one, then what those may be a part of. */
static int find_rank(const choice *c) {
    return !choice_find_apart(c) ? 0 : c->op == &matvec_batched_op ? 1 : 2;
}

static int compare(const void *a, const void *b) {
    int ranks = find_rank(a) - find_rank(b);
    return ranks ? ranks : choice_compare(a, b);
}

void choice_list_sort(choice_list *l) {
    if (l->count > 0)
        qsort(l->items, l->count, sizeof *l->items, compare);
}

/* Caches of up to 16384 rows, half full. */
static const uint32_t keys[] = {64, 256, 1024, 2048, 4096, 8192};
enum { CONTEXT = 2 * 1024 }; /* of the model that is looked at: its caches are never used */

typedef struct {
    choice_list *list;
    uint32_t context; /* of the model; 0: any */
} listing;

static void observe(void *context, const choice *c) {
    listing *own = context;
    if (c->op != &decode_attention_op) {
        choice_list_add(own->list, c);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (i == 0 || 2 * keys[i] <= own->context) {
            choice deep = *c;
            deep.shape.dim[0] = keys[i];
            choice_list_add(own->list, &deep);
        }
}

static bool record_tapes(library *lib, const gguf *g, const model_options *o,
                         const uint32_t *tokens, size_t count, err *e) {
    model *m = model_new(lib, g, o, e);
    bool ok = m != NULL;
    for (size_t i = 0; ok && i < count; i++)
        if (tokens[i] == 1)
            ok = model_get_token_tape(m, false, e) != NULL;
        else if (!o->context || tokens[i] <= o->context)
            ok = model_prepare(m, tokens[i], false, e);
    model_free(m);
    return ok;
}

bool tune_list_model(library *lib, const gguf *g, const uint32_t *tokens, size_t count,
                     choice_list *out, err *e) {
    model_shape s;
    if (!model_read_shape(g, &s, e))
        return false;
    listing own = {out, s.context};
    bool ok = true;
    for (int apart = 0; ok && apart < 2; apart++) {
        choice_watch watch = {observe, &own, apart == 1};
        model_options o = {.context = s.context < CONTEXT ? s.context : CONTEXT, .watch = &watch};
        ok = record_tapes(lib, g, &o, tokens, count, e);
    }
    return ok;
}
