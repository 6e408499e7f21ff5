/* llama: see llama.h. Owns the buffers and the cache; the file is read in file.c, the forward
 * pass recorded in record.c. */
#include "llama.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "parts.h"

static bool make_scratch(model *m, llama *l, err *e) {
    const llama_shape *s = &l->shape;
    uint32_t q_dim = s->heads * s->head_dim, kv_dim = s->kv_heads * s->head_dim;
    llama_scratch *a = &l->scratch;
    const struct {
        const char *label;
        uint32_t columns;
        slice *at;
    } parts[] = {{"x", s->hidden, &a->x},
                 {"normed", s->hidden, &a->normed},
                 {"q", q_dim, &a->q},
                 {"k", kv_dim, &a->k},
                 {"v", kv_dim, &a->v},
                 {"attention", q_dim, &a->attention},
                 {"gate", s->ffn, &a->gate},
                 {"up", s->ffn, &a->up},
                 {"activated", s->ffn, &a->activated}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!model_make(m, MEMORY_SCRATCH, parts[i].label, m->tile, parts[i].columns, parts[i].at,
                        e))
            return false;
    uint32_t widest = s->hidden > s->ffn ? s->hidden : s->ffn;
    return model_make_halves(m, widest > q_dim ? widest : q_dim, e);
}

static bool make_freqs(model *m, llama *l, err *e) {
    float freqs[LLAMA_MAX_HEAD_DIM / 2];
    bool needed;
    model_claim_tensor(m, "rope_freqs.weight");
    if (!llama_read_freqs(m->file, &l->shape, freqs, &needed, e))
        return false;
    /* On a device the kernels take them from a table in any case: no power to compute. */
    bool used = needed || m->device;
    return (!used || model_make_table(m, "rope freqs", freqs, l->shape.head_dim / 2, &l->freqs, e));
}

static bool make_cache(model *m, llama *l, err *e) {
    uint32_t head_dim = l->shape.head_dim, kv_dim = l->shape.kv_heads * head_dim;
    if (m->cache && head_dim % 32 != 0)
        return err_set(e, EXIT_CANNOT,
                       "a cache in %s needs heads of a multiple of 32 dimensions, and this model's "
                       "have %u",
                       m->cache->name, head_dim);
    l->cache = array_new(l->shape.layers, sizeof *l->cache);
    for (uint32_t i = 0; i < l->shape.layers; i++)
        if (!model_make_cache(m, "key cache", kv_dim, &l->cache[i].keys, e) ||
            !model_make_cache(m, "value cache", kv_dim, &l->cache[i].values, e))
            return false;
    return true;
}

static bool open_llama(model *m, err *e) {
    llama *l = m->own = calloc(1, sizeof *l);
    assert(l);
    return llama_read_sizes(m->file, &l->shape, e) && llama_find_weights(m, e) &&
           make_scratch(m, l, e) && make_freqs(m, l, e) && make_cache(m, l, e);
}

static void close_llama(void *own) {
    llama *l = own;
    if (!l)
        return;
    free(l->cache);
    free(l->weights.layers);
    free(l);
}

/* llama.cpp tells models of this architecture apart by their number of layers. */
static const char *name_size(const llama_shape *s) {
    static const struct {
        uint32_t layers;
        const char *name;
    } known[] = {{16, "1B"},   {22, "1B"},  {26, "3B"},  {28, "3B"},
                 {30, "256M"}, {40, "13B"}, {48, "34B"}, {60, "30B"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].layers == s->layers)
            return known[i].name;
    if (s->layers == 32)
        return s->vocab < 40000 ? "7B" : "8B";
    if (s->layers == 80)
        return s->heads == s->kv_heads ? "65B" : "70B";
    return "";
}

static bool read_shape(const gguf *g, model_shape *out, err *e) {
    llama_shape s;
    if (!llama_read_sizes(g, &s, e))
        return false;
    *out = (model_shape){.family = "llama",
                         .layers = s.layers,
                         .hidden = s.hidden,
                         .vocab = s.vocab,
                         .context = s.context};
    snprintf(out->size_name, sizeof out->size_name, "%s", name_size(&s));
    return true;
}

const model_family llama_family = {.name = "llama",
                                   .keys = llama_keys,
                                   .read_shape = read_shape,
                                   .open = open_llama,
                                   .close = close_llama,
                                   .pick_attention = llama_pick_attention,
                                   .record = llama_record,
                                   .new_reference = llama_reference_new,
                                   .free_reference = llama_reference_free,
                                   .step_reference = llama_reference_step};
