/* rules: see rules.h. The rules are the rows of one table; before it stand the ways that there are, and
 * what rules ask, after it what models ask for. */
#include "rules.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/formats/formats.h"
#include "kernels/kernels.h"
#include "kernels/record.h"
#include "tuned.h"

/* Choices ------------------------------------------------------------------------------------ */

/* Ways that are not kernels. They have no file. */
static const kernel apart = {.name = "apart", .variant = "apart"};

/* rows, format, needs and the sizes that it takes are those of the kernel; end: of its name */
#define RANGES(n, end, format_)                                                                    \
    {                                                                                              \
        .name = "attention_ranges" end ":" #n, .variant = "ranges", .format = format_,             \
        .groups = n, .rows = 1, .multiple_of = 32, .most = ATTENTION_MAX_HEAD_DIM                  \
    }
#define SHARED(n, end, format_)                                                                    \
    {                                                                                              \
        .name = "attention_ranges_shared" end ":" #n, .variant = "shared", .format = format_,      \
        .groups = n, .rows = 8, .multiple_of = 64, .most = 128                                     \
    }
#define MMA(n, end, format_)                                                                       \
    {                                                                                              \
        .name = "attention_ranges_mma" end ":" #n, .variant = "mma", .format = format_,            \
        .groups = n, .rows = 8, .multiple_of = 64, .most = 128, .needs = FEATURE_BULK_COPIES       \
    }
#define WAYS(...)                                                                                  \
    RANGES(2, __VA_ARGS__), RANGES(4, __VA_ARGS__), RANGES(8, __VA_ARGS__),                        \
        RANGES(14, __VA_ARGS__), RANGES(16, __VA_ARGS__), RANGES(24, __VA_ARGS__),                 \
        RANGES(32, __VA_ARGS__), SHARED(4, __VA_ARGS__), SHARED(8, __VA_ARGS__),                   \
        SHARED(16, __VA_ARGS__), SHARED(32, __VA_ARGS__), SHARED(44, __VA_ARGS__),                 \
        MMA(4, __VA_ARGS__), MMA(8, __VA_ARGS__), MMA(16, __VA_ARGS__), MMA(32, __VA_ARGS__),      \
        MMA(44, __VA_ARGS__)
static const kernel range_ways[] = {WAYS("", NULL), WAYS("_f16", &format_f16)};

/* "apart" for a choice; NULL: its op is not fused. */
static const kernel *find_apart(const choice *c) {
    static const op *const fused[] = {&qkv_rope_append_op, &qkv_rope_append_f16_op,
                                      &gate_up_silu_op,    &rmsnorm_matvec_op,
                                      &matvec_batched_op,  &matvec_split_op};
    for (size_t i = 0; i < COUNT_OF(fused); i++)
        if (fused[i] == c->op)
            return &apart;
    return NULL;
}

bool choice_is_apart(const kernel *way) {
    return !way->file;
}

const char *choice_get_file(const choice *c, const kernel *way) {
    return way->file                      ? way->file
           : choice_count_ranges(way) > 1 ? choice_find_ranges_kernel(way)->file
                                          : c->op->kernels[0].file;
}

uint32_t choice_count_ranges(const kernel *way) {
    return way->file || way->groups == 0 ? 1 : way->groups;
}

const kernel *choice_find_ranges(const weight_format *cache, const char *variant, uint32_t count) {
    const kernel *way = NULL;
    for (size_t i = 0; i < COUNT_OF(range_ways) && !(way && way->groups >= count); i++)
        if (range_ways[i].format == cache && strcmp(range_ways[i].variant, variant) == 0)
            way = &range_ways[i];
    assert(way);
    return way;
}

const kernel *choice_find_ranges_kernel(const kernel *way) {
    const op *o = &attention_ranges_op;
    size_t i = 0;
    while (i < o->kernel_count &&
           (o->kernels[i].rows != way->rows || o->kernels[i].format != way->format ||
            o->kernels[i].needs != way->needs))
        i++;
    assert(i < o->kernel_count);
    return &o->kernels[i];
}

/* Ways -------------------------------------------------------------------------------------- */

bool choice_takes(const choice *c, const kernel *way, err *e) {
    if (way == &apart)
        return true;
    if (way->format != c->format || way->accumulates != c->accumulates)
        return err_set(e, EXIT_CANNOT, "is for another format or accumulation");
    return op_takes(c->op, way, &c->shape, e);
}

/* The i-th of all ways of the op, whether they take the shape or not; NULL: no more. */
static const kernel *get_way(const choice *c, size_t i) {
    if (i < c->op->kernel_count)
        return &c->op->kernels[i];
    i -= c->op->kernel_count;
    if (c->op == &decode_attention_op)
        return i < COUNT_OF(range_ways) ? &range_ways[i] : NULL;
    return i == 0 ? find_apart(c) : NULL;
}

size_t choice_list_ways(const choice *c, const kernel *ways[CHOICE_WAYS]) {
    size_t count = 0;
    const kernel *way;
    for (size_t i = 0; (way = get_way(c, i)); i++)
        if (choice_takes(c, way, NULL)) {
            assert(count < CHOICE_WAYS);
            ways[count++] = way;
        }
    return count;
}

const kernel *choice_find_way(const choice *c, const char *name, err *e) {
    char text[CHOICE_TEXT];
    err why = {.code = EXIT_OK};
    size_t i = 0;
    const kernel *way;
    while ((way = get_way(c, i)) && strcmp(way->name, name) != 0)
        i++;
    if (!way)
        return err_null(e, EXIT_USAGE, "%s has no kernel '%.60s'", c->op->name, name);
    choice_get_text(c, text, sizeof text);
    if (!choice_takes(c, way, &why))
        return err_null(e, EXIT_USAGE, "'%s' cannot do '%.70s': it %.80s", way->name, text,
                        why.text);
    return way;
}

/* Distance ---------------------------------------------------------------------------------- */

/* How far apart two sizes are, as a ratio of at least 1. */
static double find_ratio(uint32_t a, uint32_t b) {
    double more = a > b ? a : b, less = a > b ? b : a;
    return (more + 1) / (less + 1); /* a size may be 0 */
}

double choice_find_distance(const choice *row, const choice *asked) {
    static const struct {
        const char *name;
        bool is_tokens, is_keys;
    } near[] = {{"batch", true, false},  {"tokens", true, false}, {"rows", true, false},
                {"kv_len", false, true}, {"start", false, false}, {"pos", false, false}};
    choice moved = *asked;
    double distance = 1;
    for (size_t i = 0; i < COUNT_OF(near); i++) {
        int at = op_find_dim(row->op, near[i].name);
        if (at < 0)
            continue;
        uint32_t a = row->shape.dim[at], b = asked->shape.dim[at];
        if (near[i].is_tokens && (a == 1) != (b == 1))
            return INFINITY;
        distance *= near[i].is_keys && a == 0 ? CHOICE_NEAR : find_ratio(a, b);
        moved.shape.dim[at] = a;
    }
    return choice_compare(&moved, row) == 0 ? distance : INFINITY;
}

/* Texts ------------------------------------------------------------------------------------- */

void choice_get_format(const weight_format *f, char *text, size_t size) {
    snprintf(text, size, "%s", f ? f->name : "");
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

const weight_format *choice_find_format(const char *name) {
#define FORMAT(f, ...) &format_##f,
    static const weight_format *const all[] = {FORMATS(FORMAT)};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        char text[16];
        choice_get_format(all[i], text, sizeof text);
        if (strcmp(text, name) == 0)
            return all[i];
    }
    return NULL;
}

void choice_get_text(const choice *c, char *text, size_t size) {
    char sizes[64], format[16];
    shape_get_text(&c->shape, sizes, sizeof sizes);
    choice_get_format(c->format, format, sizeof format);
    snprintf(text, size, "%s%s%s%s %s", c->op->name, *format ? " " : "", format,
             c->accumulates ? " +=" : "", sizes);
}

/* Order ------------------------------------------------------------------------------------- */

static size_t find_in_registry(const op *o) {
    size_t i = 0;
    while (i < registry_count && registry[i] != o)
        i++;
    return i;
}

int choice_compare(const choice *a, const choice *b) {
    char formats[2][16];
    size_t places[2] = {find_in_registry(a->op), find_in_registry(b->op)};
    choice_get_format(a->format, formats[0], sizeof formats[0]);
    choice_get_format(b->format, formats[1], sizeof formats[1]);
    int order = (places[0] > places[1]) - (places[0] < places[1]);
    order = order ? order : strcmp(formats[0], formats[1]);
    order = order ? order : a->accumulates - b->accumulates;
    for (size_t i = 0; order == 0 && i < SHAPE_DIMS; i++)
        order = (a->shape.dim[i] > b->shape.dim[i]) - (a->shape.dim[i] < b->shape.dim[i]);
    return order;
}

/* What rules go by --------------------------------------------------------------------------- */

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

/* docs/history.md says where each limit comes from, with the times of whole models. */
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
    SMALL_FLOATS, /* WIDE, and no more than 64 MB in half precision */
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

/* Weights of at most 11 bits: halves, bfloats, and whole numbers in blocks of 32 (kernels/product/matrix.h). */
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
                        [SMALL_FLOATS] = is_wide && numbers <= FLOATS,
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
    {FUSED,   CUDA,     ONE,     MEDIUM,      SMALL_FLOATS,     "tiled_bulk"},
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
    {SPLIT,   CUDA,     {65, ANY}, MEDIUM,    THREE_BLOCKS,     "groups"},
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
 * again (docs/history.md). Where heads share a threadgroup, that reads 128 keys of 64 dimensions at once, or 64 of 128. */
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

/* The kernel of this variant (NULL: any) that the device offers, or NULL. Of products there are some for one
 * token and some for a batch. */
static const kernel *find_variant(const device_facts *d, const choice *c, const char *variant,
                                  bool is_batch, bool must_take) {
    bool is_product = choices[find_place(c->op)].kind == PRODUCT;
    for (size_t i = 0; i < c->op->kernel_count; i++) {
        const kernel *k = &c->op->kernels[i];
        if ((!is_product || (k->tokens != 0) == is_batch) &&
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
        return find_apart(c);
    bool is_batch = s.tokens > 1 || (d->emulated && r->tokens[1] > 1);
    return find_variant(d, c, r->variant, is_batch, must_take);
}

const kernel *rules_find(const device_facts *d, const choice *c, err *e) {
    size_t at = find_place(c->op);
    const kernel *k = NULL, *last = find_apart(c);
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

/* What models ask for ------------------------------------------------------------------------- */

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
        const kernel *other = find_variant(v->facts, &c, narrow[i], k->tokens != 0, true);
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
