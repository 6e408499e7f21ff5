/* llama: the family of llama models (SmolLM and its kin): grouped-query attention with rotary
 * positions over a cache, gated feed-forward, RMS norms. llama.c reads the file and makes the buffers, record.c
 * records the forward pass, reference.c computes it in plain C. */
#pragma once

#include "runner/model/family.h"

extern const model_family llama_family;

enum { LLAMA_MAX_HEAD_DIM = 256 };

typedef struct {
    uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, context;
    float eps, rope_base;
    bool tied; /* the head is the embedding */
} llama_shape;

typedef struct {
    weight attn_norm, q, k, v, attn_output, ffn_norm, gate, up, down;
    weight q_bias, k_bias, v_bias, attn_output_bias, gate_bias, up_bias, down_bias;
} llama_layer;

typedef struct {
    weight embedding, norm, head;
    llama_layer *layers;
} llama_weights;

/* Activations: one row for each token of a tile. */
typedef struct {
    slice x, normed, q, k, v, attention, gate, up, activated;
} llama_scratch;

typedef struct {
    slice keys, values; /* (context, kv_heads, head_dim) */
} llama_cache;

/* model.own of this family */
typedef struct {
    llama_shape shape;
    llama_weights weights;
    llama_scratch scratch;
    llama_cache *cache; /* one for each layer */
    slice freqs;        /* (head_dim / 2) turns per position */
} llama;

/* The sizes in the file, checked. */
bool llama_read_sizes(const gguf *g, llama_shape *out, err *e);

/* How much one position turns each pair of a head. *needed: scaling or factors in the file change
 * it; else rope_base says it all. */
bool llama_read_freqs(const gguf *g, const llama_shape *s, float *freqs, bool *needed, err *e);

const kernel *llama_pick_attention(const model *m, uint32_t tokens, uint32_t position);
bool llama_record(model *m, tape *t, slice ids, uint32_t tokens, const kernel *attention,
                  bool has_head, err *e);

void *llama_reference_new(const model *m, size_t tokens, reference_memory *memory, err *e);
void llama_reference_step(void *own, uint32_t token, double *logits);
