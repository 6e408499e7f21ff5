/* llama/record: the forward pass as launches. One function per part of a layer, for any number of
 * tokens: one token is decoding, many are a tile of a prompt. The kernels for one token and for many
 * are different ones, but the order of the launches and what they read and write is the same. */
#include <math.h>

#include "llama.h"
#include "runner/choice/rules.h"

typedef struct {
    model *m;
    tape *t;
    uint32_t tokens;
    const kernel *attention;
    const llama *own; /* the model's; the rest are parts of it */
    const llama_shape *s;
    const llama_scratch *a;
    const llama_layer *l;
    const llama_cache *cache; /* of the layer */
    err *e;
} recording;

static const kernel *pick(const recording *r, const op *o, const weight_format *f, shape s) {
    return variants_pick(&r->m->variants, o, f, s, NULL);
}

/* y = W rmsnorm(x) for one token */
static bool record_fused_norm(const recording *r, const kernel *k, slice x, const weight *norm,
                              const weight *w, slice y) {
    const product p = {
        {weight_multiply(w, x, y)}, .tokens = 1, .norm_w = norm->at, .eps = r->s->eps};
    return product_record(r->t, k, &p, r->e);
}

static bool record_norm(const recording *r, slice x, const weight *norm, slice y, uint32_t tokens) {
    return rmsnorm_record(r->t, pick(r, &rmsnorm_op, NULL, (shape){{tokens, r->s->hidden}}), x,
                          norm->at, y, tokens, r->s->hidden, r->s->eps, r->e);
}

static bool record_bias(const recording *r, const weight *bias, slice y) {
    return model_record_bias(r->t, bias, y, r->tokens, r->e);
}

static bool is_all_q4_0(const weight *const w[3]) {
    for (int i = 0; i < 3; i++)
        if (w[i] && w[i]->format != &format_q4_0)
            return false;
    return true;
}

/* Up to three products with the same x: in one launch where there is a kernel for it. */
static bool record_products(const recording *r, const weight *const w[3], slice x,
                            const slice y[3]) {
    uint32_t rows[3] = {w[0]->rows, w[1]->rows, w[2] ? w[2]->rows : 0};
    const kernel *batched = r->tokens == 1 && is_all_q4_0(w)
                                ? pick(r, &matvec_batched_op, &format_q4_0,
                                       (shape){{rows[0], rows[1], rows[2], w[0]->columns}})
                                : NULL;
    product p = {.count = w[2] ? 3 : 2, .tokens = 1};
    for (uint32_t i = 0; i < p.count; i++)
        p.items[i] = weight_multiply(w[i], x, y[i]);
    return batched ? product_record(r->t, batched, &p, r->e)
                   : model_record_matrices(r->m, r->t, p.items, p.count, r->tokens, r->e);
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
static bool record_normed(const recording *r, const weight *norm, const weight *const w[3],
                          const slice y[3]) {
    bool is_fused = r->m->fusion == FUSION_ROWS && r->tokens == 1 && is_all_q4_0(w);
    if (!is_fused)
        return record_norm(r, r->a->x, norm, r->a->normed, r->tokens) &&
               record_products(r, w, r->a->normed, y);
    for (int i = 0; i < 3 && w[i]; i++)
        if (!record_fused_norm(r, variants_pick_fixed(&r->m->variants, &rmsnorm_matvec_op), r->a->x,
                               norm, w[i], y[i]))
            return false;
    return true;
}

static bool record_rope(const recording *r) {
    const llama_shape *s = r->s;
    slice q = r->a->q, k = r->a->k;
    param at = model_get_control(r->m, CONTROL_POSITION);
    return rope_apply_table_record(r->t, variants_pick_fixed(&r->m->variants, &rope_apply_table_op),
                                   q, k, r->tokens, s->heads, s->kv_heads, s->head_dim, at,
                                   r->own->freqs, r->e);
}

static bool record_append(const recording *r) {
    const llama_scratch *a = r->a;
    const llama_cache *c = r->cache;
    uint32_t kv_dim = r->s->kv_heads * r->s->head_dim;
    param at = model_get_control(r->m, CONTROL_POSITION);
    bool is_half = r->m->cache != NULL;
    if (r->tokens == 1)
        return kv_cache_copy_record(r->t, &kv_cache_copy_op.kernels[is_half], a->k, a->v, c->keys,
                                    c->values, kv_dim, at, r->e);
    return kv_cache_copy_tokens_record(r->t, &kv_cache_copy_tokens_op.kernels[is_half], a->k, a->v,
                                       c->keys, c->values, r->tokens, kv_dim, at, r->e);
}

/* In as many ranges as fit there. */
const kernel *llama_pick_attention(const model *m, uint32_t tokens, uint32_t position) {
    const llama *own = m->own;
    const llama_shape *s = &own->shape;
    size_t range_bytes = (size_t)s->heads * s->head_dim * sizeof(float);
    if (tokens == 1)
        return variants_pick_decode_attention(
            &m->variants, m->cache, (shape){{position + 1, s->heads, s->kv_heads, s->head_dim}},
            own->scratch.gate.bytes / range_bytes);
    shape many = {{tokens, variants_round_keys(position), s->heads, s->kv_heads, s->head_dim}};
    return variants_pick(&m->variants, &prefill_attention_op, m->cache, many, NULL);
}

/* To all of the cache, where the tokens' own keys and values already are. In ranges, of one token, the parts
 * are where gate and up will be. */
static bool record_attention(const recording *r) {
    const llama_shape *s = r->s;
    const llama_scratch *a = r->a;
    const llama_cache *c = r->cache;
    const kernel *k = r->attention;
    float scale = 1 / sqrtf((float)s->head_dim);
    uint32_t ranges = choice_count_ranges(k);
    param length = model_get_control(r->m, CONTROL_LENGTH);
    if (ranges > 1) {
        attention_ranges_slices at = {a->q, c->keys, c->values, a->gate, a->up, a->attention};
        attention_ranges_sizes sizes = {s->heads, s->kv_heads, s->head_dim, ranges};
        return attention_ranges_record(r->t, choice_find_ranges_kernel(k), &at, &sizes, length,
                                       scale, r->e);
    }
    if (r->tokens == 1)
        return decode_attention_record(r->t, k, a->q, c->keys, c->values, a->attention, s->heads,
                                       s->kv_heads, s->head_dim, length, scale, r->e);
    return prefill_attention_record(r->t, k, a->q, c->keys, c->values, a->attention, r->tokens,
                                    s->heads, s->kv_heads, s->head_dim,
                                    model_get_control(r->m, CONTROL_POSITION), scale, r->e);
}

/* From x to q and the caches, a launch for each step. */
static bool record_qkv_apart(const recording *r) {
    const llama_layer *l = r->l;
    const llama_scratch *a = r->a;
    const weight *const qkv[3] = {&l->q, &l->k, &l->v};
    return record_normed(r, &l->attn_norm, qkv, (slice[3]){a->q, a->k, a->v}) &&
           record_bias(r, &l->q_bias, a->q) && record_bias(r, &l->k_bias, a->k) &&
           record_bias(r, &l->v_bias, a->v) && record_rope(r) && record_append(r);
}

/* The same in one launch where there is a kernel for it. */
static bool record_qkv(const recording *r) {
    const llama_shape *s = r->s;
    const llama_layer *l = r->l;
    shape fused = {{0, s->heads, s->kv_heads, s->head_dim, s->hidden, r->tokens}};
    bool has_bias = l->q_bias.format || l->k_bias.format || l->v_bias.format;
    bool can_fuse =
        fuses_norms(r->m) && !has_bias && l->k.format == l->q.format && l->v.format == l->q.format;
    const op *append = r->m->cache ? &qkv_rope_append_f16_op : &qkv_rope_append_op;
    const kernel *k = can_fuse ? pick(r, append, l->q.format, fused) : NULL;
    if (!k || !is_aligned(k, &l->q) || !is_aligned(k, &l->k) || !is_aligned(k, &l->v))
        return record_qkv_apart(r);
    const product p = {{weight_multiply(&l->q, r->a->x, r->a->q),
                        {.w = l->k.at, .y = r->cache->keys, .rows = l->k.rows},
                        {.w = l->v.at, .y = r->cache->values}},
                       .tokens = r->tokens,
                       .norm_w = l->attn_norm.at,
                       .eps = s->eps,
                       .freqs = r->own->freqs,
                       .head_dim = s->head_dim,
                       .pos = model_get_control(r->m, CONTROL_POSITION)};
    return product_record(r->t, k, &p, r->e);
}

static bool record_gate_up(const recording *r) {
    const llama_layer *l = r->l;
    const llama_scratch *a = r->a;
    bool can_fuse = fuses_norms(r->m) && !l->gate_bias.format && !l->up_bias.format &&
                    l->up.format == l->gate.format;
    shape fused = {{l->gate.rows, l->gate.columns, r->tokens}};
    const kernel *k = can_fuse ? pick(r, &gate_up_silu_op, l->gate.format, fused) : NULL;
    if (!k || !is_aligned(k, &l->gate) || !is_aligned(k, &l->up)) {
        const weight *const gate_up[3] = {&l->gate, &l->up, NULL};
        return record_normed(r, &l->ffn_norm, gate_up, (slice[3]){a->gate, a->up}) &&
               record_bias(r, &l->gate_bias, a->gate) && record_bias(r, &l->up_bias, a->up) &&
               ffn_silu_record(r->t, variants_pick_fixed(&r->m->variants, &ffn_silu_op), a->gate,
                               a->up, a->activated, r->tokens * r->s->ffn, r->e);
    }
    const product p = {{weight_multiply(&l->gate, a->x, a->activated), {.w = l->up.at}},
                       .tokens = r->tokens,
                       .norm_w = l->ffn_norm.at,
                       .eps = r->s->eps};
    return product_record(r->t, k, &p, r->e);
}

/* x += W y + bias */
static bool record_sum(const recording *r, const weight *w, const weight *bias, slice y) {
    return model_record_product(r->m, r->t, w, y, r->a->x, true, r->tokens, r->e) &&
           record_bias(r, bias, r->a->x);
}

static bool record_layer(const recording *r) {
    return record_qkv(r) && record_attention(r) &&
           record_sum(r, &r->l->attn_output, &r->l->attn_output_bias, r->a->attention) &&
           record_gate_up(r) && record_sum(r, &r->l->down, &r->l->down_bias, r->a->activated);
}

/* Only the logits of the last token are of use. */
static bool record_head(const recording *r) {
    slice last = model_take_row(r->a->x, r->tokens - 1, r->s->hidden),
          normed = model_take_row(r->a->normed, 0, r->s->hidden);
    const weight *head = &r->own->weights.head, *norm = &r->own->weights.norm;
    tape_mark(r->t, "head");
    const kernel *fused = fuses_norms(r->m) ? pick(r, &rmsnorm_matvec_op, head->format,
                                                   (shape){{head->rows, head->columns}})
                                            : NULL;
    if (fused && is_aligned(fused, head))
        return record_fused_norm(r, fused, last, norm, head, r->m->logits);
    return record_norm(r, last, norm, normed, 1) &&
           model_record_product(r->m, r->t, head, normed, r->m->logits, false, 1, r->e);
}

bool llama_record(model *m, tape *t, slice ids, uint32_t tokens, const kernel *attention,
                  bool has_head, err *e) {
    const llama *own = m->own;
    recording r = {m, t, tokens, attention, own, &own->shape, &own->scratch, NULL, NULL, e};
    if (!model_record_embedding(m, t, &own->weights.embedding, ids, own->scratch.x, tokens, e))
        return false;
    for (uint32_t i = 0; i < m->shape.layers; i++) {
        r.l = &own->weights.layers[i];
        r.cache = &own->cache[i];
        model_mark_layer(t, i);
        if (!record_layer(&r))
            return false;
    }
    return !has_head || record_head(&r);
}
