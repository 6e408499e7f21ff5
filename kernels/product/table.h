/* table: the kernels of products. For product.c only.
 *
 * A row is a format, the shapes it is checked with, and a schedule: how rows, columns and
 * tokens are shared among threads. A new variant is its MSL function and its row here. */
#pragma once

#include "kernels/formats/formats.h"
#include "shapes.h"

/* Schedules: the file, how a kernel's name begins and ends; threads, rows and tokens of a threadgroup; what
 * in_dim is a multiple of and the most it may be; the most threadgroups, or clusters if several share columns;
 * what the device must offer; what it tries. */
/* clang-format off */
enum { ALL_TOKENS = 1 << 30 }; /* it loops over them itself */
enum { ONE_PER_CORE = 128, TWO_PER_CORE = 256 }; /* of a large GPU, with room for the next launch */
enum { PAIRS_OF_CORES = 64 };    /* clusters of two where an SM has room for one thread block */
enum { CLUSTERS_OF_FOUR = 52 }; /* an H200 has room for 62: the next launch starts on what these leave free */
enum { CLUSTERS_OF_EIGHT = 28 }; /* an H200 has room for 30 with two thread blocks per SM, not for 33 */
enum { HALF_COLUMNS = 2048 }; /* of the most that cuda/bulk.h takes at once */
#define OWN(f, kind) "product/matvec_" FILE_##kind(f) ".metal"
#define FILE_parts(f) #f
#define FILE_blocks(f) "blocks"
#define FILE_floats(f) "floats"
#define STREAM_FILE(...) "product/matvec_stream.metal"
#define SKINNY_STREAM_FILE(...) "product/skinny_stream.metal"
#define ONE  "matvec_"
#define MANY "multi_token_matvec_"

#define ROW OWN, ONE, "", .variant = "plain", .group = 256, .rows = 8, \
    .about = "one simdgroup per row"
#define BY_WEIGHT OWN, ONE, "", .variant = "plain", .group = 32, .rows = 1, \
    .about = "one simdgroup per row, weight by weight"
#define VEC4 OWN, ONE, "_vec4", .variant = "vec4", .group = 32, .rows = 1, \
    .about = "four weights at a time"
#define MULTIROW OWN, ONE, "_multirow", .variant = "multirow", .group = 256, .rows = 4, \
    .about = "two simdgroups per row"
#define SIMDGROUP OWN, ONE, "_simdgroup", .variant = "simdgroup", .group = 256, .rows = 32, \
    .about = "4 rows per simdgroup, one after another"
#define COALESCED OWN, ONE, "_coalesced", .variant = "coalesced", .group = 256, .rows = 8, \
    .about = "one simdgroup per row, 16-bit loads"
#define HALFBLOCK OWN, ONE, "_halfblock", .variant = "halfblock", .group = 256, .rows = 8, \
    .about = "one simdgroup per row, half a block per lane"
#define ROWBLOCK OWN, ONE, "_rowblock", .variant = "rowblock", .group = 128, .rows = 16, \
    .about = "4 rows per simdgroup at once, x in registers"
#define VEC16 OWN, ONE, "_vec16", .variant = "vec16", .group = 128, .rows = 4, \
    .about = "one row per simdgroup, 16 weights per lane"
#define VEC16_ROWS OWN, ONE, "_vec16_rows", .variant = "vec16_rows", .group = 128, .rows = 16, \
    .about = "the same, 4 rows per simdgroup"
#define STREAM(rows_, of, groups_) STREAM_FILE, ONE, "_stream", \
    .variant = "stream", .group = 256, .rows = rows_, .multiple_of = of, .groups = groups_, \
    .about = "rows by way of threadgroup memory, in loads of 16 bytes"
#define BY_TOKEN OWN, MANY, "", .variant = "plain", .group = 256, .rows = 8, .tokens = ALL_TOKENS, \
    .about = "one token after another"
#define REUSE OWN, MANY, "_reuse", .variant = "reuse", .group = 128, .rows = 32, .tokens = 8, .multiple_of = 4, \
    .about = "each weight decoded once for 8 tokens, one quad per row"
#define PER_THREAD OWN, MANY, "_per_thread", \
    .variant = "per_thread", .group = 8, .rows = 32, .tokens = 32, .multiple_of = 8, \
    .about = "4 rows per thread; each weight decoded once for 32 tokens"
#define VEC16_TOKENS OWN, MANY, "_vec16", .variant = "vec16", .group = 128, .rows = 8, .tokens = 8, \
    .about = "each weight decoded once for 8 tokens, 2 rows per simdgroup"
#define VEC16_ROWS_TOKENS OWN, MANY, "_vec16_rows", \
    .variant = "vec16_rows", .group = 128, .rows = 16, .tokens = 8, \
    .about = "the same, 4 rows per simdgroup"
#define TILED OWN, MANY, "_tiled", .variant = "tiled", .group = 128, .rows = 64, .tokens = 64, .multiple_of = 4, \
    .about = "tiles of 64 rows and 64 tokens, weights decoded once per tile"
#define TILED_SPLIT_K OWN, MANY, "_tiled_split_k", \
    .variant = "tiled_split_k", .group = 128, .rows = 16, .tokens = 32, .multiple_of = 4, \
    .about = "tiles of 16 rows and 32 tokens, columns split in four"
#define TILED_SKINNY OWN, MANY, "_tiled_skinny", \
    .variant = "tiled_skinny", .group = 256, .rows = 16, .tokens = 8, .multiple_of = 4, \
    .about = "tiles of 16 rows and 8 tokens, columns split in eight"
#define MATRIX OWN, MANY, "_matrix", \
    .variant = "matrix", .group = 128, .rows = 64, .tokens = 64, .multiple_of = 4, \
    .about = "tiles of 64 x 64, multiplied as simdgroup matrices"
#define MATRIX_SPLIT_K OWN, MANY, "_matrix_split_k", \
    .variant = "matrix_split_k", .group = 128, .rows = 32, .tokens = 32, .multiple_of = 4, \
    .about = "the same by 32 x 32, columns split in four"
#define TILED_STREAM SKINNY_STREAM_FILE, MANY, "_tiled_stream", \
    .variant = "tiled_stream", .group = 512, .rows = 32, .tokens = 8, .multiple_of = 64, \
    .about = "tiles of 32 rows and 8 tokens as matrices, weights by way of threadgroup memory"
/* The kernels: a format and its kind (formats.h), += or not, the shapes it is checked with, a schedule. */
#define KERNEL(f, kind, adds, does, list, file_, start, end, ...) \
    {.name = start #f adds end, .file = file_(f, kind), .format = &format_##f, .accumulates = does, \
     .shapes = list, __VA_ARGS__}
#define EXPAND(...) KERNEL(__VA_ARGS__)
/* y = W x, y += W x, y = activation(W x + bias); or the first two, with the same shapes or with those
 * that formats.h names. */
#define PUT(f, kind, list, ...) EXPAND(f, kind, "", false, list, __VA_ARGS__)
#define ADD(f, kind, list, ...) EXPAND(f, kind, "_accumulate", true, list, __VA_ARGS__)
#define ACTIVATE(f, kind, list, ...) EXPAND(f, kind, "_activate", false, list, __VA_ARGS__)
#define BOTH(f, kind, list, ...) PUT(f, kind, &list, __VA_ARGS__), ADD(f, kind, &list, __VA_ARGS__)
#define SINGLE(f, kind, s, ...) \
    PUT(f, kind, &s##_shapes.replace, __VA_ARGS__), ADD(f, kind, &s##_shapes.accumulate, __VA_ARGS__)

/* Kernels by bulk copies: their formats, `wider_` where only rows of 2048 columns are whole uint4s, and what columns
 * are a multiple of. For one token the rows of a tile, for a few the most clusters. */
#define BULK_FORMATS(X, q6_k_rows, ...) \
    X(q4_0, parts,  ,       256,  16,        __VA_ARGS__), \
    X(q8_0, parts,  ,       256,  10,        __VA_ARGS__), \
    X(q4_k, parts,  ,       256,  16,        __VA_ARGS__), \
    X(q5_k, blocks, ,       256,  16,        __VA_ARGS__), \
    X(q6_k, parts,  wider_, 2048, q6_k_rows, __VA_ARGS__)
#define FEW_BULK_FORMATS(X, most, most_f16, ...) \
    X(q4_0, parts,  ,       256,  most,     __VA_ARGS__), \
    X(q8_0, parts,  ,       256,  most,     __VA_ARGS__), \
    X(q4_k, parts,  ,       256,  most,     __VA_ARGS__), \
    X(q5_k, blocks, ,       256,  most,     __VA_ARGS__), \
    X(q6_k, parts,  wider_, 2048, most,     __VA_ARGS__), \
    X(f16,  floats, ,       256,  most_f16, __VA_ARGS__)
#define BULK_FILE(...) "cuda/matvec_bulk.metal"
#define SKINNY_BULK_FILE(...) "cuda/skinny_bulk.metal"
#define BULK(f, kind, wide, of, rows_, list) BOTH(f, kind, wide##list, BULK_FILE, ONE, "_bulk", \
    .variant = "bulk", .group = 512, .rows = rows_, .multiple_of = of, .most = 4096, .groups = TWO_PER_CORE, \
    .needs = FEATURE_BULK_COPIES, .about = "NVIDIA: rows by bulk copies (TMA), multiplied as bytes by tensor cores")
#define BULK_CHUNKS(f, kind, wide, of, rows_, list) BOTH(f, kind, wide##list, BULK_FILE, ONE, "_bulk_chunks", \
    .variant = "bulk_chunks", .group = 512, .rows = rows_, .multiple_of = of, .most = 32768, \
    .groups = TWO_PER_CORE, .needs = FEATURE_BULK_COPIES, .about = "the same for longer rows, in chunks of columns")
#define BULK_CLUSTER(f, kind, wide, of, rows_, list) BOTH(f, kind, wide##list, BULK_FILE, ONE, "_bulk_cluster", \
    .variant = "bulk_cluster", .group = 512, .rows = rows_, .multiple_of = of, .most = of == 256 ? 16384 : 14336, \
    .groups = CLUSTERS_OF_FOUR, .sharers = 4, .needs = FEATURE_BULK_COPIES, \
    .about = "the same for longer rows, in clusters of four")
#define TILED_BULK(of, clusters) SKINNY_BULK_FILE, MANY, "_tiled_bulk", .variant = "tiled_bulk", \
    .group = 256, .rows = 16, .tokens = 8, .multiple_of = of, .most = 4096, .groups = clusters, .sharers = 2, \
    .needs = FEATURE_BULK_COPIES, \
    .about = "NVIDIA: rows by bulk copies (TMA), as halves by tensor cores, in clusters of two"
#define BOTH_TILED_BULK(f, kind, wide, of, clusters, list) BOTH(f, kind, wide##list, TILED_BULK(of, clusters))
#define ACTIVATE_TILED_BULK(f, kind, wide, of, clusters, list) \
    ACTIVATE(f, kind, &wide##list, TILED_BULK(of, clusters))
#define TILED_BULK_CLUSTER(f, kind, wide, of, clusters, list) \
    BOTH(f, kind, wide##list, SKINNY_BULK_FILE, MANY, "_tiled_bulk_cluster", .variant = "tiled_bulk_cluster", \
    .group = 256, .rows = 16, .tokens = 8, .multiple_of = of, .most = 16384, .groups = clusters, .sharers = 8, \
    .needs = FEATURE_BULK_COPIES, .about = "the same for longer rows, in clusters of eight")

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
    BOTH(q4_0, parts, ladder_shapes.many, TILED_SKINNY),
    BOTH(q4_0, parts, wide_tokens, TILED_STREAM),
    FEW_BULK_FORMATS(BOTH_TILED_BULK, ONE_PER_CORE, PAIRS_OF_CORES, bulk_tokens),
    FEW_BULK_FORMATS(TILED_BULK_CLUSTER, CLUSTERS_OF_EIGHT, CLUSTERS_OF_EIGHT / 2, bulk_long_tokens),
    /* The formats that most weights are in. */
    SINGLE(q4_0, parts, ladder, VEC16),          SINGLE(q4_0, parts, ladder, VEC16_ROWS),
    SINGLE(q8_0, parts, head_of_32, VEC16),      SINGLE(q8_0, parts, head_of_32, VEC16_ROWS),
    SINGLE(q4_k, parts, of_256, VEC16),          SINGLE(q4_k, parts, of_256, VEC16_ROWS),
    SINGLE(q6_k, parts, head_of_256, VEC16),     SINGLE(q6_k, parts, head_of_256, VEC16_ROWS),
    BOTH(q4_0, parts, wide_rows, STREAM(32, 256, TWO_PER_CORE)),
    BOTH(q8_0, parts, wide_rows, STREAM(16, 256, ONE_PER_CORE)),
    BOTH(q4_k, parts, wide_rows, STREAM(32, 256, TWO_PER_CORE)),
    BOTH(q6_k, parts, wider_rows, STREAM(16, 2048, ONE_PER_CORE)),
    BOTH(f16, floats, eights, STREAM(16, 8, 0)),
    BULK_FORMATS(BULK, 14, bulk_rows),
    BULK_FORMATS(BULK_CHUNKS, 10, bulk_long_rows),
    BULK_FORMATS(BULK_CLUSTER, 16, bulk_long_rows),
    BOTH(q4_0, parts, ladder_shapes.tiles, TILED_SPLIT_K),
    BOTH(q4_0, parts, ladder_shapes.tiles, MATRIX),
    BOTH(q8_0, parts, head_of_32_shapes.tiles, TILED_SPLIT_K),
    BOTH(q8_0, parts, head_of_32_shapes.tiles, MATRIX),
    BOTH(q4_k, parts, of_256_shapes.tiles, TILED_SPLIT_K),
    BOTH(q4_k, parts, of_256_shapes.tiles, MATRIX),
    BOTH(q6_k, parts, head_of_256_shapes.tiles, TILED_SPLIT_K),
    BOTH(q6_k, parts, head_of_256_shapes.tiles, MATRIX),
    BOTH(f16, floats, floats_shapes.tiles, TILED_SPLIT_K),
    BOTH(f16, floats, floats_shapes.tiles, MATRIX),
    BOTH(q4_1, blocks, of_32_shapes.tiles, MATRIX),
    BOTH(q4_1, blocks, of_32_shapes.tiles, MATRIX_SPLIT_K),
    BOTH(q5_0, blocks, few_of_32_shapes.tiles, MATRIX),
    BOTH(q5_0, blocks, few_of_32_shapes.tiles, MATRIX_SPLIT_K),
    BOTH(q5_1, blocks, few_of_32_shapes.tiles, MATRIX),
    BOTH(q5_1, blocks, few_of_32_shapes.tiles, MATRIX_SPLIT_K),
    BOTH(q5_k, blocks, few_of_256_shapes.tiles, MATRIX),
    BOTH(bf16, floats, few_floats_shapes.tiles, MATRIX),
    BOTH(f32, floats, floats_shapes.tiles, MATRIX),
    /* Every format; those that have nothing better for one token also one simdgroup per row, and floats
     * rows of any length for many. */
#define ONE_parts(f, s)
#define ONE_blocks(f, s) SINGLE(f, blocks, s, ROW),
#define ONE_floats(f, s) SINGLE(f, floats, s, ROW), BOTH(f, floats, s##_shapes.many, BY_TOKEN),
#define EVERY(f, kind, s) \
    ONE_##kind(f, s) BOTH(f, kind, s##_shapes.many, REUSE), BOTH(f, kind, s##_shapes.many, PER_THREAD), \
    BOTH(f, kind, s##_shapes.tiles, TILED),
    FORMATS(EVERY)
};

#define LIST_parts NULL
#define LIST_blocks NULL
#define LIST_floats &activated_float_list
/* No rule chooses REUSE of Q4_0, which has two better ones: it is here because every format has it. */
#define EVERY_ACTIVATED(f, kind, ...) \
    ACTIVATE(f, kind, LIST_##kind, ROW), ACTIVATE(f, kind, LIST_##kind, REUSE), \
    ACTIVATE(f, kind, LIST_##kind, PER_THREAD),
static const kernel activate_kernels[] = {
    ACTIVATE(q4_0, parts, NULL, VEC16_TOKENS), ACTIVATE(q4_0, parts, NULL, VEC16_ROWS_TOKENS),
    FEW_BULK_FORMATS(ACTIVATE_TILED_BULK, ONE_PER_CORE, PAIRS_OF_CORES, activated_list),
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
#define TILES_OF_8 "tiles of 16 rows and 8 tokens, columns split in nine"

/* BULK and TILED_BULK for a norm and the products after it. Two matrices share the rows of a threadgroup. */
#define BULK_NORMED(f, kind, wide, of, rows_, list, op_, matrices) \
    {.name = op_ "_" #f "_bulk", .variant = "bulk", .file = "cuda/normed_bulk.metal", .format = &format_##f, \
     .about = "NVIDIA: rows by bulk copies (TMA), the norm in the same pass", .group = 512, \
     .rows = rows_ / matrices, .multiple_of = of, .most = 4096, .groups = TWO_PER_CORE, \
     .needs = FEATURE_BULK_COPIES, .shapes = &wide##list}
#define TILED_BULK_NORMED(f, kind, wide, of, clusters, list, op_, matrices) \
    {.name = op_ "_" #f "_tiled_bulk", .variant = "tiled_bulk", .file = "cuda/skinny_bulk.metal", \
     .format = &format_##f, .about = "the same for a few tokens, in clusters of two", .group = 256, \
     .rows = 16 / matrices, .tokens = 8, .multiple_of = of, .most = 4096, .groups = clusters, .sharers = 2, \
     .needs = FEATURE_BULK_COPIES, .shapes = &wide##list}
#define EVERY_BULK_NORMED(list, ...) BULK_FORMATS(BULK_NORMED, 14, list, __VA_ARGS__)
#define EVERY_TILED_BULK_NORMED(list, ...) \
    FEW_BULK_FORMATS(TILED_BULK_NORMED, ONE_PER_CORE, PAIRS_OF_CORES, list, __VA_ARGS__)

/* Of many tokens: adapters, whose weights are floats. */
#define MIXED_TOKENS(variant_, rows_, tokens_, about_) \
    {FUSED("matvec_mixed_" variant_, "matvec_mixed", 256, rows_, tokens_, variant_, about_), .multiple_of = 32, \
     .shapes = &mixed_token_list}
#define MIXED_BULK(f, kind, wide, of, rows_, list) \
    {.name = "matvec_mixed_" #f "_bulk", .variant = "bulk", .file = "cuda/mixed_bulk.metal", .format = &format_##f, \
     .about = "NVIDIA: rows by bulk copies (TMA), and those of matrices in floats by plain loads", .group = 512, \
     .rows = rows_, .multiple_of = of, .most = 4096, .needs = FEATURE_BULK_COPIES, .shapes = &wide##list}
static const kernel mixed_kernels[] = {
    {FUSED("matvec_mixed", "matvec_mixed", 256, 8, 0, "plain", "one simdgroup per row")},
    MIXED_TOKENS("skinny",         128,  8, "tiles of 16 rows and 8 tokens as matrices, one per simdgroup"),
    MIXED_TOKENS("skinny_split_k",  16,  8, "the same, columns split in eight"),
    MIXED_TOKENS("wide",           256, 16, "tiles of 32 rows and 16 tokens as matrices, one per simdgroup"),
    MIXED_TOKENS("wide_split_k",    32, 16, "the same, columns split in eight"),
    BULK_FORMATS(MIXED_BULK, 12, mixed_bulk),
};
/* variant; rows, tokens and threadgroups of a tile; what it tries */
#define GROUPS(f, adds, does, variant_, rows_, tokens_, sharers_, about_) \
    {.name = "matvec_split_" #f adds "_" variant_, .variant = variant_, .file = "cuda/matvec_split.metal", \
     .about = "NVIDIA: tiles of " #rows_ " rows and " #tokens_ " tokens by warpgroups (wgmma)" about_, \
     .format = &format_##f, .accumulates = does, .group = 2 * rows_, .rows = rows_, .tokens = tokens_, \
     .sharers = sharers_, .multiple_of = 256, .needs = FEATURE_WARPGROUPS, .shapes = does ? NULL : &split_list}
#define SPLITS_OF(f, adds, does) \
    GROUPS(f, adds, does, "groups", 128, 64, 0, ""), \
    GROUPS(f, adds, does, "wide_groups", 128, 128, 0, ""), \
    GROUPS(f, adds, does, "quarters", 128, 64, 4, ", columns split in four"), \
    GROUPS(f, adds, does, "eighths", 128, 64, 8, ", columns split in eight")
#define SPLITS(f, ...) SPLITS_OF(f, "", false), SPLITS_OF(f, "_accumulate", true)
static const kernel split_kernels[] = {FEW_BULK_FORMATS(SPLITS, 0, 0, 0)};
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
    EVERY_BULK_NORMED(bulk_normed, "rmsnorm_matvec", 1),
    {FUSED("rmsnorm_matvec_f32", "rmsnorm_matvec",             32,  1,  0, "plain",
           "one simdgroup per row, each computes the norm"),
     .format = &format_f32, .shapes = &normed_float_list},
};
#define GATE_TILES(...) {OF_Q4_0("gate_up_silu_q4_0" __VA_ARGS__), .shapes = &gated_tiled_list}
static const kernel gated_kernels[] = {
    {OF_Q4_0("gate_up_silu_q4_0", "gate_up_silu",     128,  4,  0, "plain",
             "one simdgroup per output, the norm in the same pass")},
    EVERY_BULK_NORMED(bulk_gates, "gate_up_silu", 2),
    EVERY_TILED_BULK_NORMED(few_bulk_gates, "gate_up_silu", 2),
    GATE_TILES("_tiled",          "gate_up_silu", 128, 32, 64, "tiled",          TILES_OF_64),
    GATE_TILES("_tiled_split_k",  "gate_up_silu", 128,  8, 32, "tiled_split_k",  TILES_OF_16),
    GATE_TILES("_tiled_skinny",   "gate_up_silu", 288,  8,  8, "tiled_skinny",   TILES_OF_8),
};
#define QKV_TILES(...) {OF_Q4_0("qkv_rope_append_q4_0" __VA_ARGS__), .shapes = &appended_tiled_list}
#define APPENDED_KERNELS(op_) \
    {OF_Q4_0(op_ "_q4_0", "qkv_rope_append", 128,  8,  0, "plain", \
             "two rows per simdgroup, the norm in the same pass")}, \
    EVERY_BULK_NORMED(bulk_heads, op_, 1), \
    EVERY_TILED_BULK_NORMED(few_bulk_heads, op_, 1)
static const kernel appended_kernels[] = {
    APPENDED_KERNELS("qkv_rope_append"),
    QKV_TILES("_tiled",          "qkv_rope_append", 128, 64, 64, "tiled",          TILES_OF_64),
    QKV_TILES("_tiled_split_k",  "qkv_rope_append", 128, 16, 32, "tiled_split_k",  TILES_OF_16),
    QKV_TILES("_tiled_skinny",   "qkv_rope_append", 288, 16,  8, "tiled_skinny",   TILES_OF_8),
};
static const kernel appended_halves_kernels[] = {APPENDED_KERNELS("qkv_rope_append_f16")};
/* clang-format on */
