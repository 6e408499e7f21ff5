/* rwkv7: the family of RWKV-7 ("Goose") models: a recurrence instead of attention. A layer keeps a
 * matrix per head and the last token's norms; its cost and memory do not grow with the text. rwkv7.c reads the
 * file and makes the buffers, record.c records the forward pass, reference.c
 * computes it in plain C. */
#pragma once

#include "runner/model/family.h"

extern const model_family rwkv7_family;

/* Not in the file: all models of this architecture have these. */
#define RWKV7_GROUP_EPS 64e-5f /* of the norm of each head */
#define RWKV7_KEY_EPS 1e-12    /* a key that is shorter is not brought to unit length */

typedef struct {
    uint32_t layers, hidden, heads, head_size, ffn, vocab;
    float eps;
} rwkv7_shape;

/* Six mixes of a token with the one before it, in the order of the file. */
typedef enum { MIX_R, MIX_W, MIX_K, MIX_V, MIX_A, MIX_G, MIXES } rwkv7_mix;

/* An adapter: two small matrices, of which the first makes `rank` values. */
typedef enum { ADAPTER_W, ADAPTER_A, ADAPTER_V, ADAPTER_G, ADAPTERS } rwkv7_adapter;

typedef struct {
    weight bias, down, up; /* no bias: that of the gate */
} adapter;

typedef struct {
    weight norm_w, norm_b, mixes;
    weight receptance, key, value, output;
    adapter adapters[ADAPTERS]; /* ADAPTER_V is empty in the first layer */
    weight k_k, k_a, r_k;
    weight group_w, group_b;
} rwkv7_time_mix;

typedef struct {
    weight norm_w, norm_b, mix;
    weight key, value;
} rwkv7_channel_mix;

typedef struct {
    rwkv7_time_mix time;
    rwkv7_channel_mix channel;
} rwkv7_layer;

typedef struct {
    weight embedding, embedding_norm_w, embedding_norm_b;
    weight norm_w, norm_b, head;
    rwkv7_layer *layers;
    uint32_t ranks[ADAPTERS]; /* the largest of all layers */
} rwkv7_weights;

/* Activations, one row for each token of a tile, for all layers. */
typedef struct {
    slice x, normed;
    slice mixed;              /* (MIXES, tokens, hidden); then what prepare packs */
    slice r, w, k, v, a, g;   /* (tokens, hidden) */
    slice v_gate, v_first, y; /* v_first lives through all layers */
    slice low[ADAPTERS];      /* (tokens, rank) */
    slice activated;          /* (tokens, ffn) */
} rwkv7_scratch;

typedef struct {
    slice time_shift, channel_shift; /* (hidden): the norms of the last token */
    slice heads;                     /* (heads, head_size, head_size) */
} rwkv7_state;

/* model.own of this family */
typedef struct {
    rwkv7_shape shape;
    rwkv7_weights weights;
    rwkv7_scratch scratch;
    rwkv7_state *states; /* one for each layer */
} rwkv7;

bool rwkv7_record(model *m, tape *t, slice ids, uint32_t tokens, const kernel *attention,
                  bool has_head, err *e);

void *rwkv7_reference_new(const model *m, size_t tokens, reference_memory *memory, err *e);
void rwkv7_reference_step(void *own, uint32_t token, double *logits);
