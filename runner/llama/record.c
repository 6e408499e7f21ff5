/* llama/record: the forward pass as launches. One function per part of a layer, for any number of
 * tokens: one token is decoding, many are a tile of a prompt. The kernels for one token and for many
 * are different ones, but the order of the launches and what they read and write is the same. */
#include <math.h>

#include "parts.h"
#include "runner/choice/rules.h"

static const llama *get_own(const model *m) {
    return m->own;
}

/* y = W rmsnorm(x) for one token */
static bool record_fused_norm(model *m, tape *t, const kernel *k, slice x, const weight *norm,
                              const weight *w, slice y, err *e) {
    const product p = {{{.w = w->at, .x = x, .y = y, .rows = w->rows, .columns = w->columns}},
                       .tokens = 1,
                       .norm_w = norm->at,
                       .eps = get_own(m)->shape.eps};
    return product_record(t, k, &p, e);
}

static bool record_norm(model *m, tape *t, slice x, const weight *norm, slice y, uint32_t tokens,
                        err *e) {
    return rmsnorm_record(
        t, variants_pick(&m->variants, &rmsnorm_op, NULL, (shape){{tokens, m->shape.hidden}}, NULL),
        x, norm->at, y, tokens, m->shape.hidden, get_own(m)->shape.eps, e);
}

static bool is_all_q4_0(const weight *const w[3]) {
    for (int i = 0; i < 3; i++)
        if (w[i] && w[i]->format != &format_q4_0)
            return false;
    return true;
}

/* Up to three products with the same x: in one launch where there is a kernel for it. */
static bool record_products(model *m, tape *t, const weight *const w[3], slice x, const slice y[3],
                            uint32_t tokens, err *e) {
    uint32_t rows[3] = {w[0]->rows, w[1]->rows, w[2] ? w[2]->rows : 0};
    const kernel *batched =
        tokens == 1 && is_all_q4_0(w)
            ? variants_pick(&m->variants, &matvec_batched_op, &format_q4_0,
                            (shape){{rows[0], rows[1], rows[2], w[0]->columns}}, NULL)
            : NULL;
    product p = {{{.x = x, .columns = w[0]->columns}}, .count = w[2] ? 3 : 2, .tokens = 1};
    for (uint32_t i = 0; i < p.count; i++) {
        p.items[i].w = w[i]->at;
        p.items[i].y = y[i];
        p.items[i].rows = rows[i];
    }
    if (batched)
        return product_record(t, batched, &p, e);
    product_matrix all[3];
    for (uint32_t i = 0; i < p.count; i++)
        all[i] = weight_multiply(w[i], x, y[i]);
    return model_record_matrices(m, t, all, p.count, tokens, e);
}

/* Norms and what follows them in one launch, where there is a kernel for it. */
static bool fuses_norms(const model *m) {
    return m->fusion == FUSION_BEST || m->fusion == FUSION_MOST;
}

/* Does a kernel take weights that begin there? */
static bool is_aligned(const kernel *k, const weight *w) {
    return w->at.offset % product_get_alignment(k) == 0;
}

/* A norm of x and the products after it. */
static bool record_normed(model *m, tape *t, const weight *norm, const weight *const w[3],
                          const slice y[3], uint32_t tokens, err *e) {
    const llama_scratch *a = &get_own(m)->scratch;
    bool is_fused = m->fusion == FUSION_ROWS && tokens == 1 && is_all_q4_0(w);
    if (!is_fused)
        return record_norm(m, t, a->x, norm, a->normed, tokens, e) &&
               record_products(m, t, w, a->normed, y, tokens, e);
    for (int i = 0; i < 3 && w[i]; i++)
        if (!record_fused_norm(m, t, variants_pick_fixed(&m->variants, &rmsnorm_matvec_op), a->x,
                               norm, w[i], y[i], e))
            return false;
    return true;
}

static bool record_rope(model *m, tape *t, uint32_t tokens, err *e) {
    const llama_shape *s = &get_own(m)->shape;
    const llama_scratch *a = &get_own(m)->scratch;
    param at = model_get_control(m, CONTROL_POSITION);
    if (get_own(m)->freqs.buffer)
        return rope_apply_table_record(t, variants_pick_fixed(&m->variants, &rope_apply_table_op),
                                       a->q, a->k, tokens, s->heads, s->kv_heads, s->head_dim, at,
                                       get_own(m)->freqs, e);
    if (tokens == 1)
        return rope_apply_dual_record(t, &rope_apply_dual_op.kernels[0], a->q, a->k, s->heads,
                                      s->kv_heads, s->head_dim, at, s->rope_base, e);
    return rope_apply_tokens_record(t, &rope_apply_tokens_op.kernels[0], a->q, a->k, tokens,
                                    s->heads, s->kv_heads, s->head_dim, at, s->rope_base, e);
}

static bool record_append(model *m, tape *t, const llama_cache *c, uint32_t tokens, err *e) {
    const llama_shape *s = &get_own(m)->shape;
    const llama_scratch *a = &get_own(m)->scratch;
    uint32_t kv_dim = s->kv_heads * s->head_dim;
    param at = model_get_control(m, CONTROL_POSITION);
    if (tokens == 1)
        return kv_cache_copy_record(t, &kv_cache_copy_op.kernels[m->cache != NULL], a->k, a->v,
                                    c->keys, c->values, kv_dim, at, e);
    return kv_cache_copy_tokens_record(t, &kv_cache_copy_tokens_op.kernels[m->cache != NULL], a->k,
                                       a->v, c->keys, c->values, tokens, kv_dim, at, e);
}

/* Of one token, range by range; the parts are where gate and up will be. */
static bool record_ranges(model *m, tape *t, const llama_cache *c, const kernel *way, float scale,
                          err *e) {
    const llama_shape *s = &get_own(m)->shape;
    const llama_scratch *a = &get_own(m)->scratch;
    attention_ranges_slices at = {a->q, c->keys, c->values, a->gate, a->up, a->attention};
    attention_ranges_sizes sizes = {s->heads, s->kv_heads, s->head_dim, choice_count_ranges(way)};
    return attention_ranges_record(t, choice_find_ranges_kernel(way), &at, &sizes,
                                   model_get_control(m, CONTROL_LENGTH), scale, e);
}

/* In as many ranges as fit there. */
const kernel *llama_pick_attention(const model *m, uint32_t tokens, uint32_t position) {
    const llama_shape *s = &get_own(m)->shape;
    size_t range_bytes = (size_t)s->heads * s->head_dim * sizeof(float);
    if (tokens == 1)
        return variants_pick_decode_attention(
            &m->variants, m->cache, (shape){{position + 1, s->heads, s->kv_heads, s->head_dim}},
            get_own(m)->scratch.gate.bytes / range_bytes);
    shape many = {{tokens, variants_round_keys(position), s->heads, s->kv_heads, s->head_dim}};
    return variants_pick(&m->variants, &prefill_attention_op, m->cache, many, NULL);
}

/* To all of the cache, where the tokens' own keys and values already are. */
static bool record_attention(model *m, tape *t, const llama_cache *c, uint32_t tokens,
                             const kernel *k, err *e) {
    const llama_shape *s = &get_own(m)->shape;
    const llama_scratch *a = &get_own(m)->scratch;
    float scale = 1 / sqrtf((float)s->head_dim);
    if (choice_count_ranges(k) > 1)
        return record_ranges(m, t, c, k, scale, e);
    if (tokens == 1)
        return decode_attention_record(t, k, a->q, c->keys, c->values, a->attention, s->heads,
                                       s->kv_heads, s->head_dim,
                                       model_get_control(m, CONTROL_LENGTH), scale, e);
    return prefill_attention_record(t, k, a->q, c->keys, c->values, a->attention, tokens, s->heads,
                                    s->kv_heads, s->head_dim,
                                    model_get_control(m, CONTROL_POSITION), scale, e);
}

/* From x to q and the caches, a launch for each step. */
static bool record_qkv_apart(model *m, tape *t, const llama_layer *l, const llama_cache *c,
                             uint32_t tokens, err *e) {
    const llama_scratch *a = &get_own(m)->scratch;
    const weight *const qkv[3] = {&l->q, &l->k, &l->v};
    return record_normed(m, t, &l->attn_norm, qkv, (slice[3]){a->q, a->k, a->v}, tokens, e) &&
           model_record_bias(t, &l->q_bias, a->q, tokens, e) &&
           model_record_bias(t, &l->k_bias, a->k, tokens, e) &&
           model_record_bias(t, &l->v_bias, a->v, tokens, e) && record_rope(m, t, tokens, e) &&
           record_append(m, t, c, tokens, e);
}

/* The same in one launch where there is a kernel for it. */
static bool record_qkv(model *m, tape *t, const llama_layer *l, const llama_cache *c,
                       uint32_t tokens, err *e) {
    const llama_shape *s = &get_own(m)->shape;
    const llama_scratch *a = &get_own(m)->scratch;
    shape fused = {{0, s->heads, s->kv_heads, s->head_dim, s->hidden, tokens}};
    bool has_bias = l->q_bias.format || l->k_bias.format || l->v_bias.format;
    bool can_fuse = fuses_norms(m) && !has_bias && get_own(m)->freqs.buffer &&
                    l->k.format == l->q.format && l->v.format == l->q.format;
    const op *append = m->cache ? &qkv_rope_append_f16_op : &qkv_rope_append_op;
    const kernel *k =
        can_fuse ? variants_pick(&m->variants, append, l->q.format, fused, NULL) : NULL;
    if (!k || !is_aligned(k, &l->q) || !is_aligned(k, &l->k) || !is_aligned(k, &l->v))
        return record_qkv_apart(m, t, l, c, tokens, e);
    const product p = {
        {{.w = l->q.at, .x = a->x, .y = a->q, .rows = s->heads * s->head_dim, .columns = s->hidden},
         {.w = l->k.at, .y = c->keys, .rows = s->kv_heads * s->head_dim},
         {.w = l->v.at, .y = c->values}},
        .tokens = tokens,
        .norm_w = l->attn_norm.at,
        .eps = s->eps,
        .freqs = get_own(m)->freqs,
        .head_dim = s->head_dim,
        .pos = model_get_control(m, CONTROL_POSITION)};
    return product_record(t, k, &p, e);
}

static bool record_gate_up_apart(model *m, tape *t, const llama_layer *l, uint32_t tokens, err *e) {
    const llama_scratch *a = &get_own(m)->scratch;
    const weight *const gate_up[3] = {&l->gate, &l->up, NULL};
    return record_normed(m, t, &l->ffn_norm, gate_up, (slice[3]){a->gate, a->up}, tokens, e) &&
           model_record_bias(t, &l->gate_bias, a->gate, tokens, e) &&
           model_record_bias(t, &l->up_bias, a->up, tokens, e) &&
           ffn_silu_record(t, variants_pick_fixed(&m->variants, &ffn_silu_op), a->gate, a->up,
                           a->activated, tokens * get_own(m)->shape.ffn, e);
}

static bool record_gate_up(model *m, tape *t, const llama_layer *l, uint32_t tokens, err *e) {
    const llama_scratch *a = &get_own(m)->scratch;
    bool can_fuse = fuses_norms(m) && !l->gate_bias.format && !l->up_bias.format &&
                    l->up.format == l->gate.format;
    shape fused = {{l->gate.rows, l->gate.columns, tokens}};
    const kernel *k =
        can_fuse ? variants_pick(&m->variants, &gate_up_silu_op, l->gate.format, fused, NULL)
                 : NULL;
    if (!k || !is_aligned(k, &l->gate) || !is_aligned(k, &l->up))
        return record_gate_up_apart(m, t, l, tokens, e);
    const product p = {{{.w = l->gate.at,
                         .x = a->x,
                         .y = a->activated,
                         .rows = l->gate.rows,
                         .columns = l->gate.columns},
                        {.w = l->up.at}},
                       .tokens = tokens,
                       .norm_w = l->ffn_norm.at,
                       .eps = get_own(m)->shape.eps};
    return product_record(t, k, &p, e);
}

static bool record_layer(model *m, tape *t, uint32_t index, uint32_t tokens,
                         const kernel *attention, err *e) {
    const llama_layer *l = &get_own(m)->weights.layers[index];
    const llama_scratch *a = &get_own(m)->scratch;
    const llama_cache *c = &get_own(m)->cache[index];
    model_mark_layer(t, index);
    return record_qkv(m, t, l, c, tokens, e) && record_attention(m, t, c, tokens, attention, e) &&
           model_record_product(m, t, &l->attn_output, a->attention, a->x, true, tokens, e) &&
           model_record_bias(t, &l->attn_output_bias, a->x, tokens, e) &&
           record_gate_up(m, t, l, tokens, e) &&
           model_record_product(m, t, &l->down, a->activated, a->x, true, tokens, e) &&
           model_record_bias(t, &l->down_bias, a->x, tokens, e);
}

/* Only the logits of the last token are of use. */
static bool record_head(model *m, tape *t, uint32_t tokens, err *e) {
    const llama *l = get_own(m);
    uint32_t hidden = m->shape.hidden;
    slice last = model_take_row(l->scratch.x, tokens - 1, hidden),
          normed = model_take_row(l->scratch.normed, 0, hidden);
    tape_mark(t, "head");
    const weight *head = &l->weights.head;
    const kernel *fused = fuses_norms(m)
                              ? variants_pick(&m->variants, &rmsnorm_matvec_op, head->format,
                                              (shape){{head->rows, head->columns}}, NULL)
                              : NULL;
    if (fused && is_aligned(fused, head))
        return record_fused_norm(m, t, fused, last, &l->weights.norm, head, m->logits, e);
    return record_norm(m, t, last, &l->weights.norm, normed, 1, e) &&
           model_record_product(m, t, head, normed, m->logits, false, 1, e);
}

bool llama_record(model *m, tape *t, slice ids, uint32_t tokens, const kernel *attention,
                  bool has_head, err *e) {
    const llama *l = get_own(m);
    if (!model_record_embedding(m, t, &l->weights.embedding, ids, l->scratch.x, tokens, e))
        return false;
    for (uint32_t i = 0; i < m->shape.layers; i++)
        if (!record_layer(m, t, i, tokens, attention, e))
            return false;
    return !has_head || record_head(m, t, tokens, e);
}
