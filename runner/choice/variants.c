/* variants: see variants.h. */
#include "variants.h"

#include <assert.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/record.h"
#include "rules.h"

static bool is_cuda(const variants_basis *v) {
    return v->facts->kind == DEVICE_CUDA && !v->facts->emulated;
}

const kernel *variants_find(const variants_basis *v, const choice *c, err *e) {
    const kernel *k = v->table ? tuned_find(v->table, c) : NULL;
    return k ? k : rules_find(v->facts, c, e);
}

static const kernel *pick(const variants_basis *v, const choice *c, err *e) {
    if (v->watch)
        v->watch->observe(v->watch->context, c);
    return variants_find(v, c, e);
}

const kernel *variants_pick(const variants_basis *v, const op *o, const weight_format *f, shape s,
                            err *e) {
    const choice c = {o, f, false, s};
    const kernel *k = pick(v, &c, e);
    return k && choice_is_apart(k) ? NULL : k;
}

const kernel *variants_pick_matvec(const variants_basis *v, const weight_format *f,
                                   bool accumulates, size_t offset, uint32_t out_dim,
                                   uint32_t in_dim, uint32_t tokens, err *e) {
    static const char *const narrow[] = {"vec16", "reuse", "plain"};
    choice c = {&matvec_op, f, accumulates, {{out_dim, in_dim, tokens}}};
    const kernel *k = pick(v, &c, e);
    for (size_t i = 0; k && offset % product_get_alignment(k) != 0 && i < COUNT_OF(narrow); i++) {
        const kernel *other = rules_find_variant(v->facts, &c, narrow[i], k->tokens != 0, true);
        k = other ? other : k;
    }
    return k;
}

const kernel *variants_pick_split(const variants_basis *v, const weight_format *f, bool accumulates,
                                  shape s) {
    const choice c = {&matvec_split_op, f, accumulates, s};
    const kernel *k = pick(v, &c, NULL);
    return k && choice_is_apart(k) ? NULL : k;
}

/* Any activation, and a bias: they cost the same. */
const kernel *variants_pick_activated(const variants_basis *v, const weight_format *f,
                                      uint32_t out_dim, uint32_t in_dim, uint32_t tokens, err *e) {
    shape s = {{out_dim, in_dim, tokens, ACTIVATION_SIGMOID, 1}};
    return variants_pick(v, &matvec_activate_op, f, s, e);
}

/* Eight bands from one power of 2 to the next, none smaller than 64 keys. */
uint32_t variants_round_keys(uint32_t keys) {
    uint64_t step = 64;
    while (16 * step < keys)
        step *= 2;
    uint64_t end = (keys + step - 1) / step * step;
    return end < UINT32_MAX ? (uint32_t)end : UINT32_MAX;
}

const kernel *variants_pick_decode_attention(const variants_basis *v, const weight_format *cache,
                                             shape s, size_t most_ranges) {
    s.dim[0] = variants_round_keys(s.dim[0]);
    choice c = {&decode_attention_op, cache, false, s};
    const kernel *k = pick(v, &c, NULL);
    if (choice_count_ranges(k) == 1 || choice_count_ranges(k) <= most_ranges)
        return k;
    c.shape.dim[0] = 1; /* one launch, as for the first key */
    return rules_find(v->facts, &c, NULL);
}

/* What a thread of the software device does alone costs least there. */
const kernel *variants_pick_fixed(const variants_basis *v, const op *o) {
    static const struct {
        const op *op;
        const char *soft, *gpu;
    } fixed[] = {
        {&argmax_op, "per_thread", "reduce"},
        {&ffn_silu_op, "per_thread", "plain"},
        {&rope_apply_table_op, "heads", "plain"},
        {&rmsnorm_matvec_op, "plain", "plain"}, /* as published: every row computes the norm */
        {&lerp_op, "reversed", "reversed"},
    };
    size_t i = 0, k = 0;
    while (i + 1 < COUNT_OF(fixed) && fixed[i].op != o)
        i++;
    const char *variant = v->facts->emulated ? fixed[i].soft : fixed[i].gpu;
    while (k < o->kernel_count && strcmp(o->kernels[k].variant, variant) != 0)
        k++;
    assert(fixed[i].op == o && k < o->kernel_count);
    return &o->kernels[k];
}

const kernel *variants_pick_adapters(const variants_basis *v, const weight_format *f, uint32_t rows,
                                     uint32_t columns, uint32_t tokens) {
    enum { FEW_TOKENS = 64, RANK = 512, STEP = 32 };
    static const char *const names[2][2] = {{"skinny", "skinny_split_k"}, {"wide", "wide_split_k"}};
    const char *variant = names[tokens > FEW_TOKENS][columns > RANK];
    if (!is_cuda(v) || !device_offers(v->facts, FEATURE_MATRICES, NULL) || f->values != 1 ||
        tokens < 2 || (rows > RANK && columns > RANK) || columns % STEP != 0)
        return NULL;
    size_t i = 0;
    while (strcmp(matvec_mixed_op.kernels[i].variant, variant) != 0)
        i++;
    return &matvec_mixed_op.kernels[i];
}

/* Does a kernel read all of them? */
static bool takes_products(const kernel *k, const product *p) {
    for (uint32_t i = 0; i < p->count; i++) {
        const product_matrix *m = &p->items[i];
        if (m->format->values != 1 && (m->format != k->format || m->columns > k->most ||
                                       m->columns % k->multiple_of || m->w.offset % 16))
            return false;
    }
    return true;
}

const kernel *variants_pick_mixed(const variants_basis *v, const product *p) {
    const op *o = &matvec_mixed_op;
    for (const kernel *k = o->kernels; k < o->kernels + o->kernel_count; k++)
        if (strcmp(k->variant, "bulk") == 0 && device_offers(v->facts, k->needs, NULL) &&
            takes_products(k, p))
            return k;
    return &o->kernels[0];
}

const kernel *variants_pick_embedding(const weight_format *f, err *e) {
    for (size_t i = 0; i < embedding_lookup_op.kernel_count; i++)
        if (embedding_lookup_op.kernels[i].format == f)
            return &embedding_lookup_op.kernels[i];
    return err_null(e, EXIT_CANNOT, "no kernel looks up embeddings in %s", f->name);
}

/* A layer of one token is short: on a GPU an extra launch costs as much as what it computes. On the
 * software device a launch costs little, and a threadgroup that waits at barriers much. */
bool variants_fuses_token(const variants_basis *v, model_fusion f, uint32_t tokens) {
    return tokens == 1 && (f == FUSION_MOST || (f != FUSION_NONE && !v->facts->emulated));
}

/* Of many tokens each row is normalised twice then, which only pays where a launch costs as much: on other
 * GPUs it was not measured. */
bool variants_fuses_shift(const variants_basis *v, uint32_t dim, uint32_t tokens) {
    enum { MOST_DIM = 4096 };
    return tokens == 1 || (is_cuda(v) && dim <= MOST_DIM);
}
