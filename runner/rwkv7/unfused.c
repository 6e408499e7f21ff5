/* rwkv7/unfused: a layer with one launch per op, in the order in which other runners have them:
 * 40 launches where record.c needs 8 on a GPU. It exists to measure what fusing saves,
 * and checks the ops by themselves on real activations. */
#include "parts.h"
#include "runner/choice/rules.h"

slice rwkv7_take_mix(const model *m, uint32_t mix, uint32_t tokens) {
    slice all = ((const rwkv7 *)m->own)->scratch.mixed;
    size_t bytes = (size_t)tokens * m->shape.hidden * sizeof(float);
    return slice_part(all.buffer, all.offset + mix * bytes, bytes);
}

typedef struct {
    model *m;
    tape *t;
    uint32_t tokens, dim;
    err *e;
} recording;

static const kernel *pick(const recording *r, const op *o, shape s) {
    return variants_pick(&r->m->variants, o, NULL, s, r->e);
}

/* y = activation(W x) */
static bool multiply(const recording *r, const weight *w, slice x, slice y, uint32_t activation) {
    product_matrix p = weight_multiply(w, x, y);
    p.activation = activation;
    return model_record_matrices(r->m, r->t, &p, 1, r->tokens, r->e);
}

static bool norm(const recording *r, const weight *w, const weight *b) {
    const rwkv7 *own = r->m->own;
    return layer_norm_record(r->t, pick(r, &layer_norm_op, (shape){{r->tokens, r->dim}}),
                             own->scratch.x, w->at, b->at, own->scratch.normed, r->tokens, r->dim,
                             own->shape.eps, r->e);
}

/* One mix of `normed` into its place in `mixed`. */
static bool shift(const recording *r, const weight *mixes, slice state, uint32_t mix) {
    const rwkv7_scratch *a = &((const rwkv7 *)r->m->own)->scratch;
    slice out = rwkv7_take_mix(r->m, mix, r->tokens);
    return token_shift_record(r->t, &token_shift_op.kernels[0], a->normed, state,
                              weight_take_values(mixes, mix * r->dim, r->dim).at, out, r->tokens,
                              r->dim, 1, r->e);
}

/* out = outer(up inner(down mixed) + bias) */
static bool adapt(const recording *r, const adapter *w, slice low, rwkv7_mix mix, uint32_t inner,
                  uint32_t outer, slice out) {
    if (!multiply(r, &w->down, rwkv7_take_mix(r->m, mix, r->tokens), low, inner) ||
        !multiply(r, &w->up, low, out, ACTIVATION_NONE))
        return false;
    return !w->bias.format || add_activate_record(r->t, &add_activate_op.kernels[0], w->bias.at,
                                                  out, r->tokens, r->dim, true, outer, r->e);
}

static bool project(const recording *r, uint32_t index, slice v) {
    const rwkv7 *own = r->m->own;
    const rwkv7_time_mix *l = &own->weights.layers[index].time;
    const rwkv7_scratch *a = &own->scratch;
    slice state = own->states[index].time_shift;
    if (!norm(r, &l->norm_w, &l->norm_b))
        return false;
    for (uint32_t i = 0; i < MIXES; i++)
        if (!shift(r, &l->mixes, state, i))
            return false;
    return buffer_copy_record(r->t, &buffer_copy_op.kernels[0],
                              model_take_row(a->normed, r->tokens - 1, r->dim), state, r->dim,
                              r->e) &&
           multiply(r, &l->receptance, rwkv7_take_mix(r->m, MIX_R, r->tokens), a->r,
                    ACTIVATION_NONE) &&
           multiply(r, &l->key, rwkv7_take_mix(r->m, MIX_K, r->tokens), a->k, ACTIVATION_NONE) &&
           multiply(r, &l->value, rwkv7_take_mix(r->m, MIX_V, r->tokens), v, ACTIVATION_NONE) &&
           adapt(r, &l->adapters[ADAPTER_W], a->low[ADAPTER_W], MIX_W, ACTIVATION_TANH,
                 ACTIVATION_DECAY, a->w) &&
           adapt(r, &l->adapters[ADAPTER_A], a->low[ADAPTER_A], MIX_A, ACTIVATION_NONE,
                 ACTIVATION_SIGMOID, a->a) &&
           adapt(r, &l->adapters[ADAPTER_G], a->low[ADAPTER_G], MIX_G, ACTIVATION_SIGMOID,
                 ACTIVATION_NONE, a->g) &&
           (index == 0 || adapt(r, &l->adapters[ADAPTER_V], a->low[ADAPTER_V], MIX_V,
                                ACTIVATION_NONE, ACTIVATION_SIGMOID, a->v_gate));
}

/* The removal key from the key as it was projected, then the key and the value of the state. */
static bool prepare(const recording *r, uint32_t index, slice v, slice packed) {
    const rwkv7 *own = r->m->own;
    const rwkv7_time_mix *l = &own->weights.layers[index].time;
    const rwkv7_scratch *a = &own->scratch;
    slice kk = a->normed; /* whose last row is in the state by now */
    const blit_shape whole = {r->tokens, r->dim, r->dim, r->dim};
    const shape heads = {{r->tokens * own->shape.heads, own->shape.head_size}};
    return blit_record(r->t, &blit_op.kernels[0], a->k, kk, &whole, r->e) &&
           mul_record(r->t, &mul_op.kernels[0], l->k_k.at, kk, r->tokens, r->dim, true, r->e) &&
           l2_norm_record(r->t, pick(r, &l2_norm_op, heads), kk, heads.dim[0], heads.dim[1],
                          (float)RWKV7_KEY_EPS, r->e) &&
           control_k_v7_record(r->t, &control_k_v7_op.kernels[0], l->k_a.at, a->a, a->k, r->tokens,
                               r->dim, r->e) &&
           (index == 0 || lerp_record(r->t, variants_pick_fixed(&r->m->variants, &lerp_op),
                                      a->v_gate, a->v_first, v, r->tokens, r->dim, false, r->e)) &&
           pack_kvakk_record(r->t, &pack_kvakk_op.kernels[0], a->k, v, a->a, kk, packed, r->tokens,
                             r->dim, r->e);
}

static bool time_mix(const recording *r, uint32_t index) {
    const rwkv7 *own = r->m->own;
    const rwkv7_time_mix *l = &own->weights.layers[index].time;
    const rwkv7_scratch *a = &own->scratch;
    const rwkv7_shape *s = &own->shape;
    const shape sizes = {{r->tokens, s->heads, s->head_size}};
    slice v = index == 0 ? a->v_first : a->v, packed = a->mixed;
    return project(r, index, v) && prepare(r, index, v, packed) &&
           time_mix_v7_record(r->t, pick(r, &time_mix_v7_op, sizes), a->r, a->w, packed,
                              own->states[index].heads, a->y, r->tokens, s->heads, s->head_size,
                              r->e) &&
           group_norm_record(r->t, pick(r, &group_norm_op, sizes), l->group_w.at, l->group_b.at,
                             a->y, r->tokens, s->heads, s->head_size, RWKV7_GROUP_EPS, r->e) &&
           time_first_v7_record(r->t, pick(r, &time_first_v7_op, sizes), l->r_k.at, a->r, packed,
                                a->y, r->tokens, s->heads, s->head_size, r->e) &&
           mul_record(r->t, &mul_op.kernels[0], a->g, a->y, r->tokens, r->dim, false, r->e) &&
           multiply(r, &l->output, a->y, a->k, ACTIVATION_NONE) &&
           add_record(r->t, &add_op.kernels[0], a->k, a->x, r->tokens, r->dim, false, r->e);
}

static bool channel_mix(const recording *r, uint32_t index) {
    const rwkv7 *own = r->m->own;
    const rwkv7_channel_mix *l = &own->weights.layers[index].channel;
    const rwkv7_scratch *a = &own->scratch;
    slice state = own->states[index].channel_shift;
    return norm(r, &l->norm_w, &l->norm_b) && shift(r, &l->mix, state, 0) &&
           multiply(r, &l->key, rwkv7_take_mix(r->m, 0, r->tokens), a->activated,
                    ACTIVATION_SQUARED_RELU) &&
           multiply(r, &l->value, a->activated, a->y, ACTIVATION_NONE) &&
           channel_mix_v7_record(r->t, &channel_mix_v7_op.kernels[0], state, a->y, a->normed,
                                 r->tokens, r->dim, r->e) &&
           add_record(r->t, &add_op.kernels[0], a->normed, a->x, r->tokens, r->dim, false, r->e);
}

bool rwkv7_record_ops(model *m, tape *t, uint32_t index, uint32_t tokens, err *e) {
    const recording r = {m, t, tokens, m->shape.hidden, e};
    return time_mix(&r, index) && channel_mix(&r, index);
}
