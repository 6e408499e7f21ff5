/* table: the kernels of products. For product.c only.
 *
 * A row is a format, the shapes it is checked with, and a schedule: how rows, columns and
 * tokens are shared among threads. A new variant is its MSL function and its row here. */
#pragma once

#include "kernels/formats/formats.h"
#include "shapes.h"

/* Schedules: the file, and how a kernel's name begins; threads, rows and tokens of a threadgroup, what
 * in_dim is a multiple of and the most it may be, the most threadgroups, or clusters if several share columns, and what the device
 * must offer; how the name ends, the variant, and what it tries. */
/* clang-format off */
enum { ALL_TOKENS = 1 << 30 }; /* it loops over them itself */
enum { ONE_PER_CORE = 128, TWO_PER_CORE = 256 }; /* of a large GPU, with room for the next launch */
enum { PAIRS_OF_CORES = 64 };    /* clusters of two where an SM has room for one thread block */
enum { CLUSTERS_OF_FOUR = 52 }; /* an H200 has room for 62: the next launch starts on what these leave free */
enum { CLUSTERS_OF_EIGHT = 28 }; /* an H200 has room for 30 with two thread blocks per SM, not for 33 */
enum { HALF_COLUMNS = 2048 }; /* of the most that cuda/near.h takes at once */
#define OWN(f, kind) "product/matvec_" FILE_##kind(f) ".metal"
#define FILE_parts(f) #f
#define FILE_blocks(f) "blocks"
#define FILE_floats(f) "floats"
#define STREAM_FILE(...) "product/matvec_stream.metal"
#define FEW_STREAM_FILE(...) "product/few_stream.metal"
#define NEAR_FILE(...) "cuda/matvec_near.metal"
#define FEW_NEAR_FILE(...) "cuda/few_near.metal"
#define ONE  "matvec_"
#define MANY "multi_token_matvec_"

/*                             threads rows tokens  of  most groups sharers needs */
#define ROW         OWN, ONE,    256,    8,   0,    0,    0, 0, 0, 0, \
    "", "plain", "one simdgroup per row"
#define BY_WEIGHT   OWN, ONE,     32,    1,   0,    0,    0, 0, 0, 0, \
    "", "plain", "one simdgroup per row, weight by weight"
#define VEC4        OWN, ONE,     32,    1,   0,    0,    0, 0, 0, 0, \
    "_vec4", "vec4", "four weights at a time"
#define MULTIROW    OWN, ONE,    256,    4,   0,    0,    0, 0, 0, 0, \
    "_multirow", "multirow", "two simdgroups per row"
#define SIMDGROUP   OWN, ONE,    256,   32,   0,    0,    0, 0, 0, 0, \
    "_simdgroup", "simdgroup", "4 rows per simdgroup, one after another"
#define COALESCED   OWN, ONE,    256,    8,   0,    0,    0, 0, 0, 0, \
    "_coalesced", "coalesced", "one simdgroup per row, 16-bit loads"
#define HALFBLOCK   OWN, ONE,    256,    8,   0,    0,    0, 0, 0, 0, \
    "_halfblock", "halfblock", "one simdgroup per row, half a block per lane"
#define ROWBLOCK    OWN, ONE,    128,   16,   0,    0,    0, 0, 0, 0, \
    "_rowblock", "rowblock", "4 rows per simdgroup at once, x in registers"
#define LEAN        OWN, ONE,    128,    4,   0,    0,    0, 0, 0, 0, \
    "_lean", "lean", "one row per simdgroup, 16 weights per lane"
#define LEAN_ROWS   OWN, ONE,    128,   16,   0,    0,    0, 0, 0, 0, \
    "_lean_rows", "lean_rows", "the same, 4 rows per simdgroup"
#define STREAM(rows, of, groups) STREAM_FILE, ONE, \
                                 256, rows,   0,   of,    0, groups, 0, 0, \
    "_stream", "stream", "rows by way of threadgroup memory, in loads of 16 bytes"
#define NEAR(rows, of) NEAR_FILE, ONE, \
                                 512, rows,   0,   of, 4096, TWO_PER_CORE, 0, FEATURE_BULK_COPIES, \
    "_near", "near", "NVIDIA: rows by bulk copies (TMA), multiplied as bytes by tensor cores"
#define NEAR_LONG(rows, of) NEAR_FILE, ONE, \
                                 512, rows,   0,   of, 32768, TWO_PER_CORE, 0, FEATURE_BULK_COPIES, \
    "_near_long", "near_long", "the same for longer rows, in chunks of columns"
#define NEAR_CLUSTER(rows, of, most) NEAR_FILE, ONE, \
                                 512, rows,   0,   of, most, CLUSTERS_OF_FOUR, 4, FEATURE_BULK_COPIES, \
    "_near_cluster", "near_cluster", "the same for longer rows, in clusters of four"
#define BY_TOKEN    OWN, MANY,   256,    8, ALL_TOKENS,    0,    0, 0, 0, 0, \
    "", "plain", "one token after another"
#define REUSE       OWN, MANY,   128,   32,   8,    4,    0, 0, 0, 0, \
    "_reuse", "reuse", "each weight decoded once for 8 tokens, one quad per row"
#define ALONE       OWN, MANY,     8,   32,  32,    8,    0, 0, 0, 0, \
    "_alone", "alone", "4 rows per thread; each weight decoded once for 32 tokens"
#define LEAN_TOKENS OWN, MANY,   128,    8,   8,    0,    0, 0, 0, 0, \
    "_lean", "lean", "each weight decoded once for 8 tokens, 2 rows per simdgroup"
#define LEAN_ROWS_TOKENS OWN, MANY, \
                                 128,   16,   8,    0,    0, 0, 0, 0, \
    "_lean_rows", "lean_rows", "the same, 4 rows per simdgroup"
#define TILED       OWN, MANY,   128,   64,  64,    4,    0, 0, 0, 0, \
    "_tiled", "tiled", "tiles of 64 rows and 64 tokens, weights decoded once per tile"
#define TILED_SPLIT OWN, MANY,   128,   16,  32,    4,    0, 0, 0, 0, \
    "_tiled_split", "tiled_split", "tiles of 16 rows and 32 tokens, columns split in four"
#define TILED_FEW   OWN, MANY,   256,   16,   8,    4,    0, 0, 0, 0, \
    "_tiled_few", "tiled_few", "tiles of 16 rows and 8 tokens, columns split in eight"
#define MATRIX      OWN, MANY,   128,   64,  64,    4,    0, 0, 0, 0, \
    "_matrix", "matrix", "tiles of 64 x 64, multiplied as simdgroup matrices"
#define MATRIX_SPLIT OWN, MANY,  128,   32,  32,    4,    0, 0, 0, 0, \
    "_matrix_split", "matrix_split", "the same by 32 x 32, columns split in four"
#define TILED_STREAM FEW_STREAM_FILE, MANY, \
                                 512,   32,   8,   64,    0, 0, 0, 0, \
    "_tiled_stream", "tiled_stream", \
    "tiles of 32 rows and 8 tokens as matrices, weights by way of threadgroup memory"
#define TILED_NEAR(of, clusters) FEW_NEAR_FILE, MANY, \
                                 256,   16,   8,   of, 4096, clusters, 2, FEATURE_BULK_COPIES, \
    "_tiled_near", "tiled_near", \
    "NVIDIA: rows by bulk copies (TMA), as halves by tensor cores, in clusters of two"
#define TILED_NEAR_LONG(of, clusters) FEW_NEAR_FILE, MANY, \
                                 256,   16,   8,   of, 16384, clusters, 8, FEATURE_BULK_COPIES, \
    "_tiled_near_long", "tiled_near_long", "the same for longer rows, in clusters of eight"
/* The kernels: a format and its kind (formats.h), the shapes it is checked with, a schedule. */
#define KERNEL(f, kind, adds, does, list, file_, start, group_, rows_, tokens_, of, most_, groups_, \
               sharers_, needs_, end, variant_, about_) \
    {.name = start #f adds end, .variant = variant_, .about = about_, .file = file_(f, kind), \
     .format = &format_##f, .accumulates = does, .group = group_, .groups = groups_, .sharers = sharers_, \
     .needs = needs_, \
     .rows = rows_, .tokens = tokens_, .multiple_of = of, .most = most_, .shapes = list}
#define EXPAND(...) KERNEL(__VA_ARGS__)
/* y = W x, y += W x, y = activation(W x + bias); or the first two, with the same shapes or with those
 * that formats.h names. */
#define PUT(f, kind, list, ...) EXPAND(f, kind, "", false, list, __VA_ARGS__)
#define ADD(f, kind, list, ...) EXPAND(f, kind, "_accumulate", true, list, __VA_ARGS__)
#define ACTIVATE(f, kind, list, ...) EXPAND(f, kind, "_activate", false, list, __VA_ARGS__)
#define BOTH(f, kind, list, ...) PUT(f, kind, &list, __VA_ARGS__), ADD(f, kind, &list, __VA_ARGS__)
#define SINGLE(f, kind, s, ...) \
    PUT(f, kind, &s##_shapes.replace, __VA_ARGS__), ADD(f, kind, &s##_shapes.accumulate, __VA_ARGS__)

static const kernel matvec_kernels[] = {
    /* Most weights are Q4_0. */
    PUT(q4_0, parts, &ladder_shapes.replace, BY_WEIGHT),
    PUT(q4_0, parts, &ladder_shapes.replace, VEC4),
    PUT(q4_0, parts, &ladder_shapes.replace, MULTIROW),
    PUT(q4_0, parts, &ladder_shapes.replace, SIMDGROUP),
    PUT(q4_0, parts, &ladder_shapes.replace, COALESCED),
    PUT(q4_0, parts, &ladder_shapes.replace, HALFBLOCK),
    PUT(q4_0, parts, &ladder_shapes.replace, ROWBLOCK),
    ADD(q4_0, parts, &ladder_shapes.accumulate, ROW),
    BOTH(q4_0, parts, ladder_shapes.many, BY_TOKEN), /* it is published */
    BOTH(q4_0, parts, ladder_shapes.many, TILED_FEW),
    BOTH(q4_0, parts, wide_tokens, TILED_STREAM),
    BOTH(q4_0, parts, near_tokens, TILED_NEAR(256, ONE_PER_CORE)),
    BOTH(q8_0, parts, near_tokens, TILED_NEAR(256, ONE_PER_CORE)),
    BOTH(q4_k, parts, near_tokens, TILED_NEAR(256, ONE_PER_CORE)),
    BOTH(q5_k, blocks, near_tokens, TILED_NEAR(256, ONE_PER_CORE)),
    BOTH(q6_k, parts, wider_near_tokens, TILED_NEAR(2048, ONE_PER_CORE)),
    BOTH(f16, floats, near_tokens, TILED_NEAR(256, PAIRS_OF_CORES)),
    BOTH(q4_0, parts, near_long_tokens, TILED_NEAR_LONG(256, CLUSTERS_OF_EIGHT)),
    BOTH(q8_0, parts, near_long_tokens, TILED_NEAR_LONG(256, CLUSTERS_OF_EIGHT)),
    BOTH(q4_k, parts, near_long_tokens, TILED_NEAR_LONG(256, CLUSTERS_OF_EIGHT)),
    BOTH(q5_k, blocks, near_long_tokens, TILED_NEAR_LONG(256, CLUSTERS_OF_EIGHT)),
    BOTH(q6_k, parts, wider_near_long_tokens, TILED_NEAR_LONG(2048, CLUSTERS_OF_EIGHT)),
    BOTH(f16, floats, near_long_tokens, TILED_NEAR_LONG(256, CLUSTERS_OF_EIGHT / 2)),
    /* The formats that most weights are in. */
    SINGLE(q4_0, parts, ladder, LEAN),                SINGLE(q4_0, parts, ladder, LEAN_ROWS),
    SINGLE(q8_0, parts, head_of_32, LEAN),            SINGLE(q8_0, parts, head_of_32, LEAN_ROWS),
    SINGLE(q4_k, parts, of_256, LEAN),                SINGLE(q4_k, parts, of_256, LEAN_ROWS),
    SINGLE(q6_k, parts, head_of_256, LEAN),           SINGLE(q6_k, parts, head_of_256, LEAN_ROWS),
    BOTH(q4_0, parts, wide_rows, STREAM(32, 256, TWO_PER_CORE)),
    BOTH(q8_0, parts, wide_rows, STREAM(16, 256, ONE_PER_CORE)),
    BOTH(q4_k, parts, wide_rows, STREAM(32, 256, TWO_PER_CORE)),
    BOTH(q6_k, parts, wider_rows, STREAM(16, 2048, ONE_PER_CORE)),
    BOTH(f16, floats, eights, STREAM(16, 8, 0)),
    BOTH(q4_0, parts, near_rows, NEAR(16, 256)),
    BOTH(q8_0, parts, near_rows, NEAR(10, 256)),
    BOTH(q4_k, parts, near_rows, NEAR(16, 256)),
    BOTH(q5_k, blocks, near_rows, NEAR(16, 256)),
    BOTH(q6_k, parts, wider_near_rows, NEAR(14, 2048)),
    BOTH(q4_0, parts, near_long_rows, NEAR_LONG(16, 256)),
    BOTH(q8_0, parts, near_long_rows, NEAR_LONG(10, 256)),
    BOTH(q4_k, parts, near_long_rows, NEAR_LONG(16, 256)),
    BOTH(q5_k, blocks, near_long_rows, NEAR_LONG(16, 256)),
    BOTH(q6_k, parts, wider_near_long_rows, NEAR_LONG(10, 2048)),
    BOTH(q4_0, parts, near_long_rows, NEAR_CLUSTER(16, 256, 16384)),
    BOTH(q8_0, parts, near_long_rows, NEAR_CLUSTER(10, 256, 16384)),
    BOTH(q4_k, parts, near_long_rows, NEAR_CLUSTER(16, 256, 16384)),
    BOTH(q5_k, blocks, near_long_rows, NEAR_CLUSTER(16, 256, 16384)),
    BOTH(q6_k, parts, wider_near_long_rows, NEAR_CLUSTER(16, 2048, 14336)),
    BOTH(q4_0, parts, ladder_shapes.tiles, TILED_SPLIT),
    BOTH(q4_0, parts, ladder_shapes.tiles, MATRIX),
    BOTH(q8_0, parts, head_of_32_shapes.tiles, TILED_SPLIT),
    BOTH(q8_0, parts, head_of_32_shapes.tiles, MATRIX),
    BOTH(q4_k, parts, of_256_shapes.tiles, TILED_SPLIT),
    BOTH(q4_k, parts, of_256_shapes.tiles, MATRIX),
    BOTH(q6_k, parts, head_of_256_shapes.tiles, TILED_SPLIT),
    BOTH(q6_k, parts, head_of_256_shapes.tiles, MATRIX),
    BOTH(f16, floats, floats_shapes.tiles, TILED_SPLIT),
    BOTH(f16, floats, floats_shapes.tiles, MATRIX),
    BOTH(q4_1, blocks, of_32_shapes.tiles, MATRIX),
    BOTH(q4_1, blocks, of_32_shapes.tiles, MATRIX_SPLIT),
    BOTH(q5_0, blocks, few_of_32_shapes.tiles, MATRIX),
    BOTH(q5_0, blocks, few_of_32_shapes.tiles, MATRIX_SPLIT),
    BOTH(q5_1, blocks, few_of_32_shapes.tiles, MATRIX),
    BOTH(q5_1, blocks, few_of_32_shapes.tiles, MATRIX_SPLIT),
    BOTH(q5_k, blocks, few_of_256_shapes.tiles, MATRIX),
    BOTH(bf16, floats, few_floats_shapes.tiles, MATRIX),
    BOTH(f32, floats, floats_shapes.tiles, MATRIX),
    /* Every format; those that have nothing better for one token also one simdgroup per row, and floats
     * rows of any length for many. */
#define ONE_parts(f, s)
#define ONE_blocks(f, s) SINGLE(f, blocks, s, ROW),
#define ONE_floats(f, s) SINGLE(f, floats, s, ROW), BOTH(f, floats, s##_shapes.many, BY_TOKEN),
#define EVERY(f, kind, s) \
    ONE_##kind(f, s) BOTH(f, kind, s##_shapes.many, REUSE), BOTH(f, kind, s##_shapes.many, ALONE), \
    BOTH(f, kind, s##_shapes.tiles, TILED),
    FORMATS(EVERY)
};

#define LIST_parts NULL
#define LIST_blocks NULL
#define LIST_floats &activated_float_list
/* No rule chooses REUSE of Q4_0, which has two better ones: it is here because every format has it. */
#define EVERY_ACTIVATED(f, kind, ...) \
    ACTIVATE(f, kind, LIST_##kind, ROW), ACTIVATE(f, kind, LIST_##kind, REUSE), \
    ACTIVATE(f, kind, LIST_##kind, ALONE),
static const kernel activate_kernels[] = {
    ACTIVATE(q4_0, parts, NULL, LEAN_TOKENS), ACTIVATE(q4_0, parts, NULL, LEAN_ROWS_TOKENS),
    ACTIVATE(q4_0, parts, NULL, TILED_NEAR(256, ONE_PER_CORE)),
    ACTIVATE(q8_0, parts, NULL, TILED_NEAR(256, ONE_PER_CORE)),
    ACTIVATE(q4_k, parts, NULL, TILED_NEAR(256, ONE_PER_CORE)),
    ACTIVATE(q5_k, blocks, NULL, TILED_NEAR(256, ONE_PER_CORE)),
    ACTIVATE(q6_k, parts, &wider_activated_list, TILED_NEAR(2048, ONE_PER_CORE)),
    ACTIVATE(f16, floats, NULL, TILED_NEAR(256, PAIRS_OF_CORES)),
    FORMATS(EVERY_ACTIVATED)
};

/* The other ops, whose weights are Q4_0 or of any format: name; file; threads, rows and tokens of a
 * threadgroup; the variant; what it tries. */
#define FUSED(name_, file_, threads, rows_, tokens_, variant_, about_) \
    .name = name_, .variant = variant_, .about = about_, .file = "product/" file_ ".metal", \
    .group = threads, .rows = rows_, .tokens = tokens_
#define OF_Q4_0(...) FUSED(__VA_ARGS__), .format = &format_q4_0
/* Threadgroup memory that every Metal device has, less 32 bytes of partial sums, in floats. */
enum { MOST_HIDDEN = (32768 - 32) / 4 };
#define TILES_OF_64 "tiles of 64 rows and 64 tokens, weights decoded once per tile"
#define TILES_OF_16 "tiles of 16 rows and 32 tokens, columns split in four"
#define FEW_TOKENS "tiles of 16 rows and 8 tokens, columns split in nine"

/* NEAR for a norm and the products after it. */
#define NEAR_NORMED(op_, f, rows_, of, list) \
    {.name = op_ "_" #f "_near", .variant = "near", .file = "cuda/normed_near.metal", .format = &format_##f, \
     .about = "NVIDIA: rows by bulk copies (TMA), the norm in the same pass", .group = 512, .rows = rows_, \
     .multiple_of = of, .most = 4096, .groups = TWO_PER_CORE, .needs = FEATURE_BULK_COPIES, .shapes = &list}

#define FEW_NEAR_NORMED(op_, f, rows_, of, clusters, list) \
    {.name = op_ "_" #f "_tiled_near", .variant = "tiled_near", .file = "cuda/few_near.metal", \
     .format = &format_##f, .about = "the same for a few tokens, in clusters of two", .group = 256, .rows = rows_, \
     .tokens = 8, .multiple_of = of, .most = 4096, .groups = clusters, .sharers = 2, \
     .needs = FEATURE_BULK_COPIES, .shapes = &list}

/* Each in every format that has it. Two matrices share the rows of a threadgroup. */
#define EVERY_NEAR_NORMED(op_, matrices, list) \
    NEAR_NORMED(op_, q4_0, 16 / matrices,  256, near_##list), \
    NEAR_NORMED(op_, q8_0, 10 / matrices,  256, near_##list), \
    NEAR_NORMED(op_, q4_k, 16 / matrices,  256, near_##list), \
    NEAR_NORMED(op_, q5_k, 16 / matrices,  256, near_##list), \
    NEAR_NORMED(op_, q6_k, 14 / matrices, 2048, wider_near_##list)
#define EVERY_FEW_NEAR_NORMED(op_, matrices, list) \
    FEW_NEAR_NORMED(op_, q4_0, 16 / matrices,  256, ONE_PER_CORE, few_near_##list), \
    FEW_NEAR_NORMED(op_, q8_0, 16 / matrices,  256, ONE_PER_CORE, few_near_##list), \
    FEW_NEAR_NORMED(op_, q4_k, 16 / matrices,  256, ONE_PER_CORE, few_near_##list), \
    FEW_NEAR_NORMED(op_, q5_k, 16 / matrices,  256, ONE_PER_CORE, few_near_##list), \
    FEW_NEAR_NORMED(op_, q6_k, 16 / matrices, 2048, ONE_PER_CORE, wider_few_near_##list), \
    FEW_NEAR_NORMED(op_, f16,  16 / matrices,  256, PAIRS_OF_CORES, few_near_##list)

/* Of many tokens: adapters, whose weights are floats. */
#define MIXED_TOKENS(variant_, rows_, tokens_, about_) \
    {FUSED("matvec_mixed_" variant_, "matvec_mixed", 256, rows_, tokens_, variant_, about_), .multiple_of = 32, \
     .shapes = &mixed_token_list}
#define MIXED_NEAR(f, rows_, of, list) \
    {.name = "matvec_mixed_" #f "_near", .variant = "near", .file = "cuda/mixed_near.metal", .format = &format_##f, \
     .about = "NVIDIA: rows by bulk copies (TMA), and those of matrices in floats by plain loads", .group = 512, \
     .rows = rows_, .multiple_of = of, .most = 4096, .needs = FEATURE_BULK_COPIES, .shapes = &list}
static const kernel mixed_kernels[] = {
    {FUSED("matvec_mixed", "matvec_mixed", 256, 8, 0, "plain", "one simdgroup per row")},
    MIXED_TOKENS("few",       128,  8, "tiles of 16 rows and 8 tokens as matrices, one per simdgroup"),
    MIXED_TOKENS("few_long",   16,  8, "the same, columns split in eight"),
    MIXED_TOKENS("many",      256, 16, "tiles of 32 rows and 16 tokens as matrices, one per simdgroup"),
    MIXED_TOKENS("many_long",  32, 16, "the same, columns split in eight"),
    MIXED_NEAR(q4_0, 16, 256, mixed_near),
    MIXED_NEAR(q8_0, 10, 256, mixed_near),
    MIXED_NEAR(q4_k, 16, 256, mixed_near),
    MIXED_NEAR(q5_k, 16, 256, mixed_near),
    MIXED_NEAR(q6_k, 12, 2048, wider_mixed_near),
};
/* variant; rows, tokens and threadgroups of a tile; what it tries */
#define GROUPS(f, adds, does, variant_, rows_, tokens_, sharers_, about_) \
    {.name = "matvec_split_" #f adds "_" variant_, .variant = variant_, .file = "cuda/matvec_split.metal", \
     .about = "NVIDIA: tiles of " #rows_ " rows and " #tokens_ " tokens by warpgroups (wgmma)" about_, \
     .format = &format_##f, .accumulates = does, .group = 2 * rows_, .rows = rows_, .tokens = tokens_, \
     .sharers = sharers_, .multiple_of = 256, .needs = FEATURE_WARPGROUPS, .shapes = does ? NULL : &split_list}
#define SPLITS(f, adds, does) \
    GROUPS(f, adds, does, "groups", 128, 64, 0, ""), \
    GROUPS(f, adds, does, "wide_groups", 128, 128, 0, ""), \
    GROUPS(f, adds, does, "quarters", 128, 64, 4, ", columns split in four"), \
    GROUPS(f, adds, does, "eighths", 128, 64, 8, ", columns split in eight")
static const kernel split_kernels[] = {SPLITS(q4_0, "", false), SPLITS(q4_0, "_accumulate", true),
                                       SPLITS(q8_0, "", false), SPLITS(q8_0, "_accumulate", true),
                                       SPLITS(q4_k, "", false), SPLITS(q4_k, "_accumulate", true),
                                       SPLITS(q5_k, "", false), SPLITS(q5_k, "_accumulate", true),
                                       SPLITS(q6_k, "", false), SPLITS(q6_k, "_accumulate", true),
                                       SPLITS(f16, "", false), SPLITS(f16, "_accumulate", true)};
static const kernel batched_kernels[] = {
    {OF_Q4_0("matvec_q4_0_batched", "matvec_q4_0_batched", 256, 8, 0, "plain",
             "one simdgroup per row")},
};
static const kernel silu_kernels[] = {
    {OF_Q4_0("silu_matvec_q4_0_accumulate", "silu_matvec_q4_0_accumulate", 256, 8, 0, NULL,
             "one simdgroup per row, each computes its activations"), .accumulates = true},
};
static const kernel normed_kernels[] = {
    {OF_Q4_0("rmsnorm_matvec_q4_0", "rmsnorm_matvec",          32,  1,  0, "plain",
             "one simdgroup per row, each computes the norm")},
    {OF_Q4_0("megakernel_rmsnorm_matvec", "rmsnorm_matvec",   256,  8,  0, "megakernel",
             "the norm once for 8 rows, in threadgroup memory"), .most = MOST_HIDDEN},
    {OF_Q4_0("rmsnorm_matvec_q4_0_onepass", "rmsnorm_matvec", 128, 16,  0, "onepass",
             "4 rows per simdgroup, the norm in the same pass")},
    EVERY_NEAR_NORMED("rmsnorm_matvec", 1, normed),
    {FUSED("rmsnorm_matvec_f32", "rmsnorm_matvec",             32,  1,  0, "plain",
           "one simdgroup per row, each computes the norm"),
     .format = &format_f32, .shapes = &normed_float_list},
};
#define GATE_TILES(...) {OF_Q4_0("gate_up_silu_q4_0" __VA_ARGS__), .shapes = &gated_tiled_list}
static const kernel gated_kernels[] = {
    {OF_Q4_0("gate_up_silu_q4_0", "gate_up_silu",     128,  4,  0, "plain",
             "one simdgroup per output, the norm in the same pass")},
    EVERY_NEAR_NORMED("gate_up_silu", 2, gates),
    EVERY_FEW_NEAR_NORMED("gate_up_silu", 2, gates),
    GATE_TILES("_tiled",       "gate_up_silu",          128, 32, 64, "tiled",       TILES_OF_64),
    GATE_TILES("_tiled_split", "gate_up_silu",          128,  8, 32, "tiled_split", TILES_OF_16),
    GATE_TILES("_tiled_few",   "gate_up_silu",          288,  8,  8, "tiled_few",   FEW_TOKENS),
};
#define QKV_TILES(...) {OF_Q4_0("qkv_rope_append_q4_0" __VA_ARGS__), .shapes = &appended_tiled_list}
#define APPENDED_KERNELS(op_) \
    {OF_Q4_0(op_ "_q4_0", "qkv_rope_append", 128,  8,  0, "plain", \
             "two rows per simdgroup, the norm in the same pass")}, \
    EVERY_NEAR_NORMED(op_, 1, heads), \
    EVERY_FEW_NEAR_NORMED(op_, 1, heads)
static const kernel appended_kernels[] = {
    APPENDED_KERNELS("qkv_rope_append"),
    QKV_TILES("_tiled",       "qkv_rope_append",      128, 64, 64, "tiled",       TILES_OF_64),
    QKV_TILES("_tiled_split", "qkv_rope_append",      128, 16, 32, "tiled_split", TILES_OF_16),
    QKV_TILES("_tiled_few",   "qkv_rope_append",      288, 16,  8, "tiled_few",   FEW_TOKENS),
};
static const kernel appended_halves_kernels[] = {APPENDED_KERNELS("qkv_rope_append_f16")};
/* clang-format on */
