/* steps: see steps.h. The inputs are those of the case of the fused op. */
#include "steps.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "kernels/attention_case.h"
#include "kernels/kernels.h"
#include "kernels/record.h"

static const float eps = 1e-5f;

static const variants_basis *get_variants(const kernel_case *c) {
    return ((const steps *)c->op)->variants;
}

static bool add_scratch(kernel_case *c, const char *label, uint32_t tokens, uint32_t columns,
                        slice *out, err *e) {
    return case_output(c, label, size_multiply(tokens, columns) * sizeof(float), out, e);
}

/* Steps that fusions share ------------------------------------------------------------------ */

static bool add_product(kernel_case *c, slice w, slice x, slice y, uint32_t rows, uint32_t columns,
                        uint32_t tokens, err *e) {
    const kernel *k = variants_pick_matvec(get_variants(c), c->kernel->format, false, 0, rows,
                                           columns, tokens, e);
    return k && matvec_record(c->tape, k, w, x, y, rows, columns, tokens, e);
}

/* normed = the norm of x */
static bool add_norm(kernel_case *c, uint32_t columns, uint32_t tokens, slice *normed, err *e) {
    slice x, w;
    return case_input_f32(c, "x", size_multiply(tokens, columns), &x, e) &&
           case_input_f32(c, "norm_w", columns, &w, e) &&
           add_scratch(c, "normed", tokens, columns, normed, e) &&
           rmsnorm_record(c->tape, variants_pick_rmsnorm(get_variants(c), tokens, columns), x, w,
                          *normed, tokens, columns, eps, e);
}

/* y[i] = w[i] x: in one launch where that is chosen. rows[2] may be 0. */
static bool add_products(kernel_case *c, const slice w[3], slice x, const slice y[3],
                         const uint32_t rows[3], uint32_t columns, uint32_t tokens, err *e) {
    const kernel *batched = tokens == 1 && c->kernel->format == &format_q4_0
                                ? variants_pick_batched(get_variants(c), rows, columns)
                                : NULL;
    if (batched)
        return matvec_q4_0_batched_record(
            c->tape, batched, (slice[3]){w[0], w[1], rows[2] ? w[2] : w[1]}, x,
            (slice[3]){y[0], y[1], rows[2] ? y[2] : y[1]}, rows, columns, e);
    for (int i = 0; i < 3 && rows[i]; i++)
        if (!add_product(c, w[i], x, y[i], rows[i], columns, tokens, e))
            return false;
    return true;
}

static bool make_matrices(kernel_case *c, const uint32_t rows[3], uint32_t columns, uint32_t tokens,
                          slice w[3], slice y[3], err *e) {
    static const char *const names[] = {"wa", "wb", "wc"}, *const outs[] = {"ya", "yb", "yc"};
    for (int i = 0; i < 3 && rows[i]; i++)
        if (!case_input_weights(c, names[i], c->kernel->format, rows[i], columns, &w[i], e) ||
            !add_scratch(c, outs[i], tokens, rows[i], &y[i], e))
            return false;
    return true;
}

/* Fusions ----------------------------------------------------------------------------------- */

/* pos x heads x kv_heads x head_dim x in x tokens */
static bool build_qkv(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    uint32_t pos = dim[0], head_dim = dim[3], in = dim[4], tokens = dim[5];
    uint32_t rows[3] = {dim[1] * head_dim, dim[2] * head_dim, dim[2] * head_dim};
    size_t cells = size_multiply(pos + tokens + 1, rows[1]);
    slice normed, w[3], y[3], keys, values, freqs, place;
    float *turns = array_new(head_dim / 2, sizeof *turns);
    for (uint32_t i = 0; i < head_dim / 2; i++)
        turns[i] = (float)pow(10000, -2.0 * i / head_dim);
    bool ok =
        make_matrices(c, rows, in, tokens, w, y, e) &&
        case_input_f32(c, "k_cache", cells, &keys, e) &&
        case_input_f32(c, "v_cache", cells, &values, e) &&
        case_input_bytes(c, "freqs", turns, head_dim / 2 * sizeof *turns, &freqs, e) &&
        case_input_bytes(c, "pos", &pos, sizeof pos, &place, e) &&
        add_norm(c, in, tokens, &normed, e) && add_products(c, w, normed, y, rows, in, tokens, e) &&
        rope_apply_table_record(c->tape, variants_pick_rope_table(get_variants(c)), y[0], y[1],
                                tokens, dim[1], dim[2], head_dim, param_at(place), freqs, e);
    free(turns);
    if (!ok)
        return false;
    if (tokens == 1)
        return kv_cache_copy_record(c->tape, &kv_cache_copy_op.kernels[0], y[1], y[2], keys, values,
                                    rows[1], param_at(place), e);
    return kv_cache_copy_tokens_record(c->tape, &kv_cache_copy_tokens_op.kernels[0], y[1], y[2],
                                       keys, values, tokens, rows[1], param_at(place), e);
}

/* out x in x tokens */
static bool build_gate_up(kernel_case *c, err *e) {
    uint32_t out = c->shape.dim[0], in = c->shape.dim[1], tokens = c->shape.dim[2];
    const uint32_t rows[3] = {out, out, 0};
    slice normed, w[3], y[3], activated;
    return make_matrices(c, rows, in, tokens, w, y, e) &&
           add_scratch(c, "activated", tokens, out, &activated, e) &&
           add_norm(c, in, tokens, &normed, e) &&
           add_products(c, w, normed, y, rows, in, tokens, e) &&
           ffn_silu_record(c->tape, variants_pick_silu(get_variants(c)), y[0], y[1], activated,
                           tokens * out, e);
}

/* out x in */
static bool build_normed(kernel_case *c, err *e) {
    const uint32_t rows[3] = {c->shape.dim[0], 0, 0}, in = c->shape.dim[1];
    slice normed, w[3], y[3];
    return make_matrices(c, rows, in, 1, w, y, e) && add_norm(c, in, 1, &normed, e) &&
           add_product(c, w[0], normed, y[0], rows[0], in, 1, e);
}

/* a x b x c x in */
static bool build_batched(kernel_case *c, err *e) {
    const uint32_t *rows = c->shape.dim, in = c->shape.dim[3];
    slice x, w[3], y[3];
    bool ok = make_matrices(c, rows, in, 1, w, y, e) && case_input_f32(c, "x", in, &x, e);
    for (int i = 0; ok && i < 3 && rows[i]; i++)
        ok = add_product(c, w[i], x, y[i], rows[i], in, 1, e);
    return ok;
}

/* kv_len x heads x kv_heads x head_dim */
static bool build_ranges(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    attention_ranges_sizes s = {dim[1], dim[2], dim[3], choice_count_ranges(c->kernel)};
    uint32_t keys = dim[0], row = s.kv_heads * s.head_dim, width = s.heads * s.head_dim;
    attention_ranges_slices a;
    slice place;
    return case_input_f32(c, "q", width, &a.q, e) &&
           case_input_cache(c, "k_cache", keys, row, &a.k_cache, e) &&
           case_input_cache(c, "v_cache", keys, row, &a.v_cache, e) &&
           case_input_bytes(c, "kv_len", &keys, sizeof keys, &place, e) &&
           add_scratch(c, "parts", s.ranges, width, &a.parts, e) &&
           add_scratch(c, "log_sums", s.ranges, s.heads, &a.log_sums, e) &&
           add_scratch(c, "out", 1, width, &a.out, e) &&
           attention_ranges_record(c->tape, &a, &s, param_at(place),
                                   attention_get_scale(s.head_dim), e);
}

steps steps_new(const variants_basis *v, const choice *c) {
    static const struct {
        const op *fused;
        bool (*build)(kernel_case *c, err *e);
    } all[] = {{&qkv_rope_append_op, build_qkv},
               {&gate_up_silu_op, build_gate_up},
               {&rmsnorm_matvec_op, build_normed},
               {&matvec_batched_op, build_batched},
               {&decode_attention_op, build_ranges}};
    steps s = {.op = *c->op, .variants = v};
    size_t i = 0;
    while (i < COUNT_OF(all) && all[i].fused != c->op)
        i++;
    assert(i < COUNT_OF(all));
    s.op.build = all[i].build;
    return s;
}
