/* variants: see variants.h. Each choice says what it rests on. */
#include "variants.h"

#include <assert.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/record.h"

static const kernel *find_variant(const op *o, const char *variant) {
    size_t i = 0;
    while (i < o->kernel_count && strcmp(o->kernels[i].variant, variant) != 0)
        i++;
    assert(i < o->kernel_count);
    return &o->kernels[i];
}

/* The kernel of this variant for these weights that takes rows of in_dim, or NULL. */
static const kernel *find_matvec(const op *o, const char *variant, const weight_format *f,
                                 bool accumulates, bool is_many, uint32_t in_dim) {
    for (size_t i = 0; i < o->kernel_count; i++) {
        const kernel *k = &o->kernels[i];
        if (k->format == f && k->accumulates == accumulates && (k->tokens != 0) == is_many &&
            strcmp(k->variant, variant) == 0 && (!k->multiple_of || in_dim % k->multiple_of == 0))
            return k;
    }
    return NULL;
}

/* On the software device lanes that never meet are a plain loop, so one thread per row wins for one
 * token as for many (make bench-soft). On a GPU many tokens share each decoded weight. Few rows, or
 * rows of few tokens, fill a GPU only if a simdgroup takes few of them; more share the x that they
 * load. */
enum { FEW_ROWS = 8192, FEW_TOKENS = 16 };

/* Large batches go through tiles: the largest of which there are enough for the cores of a large GPU.
 * Where a format has no small ones, 8 tokens at a time are better than few large ones. Estimated. */
static const char *name_tiles(uint32_t rows, uint32_t tokens) {
    enum { ENOUGH = 128 };
    if (tokens <= FEW_TOKENS)
        return "tiled_few";
    if (divide_up(rows, 64) * divide_up(tokens, 64) >= ENOUGH)
        return "tiled";
    return divide_up(rows, 32) * divide_up(tokens, 32) >= ENOUGH ? "tiled_small" : "tiled_split";
}

static const kernel *pick_product(const op *o, const device_facts *d, const weight_format *f,
                                  bool accumulates, uint32_t out_dim, uint32_t in_dim,
                                  uint32_t tokens, err *e) {
    bool is_many = d->emulated || tokens > 1;
    bool is_small = is_many ? tokens <= FEW_TOKENS : out_dim <= FEW_ROWS;
    const char *const for_gpu[] = {name_tiles(out_dim, tokens), tokens > FEW_TOKENS ? "tiled" : "",
                                   is_small ? "lean" : "lean_rows", is_many ? "reuse" : "rowblock",
                                   "plain"},
                      *const for_cpu[COUNT_OF(for_gpu)] = {"alone", "plain", "", ""};
    const char *const *wanted = d->emulated ? for_cpu : for_gpu;
    const kernel *k = NULL;
    for (size_t i = 0; !k && i < COUNT_OF(for_gpu); i++)
        k = find_matvec(o, wanted[i], f, accumulates, is_many, in_dim);
    if (!k)
        err_set(e, EXIT_CANNOT, "no kernel multiplies rows of %u weights in %s", in_dim, f->name);
    return k;
}

const kernel *variants_pick_matvec(const device_facts *d, const weight_format *f, bool accumulates,
                                   uint32_t out_dim, uint32_t in_dim, uint32_t tokens, err *e) {
    return pick_product(&matvec_op, d, f, accumulates, out_dim, in_dim, tokens, e);
}

const kernel *variants_pick_activated(const device_facts *d, const weight_format *f,
                                      uint32_t out_dim, uint32_t in_dim, uint32_t tokens, err *e) {
    return pick_product(&matvec_activate_op, d, f, false, out_dim, in_dim, tokens, e);
}

const kernel *variants_pick_embedding(const weight_format *f, err *e) {
    for (size_t i = 0; i < embedding_lookup_op.kernel_count; i++)
        if (embedding_lookup_op.kernels[i].format == f)
            return &embedding_lookup_op.kernels[i];
    err_set(e, EXIT_CANNOT, "no kernel looks up embeddings in %s", f->name);
    return NULL;
}

/* A whole threadgroup for a row pays where its simdgroups run side by side. */
const kernel *variants_pick_rmsnorm(const device_facts *d, uint32_t tokens) {
    if (d->emulated)
        return find_variant(&rmsnorm_op, tokens == 1 ? "simdgroup" : "rows_simdgroup");
    return find_variant(&rmsnorm_op, tokens == 1 ? "threadgroup" : "rows");
}

/* Many simdgroups for a head pay when there are many keys and simdgroups run side by side. */
const kernel *variants_pick_decode_attention(const device_facts *d, uint32_t head_dim) {
    if (d->emulated)
        return find_variant(&decode_attention_op, "plain");
    const kernel *spread = find_variant(&decode_attention_op, "spread");
    return head_dim % spread->multiple_of == 0 ? spread
                                               : find_variant(&decode_attention_op, "threadgroup");
}

/* One threadgroup per head reads a long cache at the speed of one core of the GPU: on an H200 ranges
 * made tokens at a depth of 1900 a third faster. Where the launch more that they cost begins to pay
 * is estimated. */
uint32_t variants_pick_attention_ranges(const device_facts *d, uint32_t head_dim, size_t rows) {
    enum { FEW_KEYS = 512, RANGES = 16 };
    return d->emulated || head_dim % 32 != 0 || rows <= FEW_KEYS ? 1 : RANGES;
}

/* On a GPU a launch costs more than computing a norm once per simdgroup; on a CPU it is the other
 * way round. */
static const kernel *find_fused(const op *o, const device_facts *d, const weight_format *f,
                                uint32_t tokens) {
    enum { TYPICAL_ROWS = 2048 }; /* of all matrices of a launch together */
    const char *variant = tokens == 1 ? "plain" : name_tiles(TYPICAL_ROWS, tokens);
    for (size_t i = 0; !d->emulated && i < o->kernel_count; i++)
        if (o->kernels[i].format == f && strcmp(o->kernels[i].variant, variant) == 0)
            return &o->kernels[i];
    return NULL;
}

const kernel *variants_pick_qkv(const device_facts *d, const weight_format *f, uint32_t tokens) {
    return find_fused(&qkv_rope_append_op, d, f, tokens);
}

const kernel *variants_pick_gate_up(const device_facts *d, const weight_format *f,
                                    uint32_t tokens) {
    return find_fused(&gate_up_silu_op, d, f, tokens);
}

const kernel *variants_pick_normed_matvec(const device_facts *d, const weight_format *f) {
    return d->emulated || f != &format_q4_0 ? NULL : find_variant(&rmsnorm_matvec_op, "onepass");
}

const kernel *variants_pick_row_fused(const weight_format *f) {
    return f != &format_q4_0 ? NULL : find_variant(&rmsnorm_matvec_op, "plain");
}

/* Blocks of keys in threadgroup memory pay where simdgroups run side by side. */
const kernel *variants_pick_prefill_attention(const device_facts *d, uint32_t head_dim,
                                              uint32_t tokens) {
    const kernel *blocks = find_variant(&prefill_attention_op, "blocks");
    bool is_long = !d->emulated && tokens > FEW_TOKENS && head_dim % blocks->multiple_of == 0;
    return is_long ? blocks : find_variant(&prefill_attention_op, "queryblock");
}

/* Fewer launches are worth more on a GPU than the better kernel for each product. */
const kernel *variants_pick_batched(const device_facts *d) {
    return d->emulated ? NULL : find_variant(&matvec_batched_op, "plain");
}

/* A layer of one token is short: on a GPU a launch more costs as much as what it computes. On the
 * software device a launch costs little, and a threadgroup that waits at barriers much. */
static bool is_fused(const device_facts *d, model_fusion f, uint32_t tokens) {
    return tokens == 1 && (f == FUSION_MOST || (f != FUSION_NONE && !d->emulated));
}

const kernel *variants_pick_mixed(const device_facts *d, model_fusion f, uint32_t tokens) {
    return is_fused(d, f, tokens) ? &matvec_mixed_op.kernels[0] : NULL;
}

const kernel *variants_pick_time_mix_token(const device_facts *d, model_fusion f, uint32_t tokens) {
    return is_fused(d, f, tokens) ? &time_mix_v7_token_op.kernels[0] : NULL;
}

const kernel *variants_pick_alone(const device_facts *d, const op *o) {
    return d->emulated ? find_variant(o, "alone") : &o->kernels[0];
}

const kernel *variants_pick_reversed_lerp(void) {
    return find_variant(&lerp_op, "reversed");
}
