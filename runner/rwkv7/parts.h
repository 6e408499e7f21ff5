/* rwkv7/parts: what the files of the rwkv7 family share. file.c reads the file, rwkv7.c makes
 * the buffers, record.c records the forward pass (unfused.c one launch per op),
 * reference.c computes it in plain C. */
#pragma once

#include "rwkv7.h"

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

/* The sizes in the file, checked. */
extern const known_key rwkv7_keys[];
bool rwkv7_read_sizes(const gguf *g, rwkv7_shape *out, err *e);

/* Finds every weight and checks its shape. */
bool rwkv7_find_weights(model *m, err *e);

/* Rows of a mix: scratch.mixed is (MIXES, tokens, hidden). */
slice rwkv7_take_mix(const model *m, uint32_t mix, uint32_t tokens);
/* A layer with one launch per op. */
bool rwkv7_record_ops(model *m, tape *t, uint32_t index, uint32_t tokens, err *e);
bool rwkv7_record(model *m, tape *t, slice ids, uint32_t tokens, const kernel *attention,
                  bool has_head, err *e);

void *rwkv7_reference_new(const model *m, size_t tokens, shaker *s, err *e);
void rwkv7_reference_free(void *own);
void rwkv7_reference_step(void *own, uint32_t token, double *logits);
