/* llama_record: the forward pass as launches. One function a part of a layer, for any number of
 * tokens: one token is decoding, many are a tile of a prompt.
 *
 * The one surprise: the kernels for one token and for many are different ones, but the order of the
 * launches and what they read and write is the same. */
#include <math.h>
#include <stdio.h>

#include "llama_parts.h"
#include "rungs.h"

static slice first_rows(slice s, uint32_t rows, uint32_t columns) {
    return slice_part(s.buffer, s.offset, (size_t)rows * columns * sizeof(float));
}

static param state_at(const llama *m, uint32_t word) {
    slice s = m->scratch.state;
    return param_at(slice_part(s.buffer, s.offset + word * sizeof(uint32_t), sizeof(uint32_t)));
}

/* y (tokens, rows) = W x, or += */
static bool record_product(llama *m, tape *t, const weight *w, slice x, slice y, bool accumulates,
                           uint32_t tokens, err *e) {
    const kernel *k = rungs_pick_matvec(device_get_facts(m->device), w->format, accumulates,
                                            w->columns, tokens, e);
    return k && matvec_record(t, k, w->at, x, y, w->rows, w->columns, tokens, e);
}

static bool record_bias(tape *t, const weight *bias, slice y, uint32_t tokens, err *e) {
    return !bias->at.buffer ||
           bias_add_record(t, &bias_add_op.kernels[0], y, bias->at, tokens, bias->columns, e);
}

static bool record_norm(llama *m, tape *t, slice x, const weight *norm, slice y, uint32_t tokens,
                        err *e) {
    return rmsnorm_record(t, rungs_pick_rmsnorm(device_get_facts(m->device), tokens), x, norm->at,
                          y, tokens, m->shape.hidden, m->shape.eps, e);
}

static bool is_all_q4_0(const weight *const w[3]) {
    for (int i = 0; i < 3; i++)
        if (w[i] && w[i]->format != &format_q4_0)
            return false;
    return true;
}

/* Up to three products with the same x: in one launch where there is a kernel for it. */
static bool record_products(llama *m, tape *t, const weight *const w[3], slice x, const slice y[3],
                            uint32_t tokens, err *e) {
    const kernel *batched = rungs_pick_batched(device_get_facts(m->device));
    if (batched && tokens == 1 && is_all_q4_0(w)) {
        slice matrices[3] = {w[0]->at, w[1]->at, w[2] ? w[2]->at : w[1]->at};
        slice outputs[3] = {y[0], y[1], w[2] ? y[2] : y[1]};
        uint32_t rows[3] = {w[0]->rows, w[1]->rows, w[2] ? w[2]->rows : 0};
        return matvec_q4_0_batched_record(t, batched, matrices, x, outputs, rows, w[0]->columns, e);
    }
    for (int i = 0; i < 3 && w[i]; i++)
        if (!record_product(m, t, w[i], x, y[i], false, tokens, e))
            return false;
    return true;
}

static bool record_rope(llama *m, tape *t, uint32_t tokens, err *e) {
    const llama_shape *s = &m->shape;
    const llama_scratch *a = &m->scratch;
    param at = state_at(m, STATE_POSITION);
    if (a->freqs.buffer)
        return rope_apply_table_record(t, &rope_apply_table_op.kernels[0], a->q, a->k, tokens,
                                       s->heads, s->kv_heads, s->head_dim, at, a->freqs, e);
    if (tokens == 1)
        return rope_apply_dual_record(t, &rope_apply_dual_op.kernels[0], a->q, a->k, s->heads,
                                      s->kv_heads, s->head_dim, at, s->rope_base, e);
    return rope_apply_tokens_record(t, &rope_apply_tokens_op.kernels[0], a->q, a->k, tokens,
                                    s->heads, s->kv_heads, s->head_dim, at, s->rope_base, e);
}

/* Appends keys and values to the cache, then attends to all of it. */
static bool record_attention(llama *m, tape *t, const llama_cache *c, uint32_t tokens, err *e) {
    const llama_shape *s = &m->shape;
    const llama_scratch *a = &m->scratch;
    const device_facts *d = device_get_facts(m->device);
    float scale = 1 / sqrtf((float)s->head_dim);
    uint32_t kv_dim = s->kv_heads * s->head_dim;
    param at = state_at(m, STATE_POSITION);
    if (tokens == 1)
        return kv_cache_copy_record(t, &kv_cache_copy_op.kernels[0], a->k, a->v, c->keys, c->values,
                                    kv_dim, at, e) &&
               decode_attention_record(t, rungs_pick_decode_attention(d), a->q, c->keys, c->values,
                                       a->attention, s->heads, s->kv_heads, s->head_dim,
                                       state_at(m, STATE_LENGTH), scale, e);
    return kv_cache_copy_tokens_record(t, &kv_cache_copy_tokens_op.kernels[0], a->k, a->v, c->keys,
                                       c->values, tokens, kv_dim, at, e) &&
           prefill_attention_record(t, rungs_pick_prefill_attention(d), a->q, c->keys, c->values,
                                    a->attention, tokens, s->heads, s->kv_heads, s->head_dim, at,
                                    scale, e);
}

static bool record_layer(llama *m, tape *t, uint32_t index, uint32_t tokens, err *e) {
    const llama_layer *l = &m->weights.layers[index];
    const llama_scratch *a = &m->scratch;
    const weight *const qkv[3] = {&l->q, &l->k, &l->v};
    const weight *const gate_up[3] = {&l->gate, &l->up, NULL};
    char name[32];
    snprintf(name, sizeof name, "layer %u", index);
    tape_mark(t, name);
    return record_norm(m, t, a->x, &l->attn_norm, a->normed, tokens, e) &&
           record_products(m, t, qkv, a->normed, (slice[3]){a->q, a->k, a->v}, tokens, e) &&
           record_bias(t, &l->q_bias, a->q, tokens, e) &&
           record_bias(t, &l->k_bias, a->k, tokens, e) &&
           record_bias(t, &l->v_bias, a->v, tokens, e) && record_rope(m, t, tokens, e) &&
           record_attention(m, t, &m->cache[index], tokens, e) &&
           record_product(m, t, &l->attn_output, a->attention, a->x, true, tokens, e) &&
           record_bias(t, &l->attn_output_bias, a->x, tokens, e) &&
           record_norm(m, t, a->x, &l->ffn_norm, a->normed, tokens, e) &&
           record_products(m, t, gate_up, a->normed, (slice[3]){a->gate, a->up}, tokens, e) &&
           record_bias(t, &l->gate_bias, a->gate, tokens, e) &&
           record_bias(t, &l->up_bias, a->up, tokens, e) &&
           ffn_silu_record(t, &ffn_silu_op.kernels[0], a->gate, a->up, a->activated,
                           tokens * m->shape.ffn, e) &&
           record_product(m, t, &l->down, a->activated, a->x, true, tokens, e) &&
           record_bias(t, &l->down_bias, a->x, tokens, e);
}

static bool record_layers(llama *m, tape *t, slice ids, uint32_t tokens, err *e) {
    const llama_shape *s = &m->shape;
    const weight *table = &m->weights.embedding;
    const kernel *k = rungs_pick_embedding(table->format, e);
    tape_mark(t, "embedding");
    if (!k || !embedding_lookup_record(t, k, table->at, ids, m->scratch.x, tokens, s->hidden,
                                       s->vocab, e))
        return false;
    for (uint32_t i = 0; i < s->layers; i++)
        if (!record_layer(m, t, i, tokens, e))
            return false;
    return true;
}

/* Only the last of the tokens has a use for logits. */
static bool record_head(llama *m, tape *t, uint32_t tokens, err *e) {
    uint32_t hidden = m->shape.hidden;
    size_t row = (size_t)(tokens - 1) * hidden * sizeof(float);
    slice last = first_rows(m->scratch.x, 1, hidden),
          normed = first_rows(m->scratch.normed, 1, hidden);
    last.offset += row;
    tape_mark(t, "head");
    return record_norm(m, t, last, &m->weights.norm, normed, 1, e) &&
           record_product(m, t, &m->weights.head, normed, m->scratch.logits, false, 1, e);
}

bool llama_record_prompt(llama *m, tape *t, uint32_t tokens, bool has_head, err *e) {
    return record_layers(m, t, m->scratch.ids, tokens, e) &&
           (!has_head || record_head(m, t, tokens, e));
}

bool llama_record_token(llama *m, tape *t, bool greedy, err *e) {
    const llama_scratch *a = &m->scratch;
    if (!record_layers(m, t, state_at(m, STATE_TOKEN).at, 1, e) || !record_head(m, t, 1, e))
        return false;
    if (!greedy)
        return true;
    tape_mark(t, "choice");
    return argmax_record(t, a->logits, a->argmax_values, a->argmax_indices, a->next, m->shape.vocab,
                         e) &&
           decode_advance_record(t, &decode_advance_op.kernels[0], a->next, a->state, a->history,
                                 LLAMA_IN_FLIGHT, e);
}
