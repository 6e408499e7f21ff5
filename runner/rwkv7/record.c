/* rwkv7/record: the forward pass as launches. One token is decoding: its norm, shifts and state are
 * one launch, and on a GPU so are all products that do not depend on each other, and the whole time
 * mix. Many tokens are a tile of a prompt: everything but the recurrence goes through them side by
 * side. What a layer reads and writes is the same. */
#include "parts.h"
#include "runner/choice/rules.h"

static const rwkv7 *get_own(const model *m) {
    return m->own;
}

/* y (tokens, hidden) = the norm of x */
static bool record_norm(model *m, tape *t, slice x, const weight *w, const weight *b, slice y,
                        uint32_t tokens, err *e) {
    return layer_norm_record(
        t, variants_pick(&m->variants, &layer_norm_op, NULL, (shape){{tokens, m->shape.hidden}}, e),
        x, w->at, b->at, y, tokens, m->shape.hidden, get_own(m)->shape.eps, e);
}

/* mixed = the norm of x, mixed with that of the token before, which is in state for the first; the
 * last one is the new state. */
static bool record_shift(model *m, tape *t, const weight *w, const weight *b, const weight *mixes,
                         slice state, uint32_t tokens, err *e) {
    const rwkv7_scratch *a = &get_own(m)->scratch;
    uint32_t d = m->shape.hidden, count = mixes->columns / d;
    if (variants_fuses_shift(&m->variants, d, tokens))
        return layer_norm_shift_record(t,
                                       variants_pick(&m->variants, &layer_norm_shift_op, NULL,
                                                     (shape){{d, count, tokens > 1 ? tokens : 0}},
                                                     e),
                                       a->x, w->at, b->at, mixes->at, state, a->mixed, d, count,
                                       tokens, get_own(m)->shape.eps, e);
    return record_norm(m, t, a->x, w, b, a->normed, tokens, e) &&
           token_shift_record(t, &token_shift_op.kernels[0], a->normed, state, mixes->at, a->mixed,
                              tokens, d, count, e) &&
           buffer_copy_record(t, &buffer_copy_op.kernels[0],
                              model_take_row(a->normed, tokens - 1, d), state, d, e);
}

/* --- products --- */

static product_matrix make_product(const weight *w, slice x, slice y, uint32_t activation) {
    product_matrix p = weight_multiply(w, x, y);
    p.activation = activation;
    return p;
}

/* Products that do not depend on each other. Of many tokens, those of adapters are one launch where there
 * is a kernel for that. */
static bool record_products(model *m, tape *t, const product *p, err *e) {
    if (variants_fuses_token(&m->variants, m->fusion, p->tokens))
        return product_record(t, variants_pick_mixed(&m->variants, p), p, e);
    product adapters = {.tokens = p->tokens};
    uint32_t columns = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const product_matrix *item = &p->items[i];
        if (variants_pick_adapters(&m->variants, item->format, item->rows, item->columns,
                                   p->tokens)) {
            adapters.items[adapters.count++] = *item;
            columns = item->columns > columns ? item->columns : columns;
        } else if (!model_record_matrices(m, t, item, 1, p->tokens, e)) {
            return false;
        }
    }
    const product_matrix *first = &adapters.items[0];
    return adapters.count == 0 ||
           product_record(
               t,
               variants_pick_adapters(&m->variants, first->format, first->rows, columns, p->tokens),
               &adapters, e);
}

/* From the mixes to receptance, key, value and what the adapters make in between; from there to
 * decay, rate, gate and the share of the first layer's value. */
static bool record_projections(model *m, tape *t, uint32_t index, slice v, uint32_t tokens,
                               err *e) {
    const rwkv7_time_mix *l = &get_own(m)->weights.layers[index].time;
    const rwkv7_scratch *a = &get_own(m)->scratch;
    const struct {
        rwkv7_adapter which;
        rwkv7_mix mix;
        uint32_t inner, outer;
        slice out;
    } adapters[ADAPTERS] = {
        {ADAPTER_W, MIX_W, ACTIVATION_TANH, ACTIVATION_DECAY, a->w},
        {ADAPTER_A, MIX_A, ACTIVATION_NONE, ACTIVATION_SIGMOID, a->a},
        {ADAPTER_G, MIX_G, ACTIVATION_SIGMOID, ACTIVATION_NONE, a->g},
        {ADAPTER_V, MIX_V, ACTIVATION_NONE, ACTIVATION_SIGMOID, a->v_gate}, /* last: see count */
    };
    uint32_t count = index == 0 ? ADAPTERS - 1 : ADAPTERS;
    product from = {{weight_multiply(&l->receptance, rwkv7_take_mix(m, MIX_R, tokens), a->r),
                     weight_multiply(&l->key, rwkv7_take_mix(m, MIX_K, tokens), a->k),
                     weight_multiply(&l->value, rwkv7_take_mix(m, MIX_V, tokens), v)},
                    .count = 3 + count,
                    .tokens = tokens},
            to = {.count = count, .tokens = tokens};
    for (uint32_t i = 0; i < count; i++) {
        const adapter *w = &l->adapters[adapters[i].which];
        slice low = a->low[adapters[i].which];
        from.items[3 + i] = make_product(&w->down, rwkv7_take_mix(m, adapters[i].mix, tokens), low,
                                         adapters[i].inner);
        to.items[i] = make_product(&w->up, low, adapters[i].out, adapters[i].outer);
        to.items[i].bias = w->bias.at;
    }
    return record_products(m, t, &from, e) && record_products(m, t, &to, e);
}

/* --- layers --- */

/* y = what the heads read from their states after each token */
static bool record_heads(model *m, tape *t, uint32_t index, slice v, uint32_t tokens, err *e) {
    const rwkv7_time_mix *l = &get_own(m)->weights.layers[index].time;
    const rwkv7_scratch *a = &get_own(m)->scratch;
    const rwkv7_shape *s = &get_own(m)->shape;
    const variants_basis *choices = &m->variants;
    const shape sizes = {{tokens, s->heads, s->head_size}},
                packing = {{tokens, s->heads, s->head_size, index > 0}};
    slice state = get_own(m)->states[index].heads;
    time_mix_v7_slices x = {.r = a->r,
                            .w = a->w,
                            .k = a->k,
                            .v = v,
                            .a = a->a,
                            .g = a->g,
                            .k_k = l->k_k.at,
                            .k_a = l->k_a.at,
                            .r_k = l->r_k.at,
                            .norm_w = l->group_w.at,
                            .norm_b = l->group_b.at};
    if (index > 0) {
        x.v_gate = a->v_gate;
        x.v_first = a->v_first;
    }
    if (variants_fuses_token(choices, m->fusion, tokens))
        return time_mix_v7_token_record(t, &time_mix_v7_token_op.kernels[0], &x, state, a->y,
                                        s->heads, s->head_size, RWKV7_GROUP_EPS, e);
    slice packed = a->mixed; /* nothing reads the mixes any more */
    return time_mix_v7_prepare_record(
               t, variants_pick(choices, &time_mix_v7_prepare_op, NULL, packing, e), &x, packed,
               tokens, s->heads, s->head_size, e) &&
           time_mix_v7_record(t, variants_pick(choices, &time_mix_v7_op, NULL, sizes, e), a->r,
                              a->w, packed, state, a->y, tokens, s->heads, s->head_size, e) &&
           time_mix_v7_finish_record(
               t, variants_pick(choices, &time_mix_v7_finish_op, NULL, sizes, e), &x, packed, a->y,
               tokens, s->heads, s->head_size, RWKV7_GROUP_EPS, e);
}

static bool record_layer(model *m, tape *t, uint32_t index, uint32_t tokens, err *e) {
    const rwkv7_time_mix *l = &get_own(m)->weights.layers[index].time;
    const rwkv7_channel_mix *c = &get_own(m)->weights.layers[index].channel;
    const rwkv7_state *s = &get_own(m)->states[index];
    const rwkv7_scratch *a = &get_own(m)->scratch;
    slice v = index == 0 ? a->v_first : a->v; /* the first layer's is kept for the others */
    model_mark_layer(t, index);
    if (m->fusion == FUSION_NONE)
        return rwkv7_record_ops(m, t, index, tokens, e);
    if (!record_shift(m, t, &l->norm_w, &l->norm_b, &l->mixes, s->time_shift, tokens, e) ||
        !record_projections(m, t, index, v, tokens, e) ||
        !record_heads(m, t, index, v, tokens, e) ||
        !model_record_product(m, t, &l->output, a->y, a->x, true, tokens, e))
        return false;
    const product up = {{make_product(&c->key, rwkv7_take_mix(m, 0, tokens), a->activated,
                                      ACTIVATION_SQUARED_RELU)},
                        .count = 1,
                        .tokens = tokens};
    return record_shift(m, t, &c->norm_w, &c->norm_b, &c->mix, s->channel_shift, tokens, e) &&
           record_products(m, t, &up, e) &&
           model_record_product(m, t, &c->value, a->activated, a->x, true, tokens, e);
}

/* Only the logits of the last token are of use. */
static bool record_head(model *m, tape *t, uint32_t tokens, err *e) {
    const rwkv7 *r = get_own(m);
    uint32_t d = m->shape.hidden;
    slice last = model_take_row(r->scratch.x, tokens - 1, d),
          normed = model_take_row(r->scratch.normed, 0, d);
    tape_mark(t, "head");
    return record_norm(m, t, last, &r->weights.norm_w, &r->weights.norm_b, normed, 1, e) &&
           model_record_product(m, t, &r->weights.head, normed, m->logits, false, 1, e);
}

bool rwkv7_record(model *m, tape *t, slice ids, uint32_t tokens, const kernel *attention,
                  bool has_head, err *e) {
    (void)attention;
    const rwkv7_weights *w = &get_own(m)->weights;
    const rwkv7_scratch *a = &get_own(m)->scratch;
    if (!model_record_embedding(m, t, &w->embedding, ids, a->normed, tokens, e) ||
        !record_norm(m, t, a->normed, &w->embedding_norm_w, &w->embedding_norm_b, a->x, tokens, e))
        return false;
    for (uint32_t i = 0; i < m->shape.layers; i++)
        if (!record_layer(m, t, i, tokens, e))
            return false;
    return !has_head || record_head(m, t, tokens, e);
}
