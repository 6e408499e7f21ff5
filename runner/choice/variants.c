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

/* The kernel of this variant that the device offers and that takes the choice, or NULL. */
static const kernel *find_taker(const device_facts *d, const choice *c, const char *variant,
                                bool is_many) {
    for (size_t i = 0; i < c->op->kernel_count; i++) {
        const kernel *k = &c->op->kernels[i];
        if ((k->tokens != 0) == is_many && strcmp(k->variant, variant) == 0 &&
            device_offers(d, k->needs, NULL) && choice_takes(c, k, NULL))
            return k;
    }
    return NULL;
}

/* On the software device lanes that never meet are a plain loop, so one thread per row wins for one
 * token as for many (make bench-soft), and for one token a strip of rows per thread, where there is
 * a kernel for it: Q4_0 takes half of the time. On a GPU many tokens share each decoded weight. Few
 * rows, or rows of few tokens, fill a GPU only if a simdgroup takes few of them; more share the x
 * that they load. */
enum { FEW_ROWS = 8192, FEW_TOKENS = 16 };

/* Several tokens go through tiles, which are multiplied as matrices: large ones as soon as they occupy most cores of a large GPU. (On an
 * H200 with 512 tokens, 72 large tiles took as long as split ones, 192 of them 7 % less.) */
static const char *name_tiles(const device_facts *d, uint32_t rows, uint32_t tokens) {
    enum { ENOUGH = 96 };
    if (!device_offers(d, FEATURE_MATRICES, NULL))
        return "";
    if (tokens <= FEW_TOKENS)
        return "tiled_few";
    return divide_up(rows, 64) * divide_up(tokens, 64) >= ENOUGH ? "tiled" : "tiled_split";
}

/* A product alone takes the tiles of a few tokens as long as there are not too many of them (64 tokens,
 * H200: 4.3 us instead of 5.5 for 576x576, 6.9 instead of 11.8 for 576x1536, 7.7 instead of 8.9 for
 * 1536x576), and of a large matrix those that copy its weights first (4096x4096 with 8 tokens: 9.5 us
 * instead of 14). Large tiles are simdgroup matrices on Metal, where GPUs have instructions for them. */
enum { LARGE = 4096 };
static const char *name_product_tiles(const device_facts *d, uint32_t rows, uint32_t tokens) {
    enum { TOO_MANY = 1024 };
    if (!device_offers(d, FEATURE_MATRICES, NULL))
        return "";
    if (tokens <= FEW_TOKENS && rows >= LARGE)
        return "tiled_stream";
    if (divide_up(rows, 16) * divide_up(tokens, 8) < TOO_MANY)
        return "tiled_few";
    const char *tiles = name_tiles(d, rows, tokens);
    return d->kind == DEVICE_METAL && strcmp(tiles, "tiled") == 0 ? "matrix" : tiles;
}

/* Rows by way of threadgroup memory: each threadgroup has 16 or 32 of them and loads all of x, so that
 * there must be enough of them for all cores, and of columns for all lanes. (On an H200 4096x4096 takes
 * half of the time of lean_rows. Other GPUs were not measured, and need the memory for other things.) */
static bool is_for_stream(const device_facts *d, uint32_t out_dim, uint32_t in_dim,
                          uint32_t tokens) {
    enum { ENOUGH_COLUMNS = 2048 };
    return d->kind == DEVICE_CUDA && tokens == 1 && out_dim >= LARGE && in_dim >= ENOUGH_COLUMNS;
}

/* The same of rows that bulk copies bring before the launch before has ended. For one token that pays as long
 * as all threadgroups of this launch and of the next are on the cores at the same time, in Q4_0 always.
 * (H200, 4096x4096: Q4_0 3.3 us instead of 4.25, Q4_K 3.8 instead of 4.6, Q6_K 5.4 instead of 7.5; 14336x4096: Q4_0
 * 12.0 instead of 12.6, Q6_K as long, Q4_K 14.1 instead of 13.1. With 8 tokens 5.1 us instead of 9.6, and 19
 * instead of 36.) */
static const char *name_near(const device_facts *d, const weight_format *f, uint32_t out_dim,
                             uint32_t in_dim, uint32_t tokens) {
    enum { ROWS_PER_CORE = 64 };
    if (is_for_stream(d, out_dim, in_dim, tokens))
        return f == &format_q4_0 || out_dim <= ROWS_PER_CORE * d->cores ? "near" : "";
    return tokens > 1 && tokens <= FEW_TOKENS && out_dim >= LARGE ? "tiled_near" : "";
}

static const kernel *rule_product(const device_facts *d, const choice *c, err *e) {
    uint32_t out_dim = c->shape.dim[0], in_dim = c->shape.dim[1], tokens = c->shape.dim[2];
    bool is_many = d->emulated || tokens > 1;
    bool is_small = is_many ? tokens <= FEW_TOKENS : out_dim <= FEW_ROWS;
    const char *const for_gpu[] = {name_product_tiles(d, out_dim, tokens),
                                   name_tiles(d, out_dim, tokens), is_small ? "lean" : "lean_rows",
                                   is_many ? "reuse" : "rowblock", "plain"},
                      *const for_cpu[COUNT_OF(for_gpu)] = {"alone", "plain", "", "", ""};
    const char *const *wanted = d->emulated ? for_cpu : for_gpu;
    const kernel *k = find_taker(d, c, name_near(d, c->format, out_dim, in_dim, tokens), is_many);
    if (!k && is_for_stream(d, out_dim, in_dim, tokens))
        k = find_taker(d, c, "stream", false);
    if (d->emulated && tokens == 1)
        k = find_taker(d, c, "strip", false);
    for (size_t i = 0; !k && i < COUNT_OF(for_gpu); i++)
        k = find_taker(d, c, wanted[i], is_many);
    if (!k)
        err_set(e, EXIT_CANNOT, "no kernel multiplies rows of %u weights in %s", in_dim,
                c->format->name);
    return k;
}

/* A whole threadgroup for a row pays where its simdgroups run side by side, for one row as for
 * many. On the software device a sum over lanes costs as much as the row. */
static const kernel *rule_rmsnorm(const device_facts *d, const choice *c, err *e) {
    uint32_t tokens = c->shape.dim[0];
    (void)e;
    if (d->emulated)
        return find_variant(&rmsnorm_op, tokens == 1 ? "alone" : "rows_simdgroup");
    return find_variant(&rmsnorm_op, "rows");
}

/* Many simdgroups for a head pay when there are many keys and simdgroups run side by side. */
static const kernel *pick_decode_attention(const device_facts *d, const choice *c) {
    const kernel *k = find_variant(&decode_attention_op, d->emulated ? "alone" : "spread");
    return choice_takes(c, k, NULL)
               ? k
               : find_variant(&decode_attention_op, d->emulated ? "plain" : "threadgroup");
}

/* One threadgroup per head reads up to 512 keys at once; ranges of about 256 keys read more of them with
 * more cores, as long as each head's ranges have a core of their own, and cost one more launch.
 * SmolLM-135M on an H200 (9 heads, 132 cores), tokens per second after 480, 544, 1400 and 1900 tokens: in one
 * launch 2555, 2382, - and 1720, in 4 ranges 2466, 2459, 2246 and 2217, in 8 2435, 2427, 2390 and 2363, in 14
 * 2390, 2390, 2356 and 2336, in 16 2150, 2151, 2135 and 2123. */
static const kernel *rule_decode_attention(const device_facts *d, const choice *c, err *e) {
    enum { FEW_KEYS = 512, KEYS_OF_A_RANGE = 256, CORES = 132 };
    uint32_t keys = c->shape.dim[0], heads = c->shape.dim[1];
    uint32_t wanted = divide_up(keys, KEYS_OF_A_RANGE),
             most = (d->cores ? d->cores : CORES) / heads;
    uint32_t count = wanted < most ? wanted : most;
    while (count > 1 && choice_count_ranges(choice_find_ranges(count)) > most)
        count--;
    const kernel *ranges = choice_find_ranges(count);
    (void)e;
    return d->emulated || keys <= FEW_KEYS || count < 2 || !choice_takes(c, ranges, NULL)
               ? pick_decode_attention(d, c)
               : ranges;
}

/* On a GPU a launch costs more than computing a norm once per simdgroup; on a CPU it is the other
 * way round. */
static const kernel *find_fused(const device_facts *d, const choice *c, uint32_t rows,
                                uint32_t tokens) {
    return d->emulated
               ? NULL
               : find_taker(d, c, tokens == 1 ? "plain" : name_tiles(d, rows, tokens), tokens > 1);
}

static const kernel *rule_qkv(const device_facts *d, const choice *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    (void)e;
    return find_fused(d, c, (dim[1] + 2 * dim[2]) * dim[3], dim[5]);
}

static const kernel *rule_gate_up(const device_facts *d, const choice *c, err *e) {
    (void)e;
    return find_fused(d, c, 2 * c->shape.dim[0], c->shape.dim[2]);
}

static const kernel *rule_normed_matvec(const device_facts *d, const choice *c, err *e) {
    (void)e;
    return d->emulated ? NULL : find_taker(d, c, "onepass", false);
}

/* On a GPU a few tokens need a whole threadgroup for each head to fill it, and for more of them blocks
 * of keys in threadgroup memory pay. */
static const kernel *rule_prefill_attention(const device_facts *d, const choice *c, err *e) {
    uint32_t tokens = c->shape.dim[0];
    const kernel *any = find_variant(&prefill_attention_op, "queryblock");
    const kernel *k =
        find_variant(&prefill_attention_op, tokens > FEW_TOKENS ? "blocks" : "spread");
    (void)e;
    return d->emulated || !choice_takes(c, k, NULL) ? any : k;
}

/* Fewer launches are worth more on a GPU than the better kernel for each product. */
static const kernel *rule_batched(const device_facts *d, const choice *c, err *e) {
    (void)c;
    (void)e;
    return d->emulated ? NULL : find_variant(&matvec_batched_op, "plain");
}

static const kernel *rule_alone(const device_facts *d, const choice *c, err *e) {
    (void)e;
    return d->emulated ? find_variant(c->op, "alone") : &c->op->kernels[0];
}

static const struct {
    const op *op;
    /* NULL without e set: a launch for each step. */
    const kernel *(*find)(const device_facts *d, const choice *c, err *e);
} rules[] = {
    {&matvec_op, rule_product},
    {&matvec_activate_op, rule_product},
    {&rmsnorm_op, rule_rmsnorm},
    {&decode_attention_op, rule_decode_attention},
    {&prefill_attention_op, rule_prefill_attention},
    {&qkv_rope_append_op, rule_qkv},
    {&gate_up_silu_op, rule_gate_up},
    {&rmsnorm_matvec_op, rule_normed_matvec},
    {&matvec_batched_op, rule_batched},
    {&layer_norm_op, rule_alone},
    {&layer_norm_shift_op, rule_alone},
    {&l2_norm_op, rule_alone},
    {&group_norm_op, rule_alone},
    {&time_mix_v7_prepare_op, rule_alone},
    {&time_mix_v7_op, rule_alone},
    {&time_mix_v7_finish_op, rule_alone},
    {&time_first_v7_op, rule_alone},
};

static size_t find_rule(const op *o) {
    size_t i = 0;
    while (i < COUNT_OF(rules) && rules[i].op != o)
        i++;
    return i;
}

bool variants_has_rule(const op *o) {
    return find_rule(o) < COUNT_OF(rules);
}

const kernel *variants_find_rule(const device_facts *d, const choice *c, err *e) {
    size_t i = find_rule(c->op);
    err own = {.code = EXIT_OK};
    if (i == COUNT_OF(rules)) {
        err_set(e, EXIT_USAGE, "models have no choice of %s", c->op->name);
        return NULL;
    }
    const kernel *k = rules[i].find(d, c, &own);
    if (own.code != EXIT_OK && e)
        *e = own;
    return k || own.code != EXIT_OK ? k : choice_find_apart(c);
}

/* Picks ------------------------------------------------------------------------------------- */

const kernel *variants_find(const variants_basis *v, const choice *c, err *e) {
    const kernel *k = v->table ? tuned_find(v->table, c) : NULL;
    return k ? k : variants_find_rule(v->facts, c, e);
}

static const kernel *pick(const variants_basis *v, const choice *c, err *e) {
    if (v->watch)
        v->watch->observe(v->watch->context, c);
    return variants_find(v, c, e);
}

/* A kernel of the op, or NULL for a launch of each step. */
static const kernel *pick_fused(const variants_basis *v, const choice *c) {
    const kernel *k = pick(v, c, NULL);
    return k && choice_is_apart(k) ? NULL : k;
}

const kernel *variants_pick_matvec(const variants_basis *v, const weight_format *f,
                                   bool accumulates, size_t offset, uint32_t out_dim,
                                   uint32_t in_dim, uint32_t tokens, err *e) {
    static const char *const narrow[] = {"lean", "reuse", "plain"};
    choice c = {&matvec_op, f, accumulates, {{out_dim, in_dim, tokens}}};
    const kernel *k = pick(v, &c, e);
    for (size_t i = 0; k && offset % matvec_get_alignment(k) != 0 && i < COUNT_OF(narrow); i++) {
        const kernel *other = find_taker(v->facts, &c, narrow[i], k->tokens != 0);
        k = other ? other : k;
    }
    return k;
}

/* Any activation, and a bias: they cost the same. */
const kernel *variants_pick_activated(const variants_basis *v, const weight_format *f,
                                      uint32_t out_dim, uint32_t in_dim, uint32_t tokens, err *e) {
    choice c = {&matvec_activate_op, f, false, {{out_dim, in_dim, tokens, ACTIVATION_SIGMOID, 1}}};
    return pick(v, &c, e);
}

const kernel *variants_pick_embedding(const weight_format *f, err *e) {
    for (size_t i = 0; i < embedding_lookup_op.kernel_count; i++)
        if (embedding_lookup_op.kernels[i].format == f)
            return &embedding_lookup_op.kernels[i];
    err_set(e, EXIT_CANNOT, "no kernel looks up embeddings in %s", f->name);
    return NULL;
}

/* What a thread of the software device does alone costs least there. */
const kernel *variants_pick_argmax(const variants_basis *v) {
    return find_variant(&argmax_op, v->facts->emulated ? "alone" : "reduce");
}

const kernel *variants_pick_silu(const variants_basis *v) {
    return find_variant(&ffn_silu_op, v->facts->emulated ? "alone" : "plain");
}

const kernel *variants_pick_rope_table(const variants_basis *v) {
    return find_variant(&rope_apply_table_op, v->facts->emulated ? "heads" : "plain");
}

const kernel *variants_pick_rmsnorm(const variants_basis *v, uint32_t tokens, uint32_t dim) {
    choice c = {&rmsnorm_op, NULL, false, {{tokens, dim}}};
    return pick(v, &c, NULL);
}

/* Eight bands from one power of 2 to the next, none smaller than 64 keys. */
uint32_t variants_round_keys(uint32_t keys) {
    uint64_t step = 64;
    while (16 * step < keys)
        step *= 2;
    uint64_t end = (keys + step - 1) / step * step;
    return end < UINT32_MAX ? (uint32_t)end : UINT32_MAX;
}

const kernel *variants_pick_decode_attention(const variants_basis *v, const variants_heads *h,
                                             uint32_t keys, size_t most_ranges) {
    choice c = {&decode_attention_op,
                NULL,
                false,
                {{variants_round_keys(keys), h->heads, h->kv_heads, h->head_dim}}};
    const kernel *k = pick(v, &c, NULL);
    uint32_t ranges = choice_count_ranges(k);
    return ranges == 1 || ranges <= most_ranges ? k : pick_decode_attention(v->facts, &c);
}

const kernel *variants_pick_prefill_attention(const variants_basis *v, const variants_heads *h,
                                              uint32_t tokens, uint32_t start) {
    choice c = {&prefill_attention_op,
                NULL,
                false,
                {{tokens, variants_round_keys(start), h->heads, h->kv_heads, h->head_dim}}};
    return pick(v, &c, NULL);
}

const kernel *variants_pick_qkv(const variants_basis *v, const weight_format *f,
                                const variants_heads *h, uint32_t in_dim, uint32_t tokens) {
    choice c = {
        &qkv_rope_append_op, f, false, {{0, h->heads, h->kv_heads, h->head_dim, in_dim, tokens}}};
    return pick_fused(v, &c);
}

const kernel *variants_pick_gate_up(const variants_basis *v, const weight_format *f,
                                    uint32_t out_dim, uint32_t in_dim, uint32_t tokens) {
    choice c = {&gate_up_silu_op, f, false, {{out_dim, in_dim, tokens}}};
    return pick_fused(v, &c);
}

const kernel *variants_pick_normed_matvec(const variants_basis *v, const weight_format *f,
                                          uint32_t out_dim, uint32_t in_dim) {
    choice c = {&rmsnorm_matvec_op, f, false, {{out_dim, in_dim}}};
    return pick_fused(v, &c);
}

const kernel *variants_pick_row_fused(const weight_format *f) {
    return f != &format_q4_0 ? NULL : find_variant(&rmsnorm_matvec_op, "plain");
}

const kernel *variants_pick_batched(const variants_basis *v, const uint32_t rows[3],
                                    uint32_t in_dim) {
    choice c = {&matvec_batched_op, &format_q4_0, false, {{rows[0], rows[1], rows[2], in_dim}}};
    return pick_fused(v, &c);
}

/* A layer of one token is short: on a GPU a launch more costs as much as what it computes. On the
 * software device a launch costs little, and a threadgroup that waits at barriers much. */
static bool is_fused(const device_facts *d, model_fusion f, uint32_t tokens) {
    return tokens == 1 && (f == FUSION_MOST || (f != FUSION_NONE && !d->emulated));
}

const kernel *variants_pick_mixed(const variants_basis *v, model_fusion f, uint32_t tokens) {
    return is_fused(v->facts, f, tokens) ? &matvec_mixed_op.kernels[0] : NULL;
}

const kernel *variants_pick_time_mix_token(const variants_basis *v, model_fusion f,
                                           uint32_t tokens) {
    return is_fused(v->facts, f, tokens) ? &time_mix_v7_token_op.kernels[0] : NULL;
}

const kernel *variants_pick_alone(const variants_basis *v, const op *o, shape s) {
    choice c = {o, NULL, false, s};
    return pick(v, &c, NULL);
}

const kernel *variants_pick_reversed_lerp(void) {
    return find_variant(&lerp_op, "reversed");
}
