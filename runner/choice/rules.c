/* rules: see rules.h. They are the rows of one table. */
#include "rules.h"

#include <string.h>

#include "kernels/kernels.h"
#include "kernels/record.h"

/* What rules go by: rows and columns of the weights, or of attention the keys and all queries. */
typedef struct {
    uint32_t tokens, rows, columns;
} sizes;

typedef enum { PRODUCT, FUSED, NORMED, BATCHED, SPLIT, NORM, DECODE, PREFILL, SINGLE } kind;

static const struct {
    const op *op;
    kind kind;
} choices[] = {
    {&matvec_op, PRODUCT},
    {&matvec_activate_op, PRODUCT},
    {&qkv_rope_append_op, FUSED},
    {&qkv_rope_append_f16_op, FUSED},
    {&gate_up_silu_op, FUSED},
    {&rmsnorm_matvec_op, NORMED},
    {&matvec_batched_op, BATCHED},
    {&matvec_split_op, SPLIT},
    {&rmsnorm_op, NORM},
    {&decode_attention_op, DECODE},
    {&prefill_attention_op, PREFILL},
    {&layer_norm_op, SINGLE},
    {&layer_norm_shift_op, SINGLE},
    {&l2_norm_op, SINGLE},
    {&group_norm_op, SINGLE},
    {&time_mix_v7_op, SINGLE},
    {&time_mix_v7_prepare_op, SINGLE},
    {&time_mix_v7_finish_op, SINGLE},
    {&time_first_v7_op, SINGLE},
};

static size_t find_place(const op *o) {
    size_t i = 0;
    while (i < COUNT_OF(choices) && choices[i].op != o)
        i++;
    return i;
}

bool rules_has(const op *o) {
    return find_place(o) < COUNT_OF(choices);
}

static sizes get_sizes(kind k, const shape *s) {
    const uint32_t *d = s->dim;
    if (k == PRODUCT)
        return (sizes){d[2], d[0], d[1]};
    if (k == FUSED) /* gate and up; or queries, keys and values */
        return d[3] ? (sizes){d[5], (d[1] + 2 * d[2]) * d[3], d[4]} : (sizes){d[2], 2 * d[0], d[1]};
    if (k == BATCHED)
        return (sizes){1, d[0] + d[1] + d[2], d[3]};
    if (k == SPLIT)
        return (sizes){d[4], d[0] + d[1] + d[2], d[3]};
    if (k == NORMED)
        return (sizes){1, d[0], d[1]};
    if (k == DECODE) /* all heads of a row */
        return (sizes){1, d[0], d[1] * d[3]};
    return (sizes){k == NORM || k == PREFILL ? d[0] : 1, 0, 0};
}

/* Conditions -------------------------------------------------------------------------------- */

/* Where each limit comes from is measured; docs/speed.md has the times of whole models.
 *
 * MATRICES: several tokens are multiplied in tiles, if the GPU has units for that: large tiles as
 * soon as they occupy most cores of a large GPU (MANY_TILES), the tiles of a few tokens as long as
 * there are not too many of them (FEW_SMALL_TILES).
 *
 * MATRIX_TILES: a product of 8 x 8 is one instruction (is_one_product), and most cores have two large tiles. With
 * fewer, tiles of 32 x 32 with split columns are faster. (H200, 3 layers of 1B in Q5_0, tokens per second without, by
 * large and by small tiles: 8 tokens 4377, -, 9526; 64: 11012, 30507, 52660; 128: 12618, 49068, 76720; 512: 61888,
 * 124927, 90355.) F32 takes two instructions. (By tiled and by matrix, 64 tokens 19226 and 15272, 128: 35330 and 29471,
 * 512: 83109 and 84892.)
 *
 * WIDE: rows go by way of threadgroup memory. Each threadgroup has 16 or 32 of them and loads all
 * of x, so that there must be enough columns for all lanes. Only an H200 was measured, and other GPUs
 * need the memory for other things.
 *
 * WIDE_BLOCKS: fusing saves launches, but the fused kernels that do not copy ahead read such rows far
 * below the roof.
 *
 * FEW_FLOATS: fused products of several tokens, here of one. Of matrices in F16 of at most 64 MB they take less time
 * than the launches apart. (H200, tokens per second apart and fused: 1B 755 and 1142, 3 layers of 7B 2126 and 2231.)
 *
 * LONGER: a quarter of a row still keeps half of the warps of a thread block busy, so that four share it. (H200, 4 layers
 * of 7B with 14336 columns, tokens per second by bulk_chunks and bulk_cluster: Q4_0 4137 and 4289, Q4_K 4088 and 4255, Q5_K
 * 3627 and 3699, Q6_K 2738 and 3161, Q8_0 2734 and 2949; 8 layers of RWKV-7 1.5B with 8192: 2750 and 2851; 1B with
 * 5632 in Q4_0: 1996 and 1869.)
 *
 * SMALL_MINIMA: at most 2048 rows of 2048 columns in Q4_K or Q5_K. (H200, 1B with o of 2048x2048, tokens per second by bulk and bulk_chunks:
 * Q4_K 1834 and 1903, Q5_K 1782 and 1836; but Q4_0 1989 and 1954.)
 *
 * SHARED_CACHE: several heads share each head of the cache, and it is so long that reading it once for
 * each of them takes longer than what it costs to have them in one threadgroup: from 20 MB on that all
 * heads together would read. (H200, F32, tokens per second by ranges and shared: 1B with 32 heads of 4 at
 * 1900 keys 1539 and 1491, at 4096 1350 and 1412, at 32768 536 and 877; 8 layers of 7B with 32 heads of 8
 * at 1024 keys 2053 and 2067, at 4096 1714 and 1873, at 32768 681 and 1043.)
 *
 * TENSOR_CACHE: tensor cores take such a cache from 4 M numbers on, that is 16 MB in F32 and 8 in F16. (H200, us
 * of shared and mma: 1B at 4096 keys 6.1 and 4.5, at 32768 22.8 and 18.3, in F16 19.0 and 9.4.) But four heads
 * of 128 floats are as fast without: THIN_CACHE. (7B at 4096 keys 10.1 and 10.2, at 32768 62.4 and 63.6; in
 * F16 63.5 and 32.1.)
 *
 * DEEP_TILE: a prompt's few tokens, many keys before them. prefill_attention_mma has a thread block per head and 64
 * tokens, blocks has four: as long as these have a core each, a quarter of the cores would have to be four times as fast,
 * which tensor cores are not with floats. (H200, 2 layers of 7B with 32 heads of 128, F32, tokens per second by blocks and
 * mma: 64 tokens at depth 8192 24068 and 17253, 512 there 48283 and 77959, 512 at the start 217889 and 226650; 6 layers of
 * 1B with 32 heads of 64: 64 tokens at the start 94201 and 99073, 512 at depth 8192 33264 and 71030, in F16 130470 by mma.)
 * The same holds for long prompts with few heads, whose thread blocks leave cores idle. (135M with 9 heads of 64, 512
 * tokens at the start, the whole model: 86639 by blocks, 82807 by mma.) */
typedef enum {
    ALWAYS,
    MATRICES,
    MANY_TILES,
    FEW_TILES,
    FEW_SMALL_TILES,
    LARGE_TILES, /* MANY_TILES, but not FEW_SMALL_TILES */
    MATRIX_TILES,
    WIDE,
    LONG, /* more columns than threadgroup memory has room for at once */
    LONGER,
    SMALL_MINIMA,
    WIDE_BLOCKS,  /* WIDE, and no rest */
    FEW_FLOATS,   /* WIDE, and no more than 64 MB in half precision */
    FEWEST_TILES, /* WIDE, and tiles of 128 rows and 64 tokens for a quarter of the cores */
    FEWER_TILES,  /* for half of them */
    WIDE_TILES,   /* WIDE, and tiles of 128 rows and 128 tokens for most cores */
    BULK_TOKENS,  /* matvec has a kernel for a few tokens by bulk copies */
    THREE_BLOCKS, /* at least three chunks of 256 columns, as RWKV-7 0.1B has */
    SHARED_CACHE,
    TENSOR_CACHE,
    THIN_CACHE,
    DEEP_TILE
} condition;

static bool has_bulk_kernel(const weight_format *f, uint32_t columns) {
    for (const kernel *k = matvec_op.kernels; k < matvec_op.kernels + matvec_op.kernel_count; k++)
        if (k->format == f && k->tokens && (k->needs & FEATURE_BULK_COPIES) && columns <= k->most &&
            columns % k->multiple_of == 0)
            return true;
    return false;
}

/* Weights of at most 11 bits: halves, bfloats, and whole numbers in blocks of 32 (kernels/product/numbers.h). */
static bool is_one_product(const weight_format *f) {
    return f && (f->values == 32 || (f->values == 1 && f->bytes == 2));
}

static bool is_deep_tile(const device_facts *d, const choice *c) {
    enum { TILE = 64, BLOCKS = 4, DEEP = 4, LONG_PROMPT = 4 };
    const uint32_t *dim = c->shape.dim; /* tokens, start, heads */
    uint32_t tiles = divide_up(dim[0], TILE);
    uint64_t groups = (uint64_t)tiles * dim[2];
    bool is_deep = dim[1] / DEEP >= dim[0] && BLOCKS * groups <= d->cores,
         is_long = tiles >= LONG_PROMPT && groups < d->cores;
    return c->op == &prefill_attention_op && !c->format && (is_deep || is_long);
}

static bool holds(condition when, const device_facts *d, const choice *c, const sizes *s) {
    enum {
        ENOUGH_TILES = 96,
        SMALL_TILES = 1024,
        MANY_FLOATS = 512,
        COLUMNS = 2048,
        BULK_COLUMNS = 4096,
        CLUSTER_COLUMNS = 8192,
        BLOCK = 256,
        LARGE_TILE = 128,
        LONG_CACHE = 20 << 20,
        TENSOR_NUMBERS = 4 << 20,
        SMALL_MATRIX = 4 << 20,
        FLOATS = 32 << 20,
        THIN = 4,
        THIN_DIM = 128
    };
    uint32_t tiles = divide_up(s->rows, LARGE_TILE) * divide_up(s->tokens, 64);
    bool has_tiles = device_offers(d, FEATURE_MATRICES, NULL), is_wide = s->columns >= COLUMNS;
    uint32_t large = divide_up(s->rows, 64) * divide_up(s->tokens, 64);
    bool is_many = large >= ENOUGH_TILES,
         pays = is_one_product(c->format) || (c->format == &format_f32 && s->tokens >= MANY_FLOATS),
         is_few_small = divide_up(s->rows, 16) * divide_up(s->tokens, 8) < SMALL_TILES,
         fills =
             divide_up(s->rows, LARGE_TILE) * divide_up(s->tokens, LARGE_TILE) * 10 >= 9 * d->cores,
         has_minima = c->format == &format_q4_k || c->format == &format_q5_k,
         shares = c->op == &decode_attention_op && c->shape.dim[1] > c->shape.dim[2];
    uint64_t numbers = (uint64_t)s->rows * s->columns,
             cache_bytes = numbers * (c->format ? c->format->bytes : 4);
    bool is_shared = shares && cache_bytes >= LONG_CACHE,
         is_thin = is_shared && !c->format && c->shape.dim[3] == THIN_DIM &&
                   c->shape.dim[1] <= THIN * c->shape.dim[2];
    const bool all[] = {[ALWAYS] = true,
                        [MATRICES] = has_tiles,
                        [MANY_TILES] = has_tiles && is_many,
                        [FEW_TILES] = has_tiles && !is_many,
                        [FEW_SMALL_TILES] = has_tiles && is_few_small,
                        [LARGE_TILES] = has_tiles && is_many && !is_few_small,
                        [MATRIX_TILES] = has_tiles && pays && 2 * large >= 3 * d->cores,
                        [WIDE] = is_wide,
                        [LONG] = s->columns > BULK_COLUMNS,
                        [LONGER] = s->columns >= CLUSTER_COLUMNS,
                        [SMALL_MINIMA] =
                            has_minima && s->columns == COLUMNS && numbers <= SMALL_MATRIX,
                        [WIDE_BLOCKS] = is_wide && s->columns % BLOCK == 0,
                        [FEW_FLOATS] = is_wide && numbers <= FLOATS,
                        [FEWEST_TILES] = is_wide && 4 * tiles <= d->cores,
                        [FEWER_TILES] = is_wide && 2 * tiles <= d->cores,
                        [WIDE_TILES] = is_wide && s->tokens > 64 && fills,
                        [BULK_TOKENS] = has_bulk_kernel(c->format, s->columns),
                        [THREE_BLOCKS] = s->columns >= 3 * BLOCK,
                        [SHARED_CACHE] = is_shared,
                        [TENSOR_CACHE] = shares && numbers >= TENSOR_NUMBERS,
                        [THIN_CACHE] = is_thin,
                        [DEEP_TILE] = is_deep_tile(d, c)};
    return all[when];
}

/* The rules --------------------------------------------------------------------------------- */

enum { SOFT = 1, METAL = 2, CUDA = 4, GPU = METAL | CUDA };

typedef struct {
    kind kind;
    int devices;
    uint32_t tokens[2], rows[2]; /* from, to */
    condition when;
    const char *variant; /* of the kernel, or apart; NULL: the first one of the op */
} rule;

/* The first row that fits and whose kernel takes the choice decides; none: a launch for each step.
 *
 * On the software device lanes that never meet are a plain loop, so that threads that work alone win
 * for one token as for many (make bench-soft). A sum over lanes costs as much as a row, and a launch
 * little. On a GPU a launch costs more than computing a norm once per simdgroup, many
 * tokens share each decoded weight, and few rows, or rows of few tokens, fill it only if a
 * simdgroup takes few of them; more share the x that they load. */
/* clang-format off */
#define ANY UINT32_MAX
#define ONE {0, 1}
#define FEW {2, 16}
#define MANY {17, ANY}
#define EIGHT {2, 8}
#define SEVERAL {2, ANY}
#define ALL {0, ANY}
#define LARGE {4096, ANY}
#define MEDIUM {512, ANY}
static const rule rules[] = {
    /* kind   devices   tokens   rows         when              variant */
    {PRODUCT, SOFT,     ALL,     ALL,         ALWAYS,           "per_thread"},
    {PRODUCT, SOFT,     ALL,     ALL,         ALWAYS,           "plain"},
    {PRODUCT, CUDA,     ONE,     MEDIUM,      SMALL_MINIMA,     "bulk_chunks"},
    {PRODUCT, CUDA,     ONE,     MEDIUM,      WIDE,             "bulk"},
    {PRODUCT, CUDA,     ONE,     MEDIUM,      LONGER,           "bulk_cluster"},
    {PRODUCT, CUDA,     ONE,     MEDIUM,      LONG,             "bulk_chunks"},
    {PRODUCT, CUDA,     ONE,     MEDIUM,      WIDE,             "stream"},
    /* each weight is read once for 8 tokens, and by bulk copies */
    {PRODUCT, CUDA,     SEVERAL, MEDIUM,      WIDE,             "tiled_bulk"},
    {PRODUCT, CUDA,     SEVERAL, MEDIUM,      LONG,             "tiled_bulk_cluster"},
    {PRODUCT, CUDA,     SEVERAL, MEDIUM,      WIDE,             "tiled_stream"},
    {PRODUCT, GPU,      FEW,     LARGE,       ALWAYS,           "tiled_bulk"},
    /* copies its weights to threadgroup memory first, in wide loads */
    {PRODUCT, GPU,      FEW,     LARGE,       MATRICES,         "tiled_stream"},
    {PRODUCT, GPU,      FEW,     ALL,         MATRICES,         "tiled_skinny"},
    {PRODUCT, GPU,      MANY,    ALL,         FEW_SMALL_TILES,  "tiled_skinny"},
    /* simdgroup matrices, for which GPUs have instructions */
    {PRODUCT, METAL,    MANY,    ALL,         LARGE_TILES,      "matrix"},
    {PRODUCT, CUDA,     MANY,    ALL,         MATRIX_TILES,     "matrix"},
    {PRODUCT, GPU,      MANY,    ALL,         MATRICES,         "matrix_split_k"},
    {PRODUCT, CUDA,     {8, 16}, ALL,         MATRICES,         "matrix_split_k"},
    {PRODUCT, GPU,      MANY,    ALL,         MANY_TILES,       "tiled"},
    {PRODUCT, GPU,      MANY,    ALL,         FEW_TILES,        "tiled_split_k"},
    {PRODUCT, GPU,      ONE,     {0, 8192},   ALWAYS,           "vec16"},
    {PRODUCT, GPU,      ONE,     {8193, ANY}, ALWAYS,           "vec16_rows"},
    {PRODUCT, GPU,      FEW,     ALL,         ALWAYS,           "vec16"},
    /* four rows and 8 tokens are more than the registers of an M1 hold (docs/agx.md) */
    {PRODUCT, METAL,    MANY,    ALL,         ALWAYS,           "vec16"},
    {PRODUCT, GPU,      MANY,    ALL,         ALWAYS,           "vec16_rows"},
    {PRODUCT, GPU,      SEVERAL, ALL,         ALWAYS,           "reuse"},
    {PRODUCT, GPU,      ALL,     ALL,         ALWAYS,           "plain"},
    {FUSED,   CUDA,     ONE,     MEDIUM,      WIDE,             "bulk"},
    {FUSED,   CUDA,     ONE,     MEDIUM,      FEW_FLOATS,       "tiled_bulk"},
    {FUSED,   CUDA,     EIGHT,   MEDIUM,      WIDE,             "tiled_bulk"},
    {FUSED,   CUDA,     ALL,     ALL,         WIDE_BLOCKS,      "apart"},
    {FUSED,   GPU,      ONE,     ALL,         ALWAYS,           "plain"},
    {FUSED,   GPU,      FEW,     ALL,         MATRICES,         "tiled_skinny"},
    {FUSED,   GPU,      MANY,    ALL,         MANY_TILES,       "tiled"},
    {FUSED,   GPU,      MANY,    ALL,         FEW_TILES,        "tiled_split_k"},
    {NORMED,  CUDA,     ONE,     MEDIUM,      WIDE,             "bulk"},
    {NORMED,  CUDA,     ONE,     ALL,         WIDE_BLOCKS,      "apart"},
    {NORMED,  GPU,      ONE,     ALL,         ALWAYS,           "onepass"},
    /* fewer launches are worth more than the better kernel for each product */
    {BATCHED, CUDA,     ONE,     ALL,         WIDE_BLOCKS,      "apart"},
    {BATCHED, GPU,      ONE,     ALL,         ALWAYS,           "plain"},
    /* x is split into halves once for all products with it; columns are split where tiles are too few
     * to occupy the cores */
    {SPLIT,   CUDA,     EIGHT,   ALL,         BULK_TOKENS,      "apart"},
    {SPLIT,   CUDA,     SEVERAL, MEDIUM,      FEWEST_TILES,     "eighths"},
    {SPLIT,   CUDA,     SEVERAL, MEDIUM,      FEWER_TILES,      "quarters"},
    {SPLIT,   CUDA,     SEVERAL, MEDIUM,      WIDE_TILES,       "wide_groups"},
    {SPLIT,   CUDA,     SEVERAL, MEDIUM,      WIDE,             "groups"},
    {SPLIT,   CUDA,     {65, ANY}, MEDIUM,    THREE_BLOCKS,           "groups"},
    /* a whole threadgroup for a row pays where its simdgroups run side by side */
    {NORM,    SOFT,     ONE,     ALL,         ALWAYS,           "per_thread"},
    {NORM,    SOFT,     SEVERAL, ALL,         ALWAYS,           "rows_simdgroup"},
    {NORM,    GPU,      ALL,     ALL,         ALWAYS,           "rows"},
    {DECODE,  SOFT,     ALL,     ALL,         ALWAYS,           "per_thread"},
    {DECODE,  SOFT,     ALL,     ALL,         ALWAYS,           "plain"},
    /* tensor cores, so that a row takes no longer for many heads than for one */
    {DECODE,  CUDA,     ALL,     {513, ANY},  THIN_CACHE,       "shared"},
    {DECODE,  CUDA,     ALL,     {513, ANY},  TENSOR_CACHE,     "mma"},
    {DECODE,  CUDA,     ALL,     {513, ANY},  SHARED_CACHE,     "shared"},
    {DECODE,  GPU,      ALL,     {513, ANY},  ALWAYS,           "ranges"},
    {DECODE,  GPU|SOFT, ALL,     ALL,         ALWAYS,           "spread"},
    {DECODE,  GPU,      ALL,     ALL,         ALWAYS,           "threadgroup"},
    /* a few tokens need a whole threadgroup for each head to fill a GPU; for more of them blocks of
     * keys in threadgroup memory pay */
    {PREFILL, GPU,      {0, 16}, ALL,         ALWAYS,           "spread"},
    {PREFILL, CUDA,     MANY,    ALL,         DEEP_TILE,        "blocks"},
    {PREFILL, CUDA,     MANY,    ALL,         ALWAYS,           "mma"}, /* heads of 64 or 128 */
    {PREFILL, GPU,      MANY,    ALL,         ALWAYS,           "blocks"},
    {PREFILL, GPU|SOFT, ALL,     ALL,         ALWAYS,           "queryblock"},
    {PREFILL, GPU|SOFT, ALL,     ALL,         ALWAYS,           "blocks"}, /* F16: the others read floats */
    {SINGLE,  SOFT,     ALL,     ALL,         ALWAYS,           "per_thread"},
    {SINGLE,  CUDA,     ALL,     ALL,         ALWAYS,           "prefetch"},
    {SINGLE,  GPU,      ALL,     ALL,         ALWAYS,           NULL},
};
/* clang-format on */

static int get_device(const device_facts *d) {
    return d->emulated ? SOFT : d->kind == DEVICE_CUDA ? CUDA : METAL;
}

/* One threadgroup per head reads up to 512 keys at once; ranges of about 256 keys read more of them
 * with more cores, and cost one more launch. More ranges than there are cores for all heads are slower
 * again (docs/speed.md). Where heads share a threadgroup, that reads 128 keys of 64 dimensions at once, or 64 of 128. */
static const kernel *find_ranges(const device_facts *d, const choice *c, const char *variant) {
    enum { CORES = 132 };
    uint32_t keys = c->shape.dim[0], heads = c->shape.dim[1], kv_heads = c->shape.dim[2];
    uint32_t rows = choice_find_ranges(c->format, variant, 1)->rows;
    uint32_t at_once = rows > 1 ? 128 * 64 / c->shape.dim[3] : 256,
             wanted = divide_up(keys, at_once ? at_once : 1),
             most = (d->cores ? d->cores : CORES) / (kv_heads * divide_up(heads / kv_heads, rows));
    uint32_t count = wanted < most ? wanted : most;
    while (count > 1 && choice_count_ranges(choice_find_ranges(c->format, variant, count)) > most)
        count--;
    const kernel *ranges = choice_find_ranges(c->format, variant, count);
    return count > 1 && device_offers(d, ranges->needs, NULL) && choice_takes(c, ranges, NULL)
               ? ranges
               : NULL;
}

const kernel *rules_find_variant(const device_facts *d, const choice *c, const char *variant,
                                 bool is_batch, bool must_take) {
    for (size_t i = 0; i < c->op->kernel_count; i++) {
        const kernel *k = &c->op->kernels[i];
        if ((!c->format || !c->op->many || (k->tokens != 0) == is_batch) &&
            (!variant || strcmp(k->variant, variant) == 0) && device_offers(d, k->needs, NULL) &&
            (!must_take || choice_takes(c, k, NULL)))
            return k;
    }
    return NULL;
}

static bool is_ranges(const char *variant) {
    return strcmp(variant, "ranges") == 0 || strcmp(variant, "shared") == 0 ||
           strcmp(variant, "mma") == 0;
}

static bool is_in(uint32_t value, const uint32_t range[2]) {
    return value >= range[0] && value <= range[1];
}

static const kernel *apply(const rule *r, const device_facts *d, const choice *c, bool must_take) {
    sizes s = get_sizes(r->kind, &c->shape);
    if (!(r->devices & get_device(d)) || !is_in(s.tokens, r->tokens) || !is_in(s.rows, r->rows) ||
        !holds(r->when, d, c, &s))
        return NULL;
    if (r->kind == DECODE && is_ranges(r->variant))
        return find_ranges(d, c, r->variant);
    if (r->variant && strcmp(r->variant, "apart") == 0)
        return choice_find_apart(c);
    bool is_batch = s.tokens > 1 || (d->emulated && r->tokens[1] > 1) || r->when == FEW_FLOATS;
    return rules_find_variant(d, c, r->variant, is_batch, must_take);
}

const kernel *rules_find(const device_facts *d, const choice *c, err *e) {
    size_t at = find_place(c->op);
    const kernel *k = NULL, *last = choice_find_apart(c);
    if (at == COUNT_OF(choices))
        return err_null(e, EXIT_USAGE, "models have no choice of %s", c->op->name);
    for (size_t i = 0; !k && i < COUNT_OF(rules); i++)
        if (rules[i].kind == choices[at].kind)
            k = apply(&rules[i], d, c, true);
    if (k || last)
        return k ? k : last;
    if (choices[at].kind == PRODUCT)
        return err_null(e, EXIT_CANNOT, "no kernel multiplies rows of %u weights in %s",
                        c->shape.dim[1], c->format->name);
    for (size_t i = 0; i < COUNT_OF(rules); i++) /* its record function says what it needs */
        if (rules[i].kind == choices[at].kind && (k = apply(&rules[i], d, c, false)))
            last = k;
    return last;
}
