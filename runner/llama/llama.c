/* llama: see llama.h. What a GGUF file of this architecture says: its shape, its weights, its rotary
 * frequencies, all of it checked so that the rest can rely on it; then the buffers and the cache. */
#include "llama.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

enum { MAX_LAYERS = 512 };

static const known_key keys[] = {
    {"context_length", NULL},
    {"embedding_length", NULL},
    {"block_count", NULL},
    {"feed_forward_length", NULL},
    {"attention.head_count", NULL},
    {"attention.head_count_kv", NULL},
    {"attention.key_length", NULL},
    {"attention.value_length", NULL},
    {"attention.layer_norm_rms_epsilon", NULL},
    {"attention.scale", NULL},
    {"rope.dimension_count", NULL},
    {"rope.freq_base", NULL},
    {"rope.scale_linear", NULL},
    {"rope.scaling.type", NULL},
    {"rope.scaling.factor", NULL},
    /* Without effect on a llama that is not a mixture of experts and has no YaRN. */
    {"vocab_size", NULL},
    {"tensor_data_layout", NULL},
    {"pooling_type", NULL},
    {"attention.layer_norm_epsilon", NULL},
    {"rope.scaling.original_context_length", NULL},
    {"rope.scaling.finetuned", NULL},
    {"expert_count", "0"},
    {"expert_*", NULL},
    /* Other llamas have these. */
    {"attention.causal", "1"},
    {"attention.sliding_window", "0"},
    {"attention.clamp_kqv", "0"},
    {"attention.max_alibi_bias", "0"},
    {"attention.temperature_scale", "0"},
    {"attention.output_scale", "0 1"},
    {"attention.value_scale", "0 1"},
    {"attn_logit_softcapping", "0"},
    {"final_logit_softcapping", "0"},
    {"logit_scale", "0 1"},
    {"residual_scale", "0 1"},
    {"embedding_scale", "0 1"},
    {"rope.scaling.attn_factor", "1"},
    {"rope.scaling.alpha", "0"},
    {"rope.scaling.yarn_log_multiplier", "0"},
    {"nextn_predict_layers", "0"},
    {"use_parallel_residual", "0"},
    {NULL, NULL},
};

/* A count that may be given once or for each layer; it must be the same for all. */
static bool read_count(const gguf *g, const char *key, uint32_t *out, bool *found, err *e) {
    const gguf_value *v = gguf_find_value(g, key);
    if (!v || v->type != GGUF_ARRAY)
        return gguf_get_u32(g, key, out, found, e);
    if ((v->element != GGUF_U32 && v->element != GGUF_I32) || v->count == 0)
        return err_set(e, EXIT_USAGE, "%s is not a list of numbers", key);
    for (size_t i = 0; i < v->count; i++)
        if (gguf_value_get_integer(v, i) != gguf_value_get_integer(v, 0))
            return err_set(e, EXIT_USAGE, "%s differs from layer to layer, which is not supported",
                           key);
    *out = (uint32_t)gguf_value_get_integer(v, 0);
    if (found)
        *found = true;
    return true;
}

static bool check_shape(const llama_shape *s, err *e) {
    if (s->layers < 1 || s->layers > MAX_LAYERS)
        return model_refuse_size(e, "block_count", s->layers, "1 to 512 are supported");
    if (s->hidden == 0)
        return model_refuse_size(e, "embedding_length", s->hidden, "it must be above 0");
    if (s->ffn == 0)
        return model_refuse_size(e, "feed_forward_length", s->ffn, "it must be above 0");
    if (s->context == 0)
        return model_refuse_size(e, "context_length", s->context, "it must be above 0");
    if (s->heads == 0 || s->kv_heads == 0 || s->heads % s->kv_heads != 0)
        return err_set(
            e, EXIT_USAGE,
            "the model has %u heads and %u key heads: the first must be a multiple of the "
            "second",
            s->heads, s->kv_heads);
    if (s->head_dim == 0 || s->head_dim % 2 != 0 || s->head_dim > LLAMA_MAX_HEAD_DIM)
        return model_refuse_size(e, "head size", s->head_dim, "it must be even and at most 256");
    if ((uint64_t)s->heads * s->head_dim > INT32_MAX || s->hidden > INT32_MAX || s->ffn > INT32_MAX)
        return err_set(e, EXIT_USAGE, "the model's sizes overflow a 32-bit index");
    if (!(s->eps > 0) || !isfinite(s->eps))
        return err_set(e, EXIT_USAGE, "layer_norm_rms_epsilon is %g: it must be above 0",
                       (double)s->eps);
    if (!(s->rope_base > 0) || !isfinite(s->rope_base))
        return err_set(e, EXIT_USAGE, "rope.freq_base is %g: it must be above 0",
                       (double)s->rope_base);
    return true;
}

/* What follows from the other sizes, if it is stated too. */
static bool check_stated(const gguf *g, const llama_shape *s, err *e) {
    uint32_t rope_dim = s->head_dim, value_length = s->head_dim;
    float plain = 1 / sqrtf((float)s->head_dim), scale = plain;
    bool found;
    if (!gguf_get_u32(g, "llama.rope.dimension_count", &rope_dim, &found, e) ||
        !gguf_get_u32(g, "llama.attention.value_length", &value_length, &found, e) ||
        !gguf_get_f32(g, "llama.attention.scale", &scale, &found, e))
        return false;
    if (rope_dim != s->head_dim)
        return model_refuse_size(e, "rope.dimension_count", rope_dim, "it must be the head size");
    if (value_length != s->head_dim)
        return model_refuse_size(e, "attention.value_length", value_length,
                                 "it must be the length of the keys");
    return fabsf(scale - plain) <= 1e-6f * plain ||
           err_set(e, EXIT_USAGE, "llama.attention.scale is %g: it must be 1/sqrt(%u), %g",
                   (double)scale, s->head_dim, (double)plain);
}

bool llama_read_sizes(const gguf *g, llama_shape *out, err *e) {
    llama_shape s = {.rope_base = 10000};
    bool found;
    if (!gguf_get_u32(g, "llama.context_length", &s.context, NULL, e) ||
        !gguf_get_u32(g, "llama.embedding_length", &s.hidden, NULL, e) ||
        !gguf_get_u32(g, "llama.block_count", &s.layers, NULL, e) ||
        !read_count(g, "llama.feed_forward_length", &s.ffn, NULL, e) ||
        !read_count(g, "llama.attention.head_count", &s.heads, NULL, e) ||
        !gguf_get_f32(g, "llama.attention.layer_norm_rms_epsilon", &s.eps, NULL, e) ||
        !gguf_get_f32(g, "llama.rope.freq_base", &s.rope_base, &found, e))
        return false;
    s.kv_heads = s.heads;
    s.head_dim = s.heads ? s.hidden / s.heads : 0;
    if (!read_count(g, "llama.attention.head_count_kv", &s.kv_heads, &found, e) ||
        !gguf_get_u32(g, "llama.attention.key_length", &s.head_dim, &found, e) ||
        !check_shape(&s, e) || !check_stated(g, &s, e) || !model_read_vocab(g, &s.vocab, e))
        return false;
    s.tied = !gguf_find_tensor(g, "output.weight");
    *out = s;
    return true;
}

/* --- rotary frequencies --- */

static bool read_scale(const gguf *g, float *scale, err *e) {
    gguf_text type = {"linear", 6};
    float factor = 0;
    char text[40];
    bool found;
    if (!gguf_get_text(g, "llama.rope.scaling.type", &type, &found, e) ||
        !gguf_get_f32(g, "llama.rope.scale_linear", &factor, &found, e) ||
        !gguf_get_f32(g, "llama.rope.scaling.factor", &factor, &found, e))
        return false;
    bool is_linear = gguf_text_equals(type, "linear");
    *scale = 1;
    if (!is_linear && !gguf_text_equals(type, "none"))
        return err_set(e, EXIT_USAGE,
                       "rope scaling '%s' is not supported (supported: none, linear)",
                       gguf_print_text(type, text, sizeof text));
    if (!is_linear || factor == 0)
        return true;
    if (!(factor > 0) || !isfinite(factor))
        return err_set(e, EXIT_USAGE, "rope.scaling.factor is %g: it must be above 0",
                       (double)factor);
    *scale = 1 / factor;
    return true;
}

bool llama_read_freqs(const gguf *g, const llama_shape *s, float *freqs, bool *needed, err *e) {
    float scale, factor = 1;
    if (!read_scale(g, &scale, e))
        return false;
    const gguf_tensor *factors = gguf_find_tensor(g, "rope_freqs.weight");
    if (factors && (factors->type->format != &format_f32 || factors->elements != s->head_dim / 2))
        return err_set(e, EXIT_USAGE, "rope_freqs.weight is not %u floats", s->head_dim / 2);
    *needed = factors || scale != 1;
    for (uint32_t i = 0; i < s->head_dim / 2; i++) {
        if (factors)
            memcpy(&factor, (const char *)factors->data + i * sizeof factor, sizeof factor);
        if (!(factor > 0))
            return err_set(e, EXIT_USAGE, "rope_freqs.weight has %g, which is not above 0",
                           (double)factor);
        freqs[i] = (float)(pow(s->rope_base, -2.0 * i / s->head_dim) * scale / factor);
    }
    return true;
}

/* --- weights --- */

/* Queries, keys and values in one tensor: rows of the three, one after the other. */
static bool find_fused(model *m, uint32_t layer, uint32_t q_dim, uint32_t kv_dim, err *e) {
    llama_layer *l = &((llama *)m->own)->weights.layers[layer];
    weight all, bias = {0};
    layer_part part = {"attn_qkv", q_dim + 2 * kv_dim, m->shape.hidden, &all, &bias};
    if (!model_find_parts(m, layer, &part, 1, e))
        return false;
    l->q = weight_take_rows(&all, 0, q_dim);
    l->k = weight_take_rows(&all, q_dim, kv_dim);
    l->v = weight_take_rows(&all, q_dim + kv_dim, kv_dim);
    if (bias.format) {
        l->q_bias = weight_take_values(&bias, 0, q_dim);
        l->k_bias = weight_take_values(&bias, q_dim, kv_dim);
        l->v_bias = weight_take_values(&bias, q_dim + kv_dim, kv_dim);
    }
    return true;
}

static bool find_norm(model *m, uint32_t layer, const char *part, weight *out, err *e) {
    char name[GGUF_NAME_BYTES];
    model_name_tensor(name, layer, part, "weight");
    return model_find_floats(m, name, m->shape.hidden, out, e);
}

static bool find_layer(model *m, uint32_t layer, err *e) {
    llama *own = m->own;
    const llama_shape *s = &own->shape;
    llama_layer *l = &own->weights.layers[layer];
    uint32_t q_dim = s->heads * s->head_dim, kv_dim = s->kv_heads * s->head_dim;
    const layer_part parts[] = {
        {"attn_output", s->hidden, q_dim, &l->attn_output, &l->attn_output_bias},
        {"ffn_gate", s->ffn, s->hidden, &l->gate, &l->gate_bias},
        {"ffn_up", s->ffn, s->hidden, &l->up, &l->up_bias},
        {"ffn_down", s->hidden, s->ffn, &l->down, &l->down_bias},
        {"attn_q", q_dim, s->hidden, &l->q, &l->q_bias},
        {"attn_k", kv_dim, s->hidden, &l->k, &l->k_bias},
        {"attn_v", kv_dim, s->hidden, &l->v, &l->v_bias},
    };
    bool is_fused = model_find_part(m->file, layer, "attn_qkv", "weight") != NULL;
    if (!find_norm(m, layer, "attn_norm", &l->attn_norm, e) ||
        !find_norm(m, layer, "ffn_norm", &l->ffn_norm, e))
        return false;
    if (is_fused && !find_fused(m, layer, q_dim, kv_dim, e))
        return false;
    return model_find_parts(m, layer, parts, is_fused ? 4 : sizeof parts / sizeof *parts, e);
}

static bool find_weights(model *m, err *e) {
    llama *own = m->own;
    const llama_shape *s = &own->shape;
    llama_weights *w = &own->weights;
    w->layers = array_new(s->layers, sizeof *w->layers);
    if (!model_find_matrix(m, "token_embd.weight", s->vocab, s->hidden, &w->embedding, e) ||
        !model_find_floats(m, "output_norm.weight", s->hidden, &w->norm, e))
        return false;
    w->head = w->embedding;
    if (!s->tied && !model_find_matrix(m, "output.weight", s->vocab, s->hidden, &w->head, e))
        return false;
    for (uint32_t i = 0; i < s->layers; i++)
        if (!find_layer(m, i, e))
            return false;
    return true;
}

/* --- buffers --- */

static bool make_scratch(model *m, llama *l, err *e) {
    const llama_shape *s = &l->shape;
    uint32_t q_dim = s->heads * s->head_dim, kv_dim = s->kv_heads * s->head_dim;
    llama_scratch *a = &l->scratch;
    const scratch_part parts[] = {{"x", s->hidden, &a->x},
                                  {"normed", s->hidden, &a->normed},
                                  {"q", q_dim, &a->q},
                                  {"k", kv_dim, &a->k},
                                  {"v", kv_dim, &a->v},
                                  {"attention", q_dim, &a->attention},
                                  {"gate", s->ffn, &a->gate},
                                  {"up", s->ffn, &a->up},
                                  {"activated", s->ffn, &a->activated}};
    uint32_t widest = s->hidden > s->ffn ? s->hidden : s->ffn;
    return model_make_scratch(m, parts, sizeof parts / sizeof *parts, e) &&
           model_make_halves(m, widest > q_dim ? widest : q_dim, e);
}

static bool make_freqs(model *m, llama *l, err *e) {
    float freqs[LLAMA_MAX_HEAD_DIM / 2];
    bool needed;
    model_claim_tensor(m, "rope_freqs.weight");
    if (!llama_read_freqs(m->file, &l->shape, freqs, &needed, e))
        return false;
    /* A table in any case: there is no power to compute then. */
    return model_make_table(m, "rope freqs", freqs, l->shape.head_dim / 2, &l->freqs, e);
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
    llama *l = m->own = array_new(1, sizeof *l);
    return llama_read_sizes(m->file, &l->shape, e) && find_weights(m, e) && make_scratch(m, l, e) &&
           make_freqs(m, l, e) && make_cache(m, l, e);
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
                                   .keys = keys,
                                   .read_shape = read_shape,
                                   .open = open_llama,
                                   .close = close_llama,
                                   .pick_attention = llama_pick_attention,
                                   .record = llama_record,
                                   .new_reference = llama_reference_new,
                                   .step_reference = llama_reference_step};
