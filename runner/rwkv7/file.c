/* rwkv7/file: what a GGUF file of the rwkv7 architecture says: its shape and its weights.
 * Everything is checked here, so that the rest can rely on it; nothing runs here.
 *
 * The ranks of adapters are those of their tensors: files state others, or none. Vectors are
 * counted by their elements, because writers differ in how many dimensions of 1 they keep. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "parts.h"
#include "reference/reference.h"

enum { MAX_LAYERS = 512, MAX_HEAD_SIZE = 256 };

const known_key rwkv7_keys[] = {
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

static bool refuse(err *e, const char *what, uint32_t value, const char *why) {
    return err_set(e, EXIT_USAGE, "the model's %s is %u: %s", what, value, why);
}

static bool check_shape(const rwkv7_shape *s, uint32_t shifts, err *e) {
    if (s->layers < 1 || s->layers > MAX_LAYERS)
        return refuse(e, "block_count", s->layers, "1 to 512 are supported");
    if (s->head_size < 4 || s->head_size % 4 != 0 || s->head_size > MAX_HEAD_SIZE)
        return refuse(e, "wkv.head_size", s->head_size, "it must be a multiple of 4, at most 256");
    if (s->hidden == 0 || s->hidden % s->head_size != 0 || s->hidden > INT32_MAX)
        return refuse(e, "embedding_length", s->hidden, "it must be whole heads");
    if (s->ffn == 0 || s->ffn > INT32_MAX)
        return refuse(e, "feed_forward_length", s->ffn, "it must be above 0");
    if (!(s->eps > 0) || !isfinite(s->eps))
        return err_set(e, EXIT_USAGE, "attention.layer_norm_epsilon is %g: it must be above 0",
                       (double)s->eps);
    if (shifts != 2)
        return refuse(e, "token_shift_count", shifts, "it must be 2");
    return true;
}

bool rwkv7_read_sizes(const gguf *g, rwkv7_shape *out, err *e) {
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

/* A vector in any type that can be decoded; kernels read floats. */
static bool find_vector(model *m, const char *name, uint32_t count, weight *out, err *e) {
    const gguf_tensor *t = model_claim_tensor(m, name);
    if (!t)
        return err_set(e, EXIT_USAGE, "the model has no tensor %s", name);
    if (t->elements != count)
        return err_set(e, EXIT_USAGE, "the tensor %s has %llu values, expected %u", name,
                       (unsigned long long)t->elements, count);
    if (t->type->format == &format_f32) {
        uint32_t columns = (uint32_t)t->dim[0];
        if (!model_find_matrix(m, name, count / columns, columns, out, e))
            return false;
        out->rows = 1;
        out->columns = count;
        return true;
    }
    if (!t->type->format)
        return err_set(e, EXIT_USAGE, "the tensor %s is in %s, which cannot be decoded", name,
                       t->type->name);
    double *values = array_new(count, sizeof *values);
    float *floats = array_new(count, sizeof *floats);
    reference_decode_row(t->type->format, t->data, 0, count, values);
    for (uint32_t i = 0; i < count; i++)
        floats[i] = (float)values[i];
    *out = (weight){.format = &format_f32, .rows = 1, .columns = count};
    bool ok = model_make_table(m, name, floats, count, &out->at, e);
    free(values);
    free(floats);
    return ok;
}

/* Rows of a matrix of a layer by its elements; 0: there is no such matrix. */
static uint32_t count_rows(const model *m, uint32_t layer, const char *part, uint32_t columns) {
    char name[GGUF_NAME_BYTES];
    model_name_tensor(name, layer, part, "weight");
    const gguf_tensor *t = gguf_find_tensor(m->file, name);
    return t && t->elements / columns <= INT32_MAX ? (uint32_t)(t->elements / columns) : 0;
}

static bool find_adapter(model *m, uint32_t layer, rwkv7_adapter which, err *e) {
    static const char letters[ADAPTERS] = {
        [ADAPTER_W] = 'w', [ADAPTER_A] = 'a', [ADAPTER_V] = 'v', [ADAPTER_G] = 'g'};
    rwkv7 *own = m->own;
    adapter *a = &own->weights.layers[layer].time.adapters[which];
    uint32_t d = m->shape.hidden;
    char part[3][16], name[GGUF_NAME_BYTES];
    for (int i = 0; i < 3; i++)
        snprintf(part[i], sizeof part[i], "time_mix_%c%d", letters[which], i);
    uint32_t rank = count_rows(m, layer, part[1], d);
    if (rank % 4 != 0)
        return err_set(e, EXIT_USAGE, "blk.%u.%s makes %u values: it must be a multiple of 4",
                       layer, part[1], rank);
    if (rank > own->weights.ranks[which])
        own->weights.ranks[which] = rank;
    model_name_tensor(name, layer, part[0], "weight");
    if (which != ADAPTER_G && !find_vector(m, name, d, &a->bias, e))
        return false;
    model_name_tensor(name, layer, part[1], "weight");
    if (!model_find_matrix(m, name, rank, d, &a->down, e))
        return false;
    model_name_tensor(name, layer, part[2], "weight");
    return model_find_matrix(m, name, d, rank, &a->up, e);
}

typedef struct {
    const char *part, *kind;
    uint32_t rows, columns; /* 0 rows: a vector */
    weight *out;
} layer_part;

static bool find_parts(model *m, uint32_t layer, const layer_part *parts, size_t count, err *e) {
    for (size_t i = 0; i < count; i++) {
        const layer_part *p = &parts[i];
        char name[GGUF_NAME_BYTES];
        model_name_tensor(name, layer, p->part, p->kind);
        if (p->rows ? !model_find_matrix(m, name, p->rows, p->columns, p->out, e)
                    : !find_vector(m, name, p->columns, p->out, e))
            return false;
    }
    return true;
}

static bool find_layer(model *m, uint32_t layer, err *e) {
    rwkv7 *own = m->own;
    rwkv7_time_mix *t = &own->weights.layers[layer].time;
    rwkv7_channel_mix *c = &own->weights.layers[layer].channel;
    uint32_t d = m->shape.hidden, ffn = own->shape.ffn;
    const layer_part parts[] = {
        {"attn_norm", "weight", 0, d, &t->norm_w},
        {"attn_norm", "bias", 0, d, &t->norm_b},
        {"time_mix_lerp_fused", "weight", 0, MIXES * d, &t->mixes},
        {"time_mix_receptance", "weight", d, d, &t->receptance},
        {"time_mix_key", "weight", d, d, &t->key},
        {"time_mix_value", "weight", d, d, &t->value},
        {"time_mix_output", "weight", d, d, &t->output},
        {"time_mix_k_k", "weight", 0, d, &t->k_k},
        {"time_mix_k_a", "weight", 0, d, &t->k_a},
        {"time_mix_r_k", "weight", 0, d, &t->r_k},
        {"time_mix_ln", "weight", 0, d, &t->group_w},
        {"time_mix_ln", "bias", 0, d, &t->group_b},
        {"attn_norm_2", "weight", 0, d, &c->norm_w},
        {"attn_norm_2", "bias", 0, d, &c->norm_b},
        {"channel_mix_lerp_k", "weight", 0, d, &c->mix},
        {"channel_mix_key", "weight", ffn, d, &c->key},
        {"channel_mix_value", "weight", d, ffn, &c->value},
    };
    if (!find_parts(m, layer, parts, sizeof parts / sizeof *parts, e))
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

bool rwkv7_find_weights(model *m, err *e) {
    rwkv7_weights *w = &((rwkv7 *)m->own)->weights;
    uint32_t d = m->shape.hidden, vocab = m->shape.vocab;
    w->layers = array_new(m->shape.layers, sizeof *w->layers);
    if (!model_find_matrix(m, "token_embd.weight", vocab, d, &w->embedding, e) ||
        !find_vector(m, "token_embd_norm.weight", d, &w->embedding_norm_w, e) ||
        !find_vector(m, "token_embd_norm.bias", d, &w->embedding_norm_b, e) ||
        !find_vector(m, "output_norm.weight", d, &w->norm_w, e) ||
        !find_vector(m, "output_norm.bias", d, &w->norm_b, e) ||
        !model_find_matrix(m, "output.weight", vocab, d, &w->head, e))
        return false;
    for (uint32_t i = 0; i < m->shape.layers; i++)
        if (!find_layer(m, i, e))
            return false;
    return true;
}
