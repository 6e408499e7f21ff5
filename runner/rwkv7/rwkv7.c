/* rwkv7: see rwkv7.h. What a GGUF file of this architecture says: its shape and its weights, all of it
 * checked so that the rest can rely on it; then the buffers and the state.
 *
 * The ranks of adapters are those of their tensors: files state others, or none. Vectors are
 * counted by their elements, because writers differ in how many dimensions of 1 they keep. */
#include "rwkv7.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/array.h"

enum { MAX_LAYERS = 512, MAX_HEAD_SIZE = 256 };

static const known_key keys[] = {
    {"embedding_length", NULL},
    {"block_count", NULL},
    {"feed_forward_length", NULL},
    {"attention.layer_norm_epsilon", NULL},
    {"wkv.head_size", NULL},
    {"token_shift_count", NULL},
    /* Without effect: the tensors say it, or an RWKV-7 has no such thing. */
    {"context_length", NULL},
    {"vocab_size", NULL},
    {"attention.head_count", NULL},
    {"attention.head_count_kv", NULL},
    {"attention.*_lora_rank", NULL},
    {"attention.layer_norm_rms_epsilon", NULL},
    {"attention.group_norm_epsilon", "0.00064"},
    {"rescale_every_n_layers", "0"},
    {"expert_count", "0"},
    {"expert_*", NULL},
    {NULL, NULL},
};

static bool check_shape(const rwkv7_shape *s, uint32_t shifts, err *e) {
    if (s->layers < 1 || s->layers > MAX_LAYERS)
        return model_refuse_size(e, "block_count", s->layers, "1 to 512 are supported");
    if (s->head_size < 4 || s->head_size % 4 != 0 || s->head_size > MAX_HEAD_SIZE)
        return model_refuse_size(e, "wkv.head_size", s->head_size,
                                 "it must be a multiple of 4, at most 256");
    if (s->hidden == 0 || s->hidden % s->head_size != 0 || s->hidden > INT32_MAX)
        return model_refuse_size(e, "embedding_length", s->hidden, "it must be whole heads");
    if (s->ffn == 0 || s->ffn > INT32_MAX)
        return model_refuse_size(e, "feed_forward_length", s->ffn, "it must be above 0");
    if (!(s->eps > 0) || !isfinite(s->eps))
        return err_set(e, EXIT_USAGE, "attention.layer_norm_epsilon is %g: it must be above 0",
                       (double)s->eps);
    if (shifts != 2)
        return model_refuse_size(e, "token_shift_count", shifts, "it must be 2");
    return true;
}

static bool read_sizes(const gguf *g, rwkv7_shape *out, err *e) {
    rwkv7_shape s = {0};
    uint32_t shifts = 2;
    bool found;
    if (!gguf_get_u32(g, "rwkv7.embedding_length", &s.hidden, NULL, e) ||
        !gguf_get_u32(g, "rwkv7.block_count", &s.layers, NULL, e) ||
        !gguf_get_u32(g, "rwkv7.feed_forward_length", &s.ffn, NULL, e) ||
        !gguf_get_f32(g, "rwkv7.attention.layer_norm_epsilon", &s.eps, NULL, e) ||
        !gguf_get_u32(g, "rwkv7.wkv.head_size", &s.head_size, NULL, e) ||
        !gguf_get_u32(g, "rwkv7.token_shift_count", &shifts, &found, e) ||
        !check_shape(&s, shifts, e) || !model_read_vocab(g, &s.vocab, e))
        return false;
    s.heads = s.hidden / s.head_size;
    *out = s;
    return true;
}

/* --- weights --- */

/* Rows of a matrix of a layer by its elements; 0: there is no such matrix. */
static uint32_t count_rows(const model *m, uint32_t layer, const char *part, uint32_t columns) {
    const gguf_tensor *t = model_find_part(m->file, layer, part, "weight");
    return t && t->elements / columns <= INT32_MAX ? (uint32_t)(t->elements / columns) : 0;
}

static bool find_adapter(model *m, uint32_t layer, rwkv7_adapter which, err *e) {
    static const char letters[ADAPTERS] = {
        [ADAPTER_W] = 'w', [ADAPTER_A] = 'a', [ADAPTER_V] = 'v', [ADAPTER_G] = 'g'};
    rwkv7 *own = m->own;
    adapter *a = &own->weights.layers[layer].time.adapters[which];
    uint32_t d = m->shape.hidden;
    char part[3][16];
    for (int i = 0; i < 3; i++)
        snprintf(part[i], sizeof part[i], "time_mix_%c%d", letters[which], i);
    uint32_t rank = count_rows(m, layer, part[1], d);
    if (rank % 4 != 0)
        return err_set(e, EXIT_USAGE, "blk.%u.%s makes %u values: it must be a multiple of 4",
                       layer, part[1], rank);
    if (rank > own->weights.ranks[which])
        own->weights.ranks[which] = rank;
    const layer_part parts[] = {{part[1], rank, d, &a->down, NULL},
                                {part[2], d, rank, &a->up, NULL},
                                {part[0], 0, d, &a->bias, NULL}};
    return model_find_parts(m, layer, parts, which == ADAPTER_G ? 2 : 3, e);
}

static bool find_layer(model *m, uint32_t layer, err *e) {
    rwkv7 *own = m->own;
    rwkv7_time_mix *t = &own->weights.layers[layer].time;
    rwkv7_channel_mix *c = &own->weights.layers[layer].channel;
    uint32_t d = m->shape.hidden, ffn = own->shape.ffn;
    const layer_part parts[] = {
        {"attn_norm", 0, d, &t->norm_w, &t->norm_b},
        {"time_mix_lerp_fused", 0, MIXES * d, &t->mixes, NULL},
        {"time_mix_receptance", d, d, &t->receptance, NULL},
        {"time_mix_key", d, d, &t->key, NULL},
        {"time_mix_value", d, d, &t->value, NULL},
        {"time_mix_output", d, d, &t->output, NULL},
        {"time_mix_k_k", 0, d, &t->k_k, NULL},
        {"time_mix_k_a", 0, d, &t->k_a, NULL},
        {"time_mix_r_k", 0, d, &t->r_k, NULL},
        {"time_mix_ln", 0, d, &t->group_w, &t->group_b},
        {"attn_norm_2", 0, d, &c->norm_w, &c->norm_b},
        {"channel_mix_lerp_k", 0, d, &c->mix, NULL},
        {"channel_mix_key", ffn, d, &c->key, NULL},
        {"channel_mix_value", d, ffn, &c->value, NULL},
    };
    if (!model_find_parts(m, layer, parts, sizeof parts / sizeof *parts, e))
        return false;
    /* The first layer has no earlier value to mix with: what its file holds there is not used. */
    static const char *const unused[] = {"blk.0.time_mix_v0.weight", "blk.0.time_mix_v1.weight",
                                         "blk.0.time_mix_v2.weight"};
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        model_claim_tensor(m, unused[i]);
    for (int i = 0; i < ADAPTERS; i++)
        if ((layer > 0 || i != ADAPTER_V) && !find_adapter(m, layer, (rwkv7_adapter)i, e))
            return false;
    return true;
}

static bool find_weights(model *m, err *e) {
    rwkv7_weights *w = &((rwkv7 *)m->own)->weights;
    uint32_t d = m->shape.hidden, vocab = m->shape.vocab;
    w->layers = array_new(m->shape.layers, sizeof *w->layers);
    if (!model_find_matrix(m, "token_embd.weight", vocab, d, &w->embedding, e) ||
        !model_find_vector(m, "token_embd_norm.weight", d, &w->embedding_norm_w, e) ||
        !model_find_vector(m, "token_embd_norm.bias", d, &w->embedding_norm_b, e) ||
        !model_find_vector(m, "output_norm.weight", d, &w->norm_w, e) ||
        !model_find_vector(m, "output_norm.bias", d, &w->norm_b, e) ||
        !model_find_matrix(m, "output.weight", vocab, d, &w->head, e))
        return false;
    for (uint32_t i = 0; i < m->shape.layers; i++)
        if (!find_layer(m, i, e))
            return false;
    return true;
}

/* --- buffers --- */

/* Made once, for all layers. */
static bool make_scratch(model *m, rwkv7 *r, err *e) {
    uint32_t d = r->shape.hidden;
    const uint32_t *ranks = r->weights.ranks;
    rwkv7_scratch *a = &r->scratch;
    const scratch_part parts[] = {{"x", d, &a->x},
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
    return model_make_scratch(m, parts, sizeof parts / sizeof *parts, e) &&
           model_make_halves(m, r->shape.ffn > d ? r->shape.ffn : d, e);
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
    rwkv7 *r = m->own = array_new(1, sizeof *r);
    return read_sizes(m->file, &r->shape, e) && find_weights(m, e) && make_scratch(m, r, e) &&
           make_states(m, r, e);
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
    if (!read_sizes(g, &s, e))
        return false;
    *out = (model_shape){
        .family = "rwkv7", .layers = s.layers, .hidden = s.hidden, .vocab = s.vocab, .context = 0};
    snprintf(out->size_name, sizeof out->size_name, "%s", name_size(&s));
    return true;
}

const model_family rwkv7_family = {.name = "rwkv7",
                                   .keys = keys,
                                   .read_shape = read_shape,
                                   .open = open_rwkv7,
                                   .close = close_rwkv7,
                                   .record = rwkv7_record,
                                   .new_reference = rwkv7_reference_new,
                                   .step_reference = rwkv7_reference_step};
