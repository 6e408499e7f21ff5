/* rwkv7: see rwkv7.h. Owns the buffers and the state; the file is read in file.c, the forward
 * pass recorded in record.c. */
#include "rwkv7.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "parts.h"

/* Made once, for all layers. */
static bool make_scratch(model *m, rwkv7 *r, err *e) {
    uint32_t d = r->shape.hidden;
    const uint32_t *ranks = r->weights.ranks;
    rwkv7_scratch *a = &r->scratch;
    const struct {
        const char *label;
        uint32_t columns;
        slice *at;
    } parts[] = {{"x", d, &a->x},
                 {"normed", d, &a->normed},
                 {"mixed", MIXES * d, &a->mixed},
                 {"r", d, &a->r},
                 {"w", d, &a->w},
                 {"k", d, &a->k},
                 {"v", d, &a->v},
                 {"a", d, &a->a},
                 {"g", d, &a->g},
                 {"v gate", d, &a->v_gate},
                 {"v first", d, &a->v_first},
                 {"y", d, &a->y},
                 {"low w", ranks[ADAPTER_W], &a->low[ADAPTER_W]},
                 {"low a", ranks[ADAPTER_A], &a->low[ADAPTER_A]},
                 {"low v", ranks[ADAPTER_V], &a->low[ADAPTER_V]},
                 {"low g", ranks[ADAPTER_G], &a->low[ADAPTER_G]},
                 {"activated", r->shape.ffn, &a->activated}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].columns > 0 && !model_make(m, MEMORY_SCRATCH, parts[i].label, m->tile,
                                                parts[i].columns, parts[i].at, e))
            return false;
    return model_make_halves(m, r->shape.ffn > d ? r->shape.ffn : d, e);
}

static bool make_states(model *m, rwkv7 *r, err *e) {
    const rwkv7_shape *s = &r->shape;
    r->states = array_new(s->layers, sizeof *r->states);
    for (uint32_t i = 0; i < s->layers; i++) {
        rwkv7_state *at = &r->states[i];
        if (!model_make(m, MEMORY_STATE, "time shift", 1, s->hidden, &at->time_shift, e) ||
            !model_make(m, MEMORY_STATE, "channel shift", 1, s->hidden, &at->channel_shift, e) ||
            !model_make(m, MEMORY_STATE, "heads", s->hidden, s->head_size, &at->heads, e))
            return false;
    }
    return true;
}

static bool open_rwkv7(model *m, err *e) {
    rwkv7 *r = m->own = calloc(1, sizeof *r);
    assert(r);
    return rwkv7_read_sizes(m->file, &r->shape, e) && rwkv7_find_weights(m, e) &&
           make_scratch(m, r, e) && make_states(m, r, e);
}

static void close_rwkv7(void *own) {
    rwkv7 *r = own;
    if (!r)
        return;
    free(r->states);
    free(r->weights.layers);
    free(r);
}

/* llama.cpp tells models of this architecture apart by layers and width. */
static const char *name_size(const rwkv7_shape *s) {
    static const struct {
        uint32_t layers, hidden;
        const char *name;
    } known[] = {{12, 768, "0.1B"},
                 {24, 1024, "0.4B"},
                 {24, 2048, "1.5B"},
                 {32, 2560, "2.9B"},
                 {32, 4096, "7.2B"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].layers == s->layers && known[i].hidden == s->hidden)
            return known[i].name;
    return "";
}

/* A recurrence has no longest text, whatever rwkv7.context_length says. */
static bool read_shape(const gguf *g, model_shape *out, err *e) {
    rwkv7_shape s;
    if (!rwkv7_read_sizes(g, &s, e))
        return false;
    *out = (model_shape){
        .family = "rwkv7", .layers = s.layers, .hidden = s.hidden, .vocab = s.vocab, .context = 0};
    snprintf(out->size_name, sizeof out->size_name, "%s", name_size(&s));
    return true;
}

const model_family rwkv7_family = {.name = "rwkv7",
                                   .keys = rwkv7_keys,
                                   .read_shape = read_shape,
                                   .open = open_rwkv7,
                                   .close = close_rwkv7,
                                   .record = rwkv7_record,
                                   .new_reference = rwkv7_reference_new,
                                   .free_reference = rwkv7_reference_free,
                                   .step_reference = rwkv7_reference_step};
