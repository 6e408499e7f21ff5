/* rwkv7/record: the forward pass as launches. One token is decoding: its norm, shifts and state are
 * one launch, and on a GPU so are all products that do not depend on each other, and the whole time
 * mix. Many tokens are a tile of a prompt: everything but the recurrence goes through them side by
 * side. What a layer reads and writes is the same.
 *
 * And a layer with one launch per op, in the order in which other runners have them: 40 launches instead of
 * the 8 on a GPU. It exists to measure what fusing saves, and checks the ops by themselves on real
 * activations. */
#include "runner/choice/rules.h"
#include "rwkv7.h"

typedef struct {
    model *m;
    tape *t;
    uint32_t tokens, dim;
    const rwkv7 *own; /* the model's; the rest are parts of it */
    const rwkv7_shape *s;
    const rwkv7_scratch *a;
    const rwkv7_time_mix *l; /* of the layer */
    const rwkv7_channel_mix *c;
    const rwkv7_state *state;
    bool is_first; /* layer: its value is kept for the others */
    slice v;
    err *e;
} recording;

static const kernel *pick(const recording *r, const op *o, shape s) {
    return variants_pick(&r->m->variants, o, NULL, s, r->e);
}

/* Rows of a mix: scratch.mixed is (MIXES, tokens, hidden). */
static slice take_mix(const recording *r, uint32_t mix) {
    slice all = r->a->mixed;
    size_t bytes = (size_t)r->tokens * r->dim * sizeof(float);
    return slice_part(all.buffer, all.offset + mix * bytes, bytes);
}

/* y (tokens, hidden) = the norm of x */
static bool record_norm(const recording *r, slice x, const weight *w, const weight *b, slice y,
                        uint32_t tokens) {
    return layer_norm_record(r->t, pick(r, &layer_norm_op, (shape){{tokens, r->dim}}), x, w->at,
                             b->at, y, tokens, r->dim, r->s->eps, r->e);
}

/* The last row of `normed` is the new state. */
static bool record_last(const recording *r, slice state) {
    return buffer_copy_record(r->t, &buffer_copy_op.kernels[0],
                              model_take_row(r->a->normed, r->tokens - 1, r->dim), state, r->dim,
                              r->e);
}

/* mixed = the norm of x, mixed with that of the token before, which is in state for the first; the
 * last one is the new state. */
static bool record_shift(const recording *r, const weight *w, const weight *b, const weight *mixes,
                         slice state) {
    const rwkv7_scratch *a = r->a;
    uint32_t d = r->dim, count = mixes->columns / d;
    if (variants_fuses_shift(&r->m->variants, d, r->tokens)) {
        shape s = {{d, count, r->tokens > 1 ? r->tokens : 0}};
        return layer_norm_shift_record(r->t, pick(r, &layer_norm_shift_op, s), a->x, w->at, b->at,
                                       mixes->at, state, a->mixed, d, count, r->tokens, r->s->eps,
                                       r->e);
    }
    return record_norm(r, a->x, w, b, a->normed, r->tokens) &&
           token_shift_record(r->t, &token_shift_op.kernels[0], a->normed, state, mixes->at,
                              a->mixed, r->tokens, d, count, r->e) &&
           record_last(r, state);
}

/* --- products --- */

static product_matrix make_product(const weight *w, slice x, slice y, uint32_t activation) {
    product_matrix p = weight_multiply(w, x, y);
    p.activation = activation;
    return p;
}

/* x += W y */
static bool record_sum(const recording *r, const weight *w, slice y) {
    return model_record_product(r->m, r->t, w, y, r->a->x, true, r->tokens, r->e);
}

/* Products that do not depend on each other. Of many tokens, those of adapters are one launch where there
 * is a kernel for that. */
static bool record_products(const recording *r, const product *p) {
    if (variants_fuses_token(&r->m->variants, r->m->fusion, p->tokens))
        return product_record(r->t, variants_pick_mixed(&r->m->variants, p), p, r->e);
    product adapters = {.tokens = p->tokens};
    uint32_t columns = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const product_matrix *item = &p->items[i];
        if (variants_pick_adapters(&r->m->variants, item->format, item->rows, item->columns,
                                   p->tokens)) {
            adapters.items[adapters.count++] = *item;
            columns = item->columns > columns ? item->columns : columns;
        } else if (!model_record_matrices(r->m, r->t, item, 1, p->tokens, r->e)) {
            return false;
        }
    }
    const product_matrix *first = &adapters.items[0];
    return adapters.count == 0 ||
           product_record(r->t,
                          variants_pick_adapters(&r->m->variants, first->format, first->rows,
                                                 columns, p->tokens),
                          &adapters, r->e);
}

/* An adapter makes `out` from a mix by way of a few values. */
typedef struct {
    rwkv7_adapter which;
    rwkv7_mix mix;
    uint32_t inner, outer; /* activations */
    slice out;
} adapter_use;

/* Of V there is none in the first layer: it is the last. */
static uint32_t list_adapters(const recording *r, adapter_use out[ADAPTERS]) {
    out[0] = (adapter_use){ADAPTER_W, MIX_W, ACTIVATION_TANH, ACTIVATION_DECAY, r->a->w};
    out[1] = (adapter_use){ADAPTER_A, MIX_A, ACTIVATION_NONE, ACTIVATION_SIGMOID, r->a->a};
    out[2] = (adapter_use){ADAPTER_G, MIX_G, ACTIVATION_SIGMOID, ACTIVATION_NONE, r->a->g};
    out[3] = (adapter_use){ADAPTER_V, MIX_V, ACTIVATION_NONE, ACTIVATION_SIGMOID, r->a->v_gate};
    return r->is_first ? ADAPTERS - 1 : ADAPTERS;
}

/* From the mixes to receptance, key, value and what the adapters make in between; from there to
 * decay, rate, gate and the share of the first layer's value. */
static bool record_projections(const recording *r) {
    const rwkv7_time_mix *l = r->l;
    adapter_use uses[ADAPTERS];
    uint32_t count = list_adapters(r, uses);
    product from = {{weight_multiply(&l->receptance, take_mix(r, MIX_R), r->a->r),
                     weight_multiply(&l->key, take_mix(r, MIX_K), r->a->k),
                     weight_multiply(&l->value, take_mix(r, MIX_V), r->v)},
                    .count = 3 + count,
                    .tokens = r->tokens},
            to = {.count = count, .tokens = r->tokens};
    for (uint32_t i = 0; i < count; i++) {
        const adapter_use *u = &uses[i];
        const adapter *w = &l->adapters[u->which];
        slice low = r->a->low[u->which];
        from.items[3 + i] = make_product(&w->down, take_mix(r, u->mix), low, u->inner);
        to.items[i] = make_product(&w->up, low, u->out, u->outer);
        to.items[i].bias = w->bias.at;
    }
    return record_products(r, &from) && record_products(r, &to);
}

/* --- layers --- */

/* y = what the heads read from their states after each token */
static bool record_heads(const recording *r) {
    const rwkv7_time_mix *l = r->l;
    const rwkv7_scratch *a = r->a;
    const uint32_t tokens = r->tokens, heads = r->s->heads, size = r->s->head_size;
    const shape sizes = {{tokens, heads, size}}, packing = {{tokens, heads, size, !r->is_first}};
    slice packed = a->mixed; /* nothing reads the mixes any more */
    time_mix_v7_slices x = {.r = a->r,
                            .w = a->w,
                            .k = a->k,
                            .v = r->v,
                            .a = a->a,
                            .g = a->g,
                            .k_k = l->k_k.at,
                            .k_a = l->k_a.at,
                            .r_k = l->r_k.at,
                            .norm_w = l->group_w.at,
                            .norm_b = l->group_b.at};
    if (!r->is_first) {
        x.v_gate = a->v_gate;
        x.v_first = a->v_first;
    }
    if (variants_fuses_token(&r->m->variants, r->m->fusion, tokens))
        return time_mix_v7_token_record(r->t, &time_mix_v7_token_op.kernels[0], &x, r->state->heads,
                                        a->y, heads, size, RWKV7_GROUP_EPS, r->e);
    return time_mix_v7_prepare_record(r->t, pick(r, &time_mix_v7_prepare_op, packing), &x, packed,
                                      tokens, heads, size, r->e) &&
           time_mix_v7_record(r->t, pick(r, &time_mix_v7_op, sizes), a->r, a->w, packed,
                              r->state->heads, a->y, tokens, heads, size, r->e) &&
           time_mix_v7_finish_record(r->t, pick(r, &time_mix_v7_finish_op, sizes), &x, packed, a->y,
                                     tokens, heads, size, RWKV7_GROUP_EPS, r->e);
}

static bool record_layer(const recording *r) {
    const rwkv7_time_mix *l = r->l;
    const rwkv7_channel_mix *c = r->c;
    const product up = {
        {make_product(&c->key, take_mix(r, 0), r->a->activated, ACTIVATION_SQUARED_RELU)},
        .count = 1,
        .tokens = r->tokens};
    return record_shift(r, &l->norm_w, &l->norm_b, &l->mixes, r->state->time_shift) &&
           record_projections(r) && record_heads(r) && record_sum(r, &l->output, r->a->y) &&
           record_shift(r, &c->norm_w, &c->norm_b, &c->mix, r->state->channel_shift) &&
           record_products(r, &up) && record_sum(r, &c->value, r->a->activated);
}

/* --- one launch per op --- */

/* y = activation(W x) */
static bool multiply(const recording *r, const weight *w, slice x, slice y, uint32_t activation) {
    const product_matrix p = make_product(w, x, y, activation);
    return model_record_matrices(r->m, r->t, &p, 1, r->tokens, r->e);
}

/* One mix of `normed` into its place in `mixed`. */
static bool shift(const recording *r, const weight *mixes, slice state, uint32_t mix) {
    return token_shift_record(r->t, &token_shift_op.kernels[0], r->a->normed, state,
                              weight_take_values(mixes, mix * r->dim, r->dim).at, take_mix(r, mix),
                              r->tokens, r->dim, 1, r->e);
}

/* out = outer(up inner(down mixed) + bias) */
static bool adapt(const recording *r, const adapter_use *u) {
    const adapter *w = &r->l->adapters[u->which];
    slice low = r->a->low[u->which];
    if (!multiply(r, &w->down, take_mix(r, u->mix), low, u->inner) ||
        !multiply(r, &w->up, low, u->out, ACTIVATION_NONE))
        return false;
    return !w->bias.format || add_activate_record(r->t, &add_activate_op.kernels[0], w->bias.at,
                                                  u->out, r->tokens, r->dim, true, u->outer, r->e);
}

static bool project(const recording *r) {
    const rwkv7_time_mix *l = r->l;
    const rwkv7_scratch *a = r->a;
    adapter_use uses[ADAPTERS];
    uint32_t count = list_adapters(r, uses);
    bool ok = record_norm(r, a->x, &l->norm_w, &l->norm_b, a->normed, r->tokens);
    for (uint32_t i = 0; ok && i < MIXES; i++)
        ok = shift(r, &l->mixes, r->state->time_shift, i);
    ok = ok && record_last(r, r->state->time_shift) &&
         multiply(r, &l->receptance, take_mix(r, MIX_R), a->r, ACTIVATION_NONE) &&
         multiply(r, &l->key, take_mix(r, MIX_K), a->k, ACTIVATION_NONE) &&
         multiply(r, &l->value, take_mix(r, MIX_V), r->v, ACTIVATION_NONE);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = adapt(r, &uses[i]);
    return ok;
}

/* The removal key from the key as it was projected, then the key and the value of the state. */
static bool prepare(const recording *r, slice packed) {
    const rwkv7_time_mix *l = r->l;
    const rwkv7_scratch *a = r->a;
    slice kk = a->normed; /* whose last row is in the state by now */
    const blit_shape whole = {r->tokens, r->dim, r->dim, r->dim};
    const shape heads = {{r->tokens * r->s->heads, r->s->head_size}};
    return blit_record(r->t, &blit_op.kernels[0], a->k, kk, &whole, r->e) &&
           mul_record(r->t, &mul_op.kernels[0], l->k_k.at, kk, r->tokens, r->dim, true, r->e) &&
           l2_norm_record(r->t, pick(r, &l2_norm_op, heads), kk, heads.dim[0], heads.dim[1],
                          (float)RWKV7_KEY_EPS, r->e) &&
           control_k_v7_record(r->t, &control_k_v7_op.kernels[0], l->k_a.at, a->a, a->k, r->tokens,
                               r->dim, r->e) &&
           (r->is_first ||
            lerp_record(r->t, variants_pick_fixed(&r->m->variants, &lerp_op), a->v_gate, a->v_first,
                        r->v, r->tokens, r->dim, false, r->e)) &&
           pack_kvakk_record(r->t, &pack_kvakk_op.kernels[0], a->k, r->v, a->a, kk, packed,
                             r->tokens, r->dim, r->e);
}

static bool time_mix(const recording *r) {
    const rwkv7_time_mix *l = r->l;
    const rwkv7_scratch *a = r->a;
    const rwkv7_shape *s = r->s;
    const shape sizes = {{r->tokens, s->heads, s->head_size}};
    slice packed = a->mixed;
    return project(r) && prepare(r, packed) &&
           time_mix_v7_record(r->t, pick(r, &time_mix_v7_op, sizes), a->r, a->w, packed,
                              r->state->heads, a->y, r->tokens, s->heads, s->head_size, r->e) &&
           group_norm_record(r->t, pick(r, &group_norm_op, sizes), l->group_w.at, l->group_b.at,
                             a->y, r->tokens, s->heads, s->head_size, RWKV7_GROUP_EPS, r->e) &&
           time_first_v7_record(r->t, pick(r, &time_first_v7_op, sizes), l->r_k.at, a->r, packed,
                                a->y, r->tokens, s->heads, s->head_size, r->e) &&
           mul_record(r->t, &mul_op.kernels[0], a->g, a->y, r->tokens, r->dim, false, r->e) &&
           multiply(r, &l->output, a->y, a->k, ACTIVATION_NONE) &&
           add_record(r->t, &add_op.kernels[0], a->k, a->x, r->tokens, r->dim, false, r->e);
}

static bool channel_mix(const recording *r) {
    const rwkv7_channel_mix *c = r->c;
    const rwkv7_scratch *a = r->a;
    slice state = r->state->channel_shift;
    return record_norm(r, a->x, &c->norm_w, &c->norm_b, a->normed, r->tokens) &&
           shift(r, &c->mix, state, 0) &&
           multiply(r, &c->key, take_mix(r, 0), a->activated, ACTIVATION_SQUARED_RELU) &&
           multiply(r, &c->value, a->activated, a->y, ACTIVATION_NONE) &&
           channel_mix_v7_record(r->t, &channel_mix_v7_op.kernels[0], state, a->y, a->normed,
                                 r->tokens, r->dim, r->e) &&
           add_record(r->t, &add_op.kernels[0], a->normed, a->x, r->tokens, r->dim, false, r->e);
}

/* --- all of it --- */

/* Only the logits of the last token are of use. */
static bool record_head(const recording *r) {
    const rwkv7_weights *w = &r->own->weights;
    slice last = model_take_row(r->a->x, r->tokens - 1, r->dim),
          normed = model_take_row(r->a->normed, 0, r->dim);
    tape_mark(r->t, "head");
    return record_norm(r, last, &w->norm_w, &w->norm_b, normed, 1) &&
           model_record_product(r->m, r->t, &w->head, normed, r->m->logits, false, 1, r->e);
}

bool rwkv7_record(model *m, tape *t, slice ids, uint32_t tokens, const kernel *attention,
                  bool has_head, err *e) {
    (void)attention;
    const rwkv7 *own = m->own;
    const rwkv7_weights *w = &own->weights;
    const rwkv7_scratch *a = &own->scratch;
    recording r = {.m = m,
                   .t = t,
                   .tokens = tokens,
                   .dim = m->shape.hidden,
                   .own = own,
                   .s = &own->shape,
                   .a = a,
                   .e = e};
    if (!model_record_embedding(m, t, &w->embedding, ids, a->normed, tokens, e) ||
        !record_norm(&r, a->normed, &w->embedding_norm_w, &w->embedding_norm_b, a->x, tokens))
        return false;
    for (uint32_t i = 0; i < m->shape.layers; i++) {
        r.l = &w->layers[i].time;
        r.c = &w->layers[i].channel;
        r.state = &own->states[i];
        r.is_first = i == 0;
        r.v = i == 0 ? a->v_first : a->v;
        model_mark_layer(t, i);
        if (m->fusion == FUSION_NONE ? !time_mix(&r) || !channel_mix(&r) : !record_layer(&r))
            return false;
    }
    return !has_head || record_head(&r);
}
