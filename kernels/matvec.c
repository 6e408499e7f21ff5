/* matvec: launches, oracle and cases of y = W x and y += W x, for weights of every format and for
 * one token or many.
 *
 * One op: format, accumulation and tokens are fields of its kernels. Those that every format has
 * come from the list of formats; matvec_<format>.metal has the MSL of both = and +=. */
#include "kernels.h"

#include <math.h>

#include "formats/formats.h"
#include "harness/base/size.h"
#include "matvec_parts.h"
#include "record.h"
#include "reference/reference.h"

static void matvec_oracle(const launch *l, oracle_io *io) {
    const kernel *k = l->kernel;
    expected *out = &io->out[2];
    uint32_t out_dim = oracle_u32(io, 3), in_dim = oracle_u32(io, 4);
    uint32_t batch = io->in[5] ? oracle_u32(io, 5) : 1;
    for (size_t i = 0; i < out->count; i++) {
        if (!k->accumulates) /* else it starts as y before the launch */
            out->value[i] = 0;
        out->scale[i] = fabs(out->value[i]);
    }
    reference_matvec(k->format, io->in[0], io->in[1], out_dim, in_dim, batch, out->value,
                     out->scale);
    out->terms = in_dim + (k->accumulates ? 1.0 : 0.0);
}

/* Floats in a load; blocks need the alignment of their fp16 scales, or that of loads of 16 bytes. */
static uint32_t count_floats(const kernel *k) {
    return k->format->values == 1 && k->multiple_of ? k->multiple_of : 1;
}

size_t matvec_get_alignment(const kernel *k) {
    const weight_format *f = k->format;
    bool is_staged = k->multiple_of >= f->values;
    return f->values == 1 ? count_floats(k) * f->bytes : is_staged ? 16 : 2;
}

size_t matvec_get_x_alignment(const kernel *k) {
    bool is_narrow = k->format->values == 1 && count_floats(k) < 4;
    return is_narrow ? count_floats(k) * sizeof(float) : 16;
}

/* The kernels of cuda/ share the rows among their thread blocks: if there are few, each SM has as many.
 * Those for several tokens are clusters of two. */
static uint32_t share_rows(const tape *t, const kernel *k, uint32_t groups, uint32_t out_dim) {
    uint32_t cores = device_get_facts(library_get_device(t->lib))->cores,
             cluster = k->tokens ? 2 : 1;
    if (groups <= 2 * cores)
        groups = divide_up(groups, cores) * cores;
    return divide_up(groups < out_dim ? groups : out_dim, cluster) * cluster;
}

/* Kernels of one token have no batch, those that share rows are told how many each block has. */
bool matvec_record(tape *t, const kernel *k, slice w, slice x, slice y, uint32_t out_dim,
                   uint32_t in_dim, uint32_t batch, err *e) {
    if (!RECORD_TAKES(&matvec_op, k, e, out_dim, in_dim, batch))
        return false;
    bool shares = k->needs & FEATURE_BULK_COPIES;
    size3 groups = record_tiles(k, out_dim, batch);
    if (k->groups != 0 && groups.x > k->groups)
        groups.x = k->groups;
    if (shares)
        groups.x = share_rows(t, k, groups.x, out_dim);
    uint64_t outputs = (uint64_t)out_dim * batch;
    launch_arg args[] = {MATVEC_W(k, w, out_dim, in_dim),
                         MATVEC_X(k, x, size_multiply(batch, in_dim)),
                         ARG_OUT("y", y, size_multiply(batch, out_dim)),
                         ARG_U32(out_dim),
                         ARG_U32(in_dim),
                         ARG_U32(batch),
                         ARG_U32(groups.x ? out_dim / groups.x : 0)};
    if (k->accumulates)
        args[2].access = ACCESS_BOTH;
    if (k->tokens == 0)
        args[5].is_absent = true;
    const launch_work work = {.groups = groups,
                              .flops = 2 * outputs * in_dim + (k->accumulates ? outputs : 0),
                              .oracle = matvec_oracle};
    return record_args(t, k, args, shares ? 7 : 6, &work, e);
}

static bool matvec_build(kernel_case *c, err *e) {
    const kernel *k = c->kernel;
    uint32_t out_dim = c->shape.dim[0], in_dim = c->shape.dim[1];
    uint32_t batch = c->shape.dim[2] ? c->shape.dim[2] : 1;
    size_t outputs = size_multiply(batch, out_dim);
    slice w, x, y;
    return case_input_weights(c, "w", k->format, out_dim, in_dim, &w, e) &&
           case_input_f32(c, "x", size_multiply(batch, in_dim), &x, e) &&
           (k->accumulates ? case_input_f32(c, "y", outputs, &y, e)
                           : case_output(c, "y", outputs * sizeof(float), &y, e)) &&
           matvec_record(c->tape, k, w, x, y, out_dim, in_dim, batch, e);
}

/* --- shapes: rows, columns, tokens --- */

/* Rows: 1, and around the 4, 8, 16 and 32 of a threadgroup. Blocks of a row: 1, and around the 16,
 * 32 and 64 that one stride of the lanes covers. */
static const shape ladder[] = {
    {{1, 32}},    {{2, 64}},    {{4, 480}},    {{5, 512}},    {{7, 544}},     {{8, 992}},
    {{9, 1024}},  {{15, 1056}}, {{16, 2016}},  {{17, 2048}},  {{33, 2080}},   {{1, 11008}},
    {{192, 576}}, {{576, 576}}, {{1536, 576}}, {{576, 1536}}, {{4096, 4096}}, {{49152, 576}},
};

/* The same for the other formats, in blocks of 32, of 256 and of 1: fewer, because their kernels
 * assign rows and blocks in only one way. Logits are never accumulated, and only two formats are
 * used for a head. */
/* clang-format off */
#define SHAPES_OF_32 {{1, 32}}, {{3, 64}}, {{7, 480}}, {{8, 992}}, {{9, 1024}}, {{17, 1056}}, \
    {{33, 2080}}, {{1, 11008}}, {{1536, 576}}, {{576, 1536}}
#define SHAPES_OF_256 {{1, 256}}, {{7, 512}}, {{8, 768}}, {{9, 1280}}, {{33, 2304}}, {{1, 8192}}, \
    {{768, 3072}}
/* clang-format on */
static const shape of_32[] = {SHAPES_OF_32}, of_256[] = {SHAPES_OF_256};
static const shape large_of_32[] = {SHAPES_OF_32, {{4096, 4096}}};
static const shape head_of_32[] = {SHAPES_OF_32, {{49152, 576}}};
static const shape head_of_256[] = {SHAPES_OF_256, {{49152, 512}}};
static const shape floats[] = {
    {{1, 1}},   {{2, 3}},    {{7, 4}},    {{8, 31}},   {{9, 32}},
    {{17, 33}}, {{33, 127}}, {{1, 8191}}, {{5, 1000}}, {{1024, 96}},
};

/* For kernels that take 2048 columns at a time, 256 of them at least, and 4096 of x, and 32 rows for
 * each of at most 256 threadgroups. */
static const shape of_wide_rows[] = {
    {{1, 256}},   {{7, 512}},   {{8, 1792}},  {{9, 2048}},  {{15, 2304}},   {{16, 4096}},
    {{31, 4352}}, {{32, 6144}}, {{33, 8448}}, {{65, 2048}}, {{8225, 2304}}, {{4096, 4096}},
};
/* For kernels that take 1024 columns of 32 rows and 8 tokens at a time, 64 of them at least. */
static const shape of_wide_tokens[] = {
    {{1, 64, 1}},    {{7, 256, 3}},    {{31, 960, 8}},   {{32, 1024, 7}},
    {{33, 1088, 9}}, {{65, 3200, 17}}, {{192, 576, 16}}, {{4096, 4096, 8}},
};
static const shape_list wide_tokens = SHAPE_LIST(of_wide_tokens, 7, 256, 3);
static const shape of_wider_rows[] = {
    {{1, 2048}},   {{2, 4096}},  {{15, 6144}},   {{16, 8192}},
    {{17, 10240}}, {{33, 2048}}, {{4129, 4096}}, {{4096, 4096}},
};
static const shape of_eights[] = {
    {{1, 8}},     {{2, 248}},   {{7, 256}},    {{15, 264}},    {{16, 1024}},
    {{17, 1032}}, {{31, 4096}}, {{33, 10000}}, {{4129, 1032}}, {{4096, 4096}},
};
/* For kernels that take 256 to 4096 columns, of 16 or 32 rows. */
static const shape of_near_rows[] = {
    {{1, 256}},   {{7, 512}},   {{8, 1792}},  {{15, 2304}},   {{16, 3840}},   {{31, 4096}},
    {{32, 2048}}, {{33, 1024}}, {{65, 2560}}, {{8225, 2304}}, {{4096, 4096}},
};
static const shape of_near_tokens[] = {
    {{1, 256, 1}},   {{7, 512, 3}},    {{31, 1792, 8}},  {{32, 4096, 7}},
    {{33, 1024, 9}}, {{65, 2304, 17}}, {{192, 768, 16}}, {{4096, 4096, 8}},
};
static const shape_list near_tokens = SHAPE_LIST(of_near_tokens, 7, 512, 3);
static const shape of_wider_near_rows[] = {
    {{1, 2048}}, {{15, 4096}}, {{16, 2048}}, {{17, 4096}}, {{4129, 2048}}, {{4096, 4096}},
};
static const shape_list near_rows = {of_near_rows, COUNT_OF(of_near_rows), {{7, 512}}},
                        wider_near_rows = {
                            of_wider_near_rows, COUNT_OF(of_wider_near_rows), {{7, 2048}}};
static const shape_list eights = {of_eights, COUNT_OF(of_eights), {{7, 256}}},
                        wide_rows = {of_wide_rows, COUNT_OF(of_wide_rows), {{7, 512}}},
                        wider_rows = {of_wider_rows, COUNT_OF(of_wider_rows), {{7, 2048}}};

/* Formats decoded like one above: fewer shapes. */
static const shape few_of_32[] = {
    {{1, 32}},
    {{7, 480}},
    {{9, 1024}},
    {{33, 2080}},
};
static const shape few_of_256[] = {
    {{1, 256}},
    {{7, 768}},
    {{9, 1280}},
    {{33, 2304}},
};
static const shape few_floats[] = {
    {{1, 1}}, {{7, 3}}, {{8, 31}}, {{9, 32}}, {{33, 33}}, {{5, 1000}},
};

/* Tokens: 1 to more than two tiles of 8. Rows: around the 32 of a threadgroup. Units of a row (32
 * weights, or 4 floats): around the 4 lanes that share it. */
static const shape many_of_32[] = {
    {{1, 32, 1}},  {{3, 64, 2}},   {{31, 96, 3}},  {{32, 128, 4}},  {{33, 160, 5}},
    {{7, 544, 6}}, {{40, 576, 7}}, {{9, 1056, 9}}, {{64, 224, 16}}, {{576, 1536, 8}},
};
static const shape many_of_256[] = {
    {{1, 256, 1}}, {{3, 512, 2}},  {{31, 256, 3}}, {{32, 768, 4}},  {{33, 256, 5}},
    {{7, 512, 6}}, {{40, 256, 7}}, {{65, 512, 8}}, {{9, 1280, 17}},
};
static const shape many_floats[] = {
    {{1, 1, 1}},  {{3, 4, 2}},    {{31, 12, 3}}, {{32, 16, 4}},  {{33, 20, 5}},
    {{7, 36, 6}}, {{40, 100, 7}}, {{65, 64, 8}}, {{9, 333, 17}},
};

/* And fewer for formats decoded like another, but still each number of tokens that has code of its
 * own. */
static const shape few_many_of_32[] = {
    {{1, 32, 1}},  {{3, 64, 2}},  {{31, 96, 3}}, {{32, 128, 4}},  {{33, 160, 5}},
    {{7, 288, 6}}, {{40, 64, 7}}, {{65, 96, 8}}, {{9, 1056, 17}},
};
static const shape few_many_of_256[] = {
    {{1, 256, 1}}, {{3, 512, 2}},  {{31, 256, 3}}, {{32, 256, 4}},  {{33, 256, 5}},
    {{7, 512, 6}}, {{40, 256, 7}}, {{65, 256, 8}}, {{9, 1280, 17}},
};

/* Rows and tokens around the 16, 32 and 64 of a tile; blocks of a row: around the 4 of a turn. */
static const shape tiled_of_32[] = {
    {{1, 32, 1}},    {{15, 64, 33}},  {{16, 96, 31}},  {{33, 128, 32}},
    {{65, 160, 63}}, {{64, 288, 65}}, {{63, 576, 64}}, {{129, 32, 130}},
};
static const shape tiled_of_256[] = {
    {{1, 256, 1}}, {{65, 256, 63}}, {{64, 512, 65}}, {{63, 768, 7}}, {{129, 256, 64}},
};
static const shape tiled_floats[] = {
    {{1, 4, 1}},    {{65, 28, 63}},  {{64, 32, 65}},   {{63, 36, 64}},
    {{3, 100, 17}}, {{129, 64, 65}}, {{100, 128, 19}},
};
/* The shapes a format is checked with, by the name that formats.h gives them. */
typedef struct {
    shape_list replace, accumulate, many, tiles;
} matvec_shapes;

#define LIST(shapes, ...)                                                                          \
    {                                                                                              \
        shapes, COUNT_OF(shapes), {                                                                \
            { __VA_ARGS__ }                                                                        \
        }                                                                                          \
    }
#define SHAPES(name, replace, accumulate, many, tiles, ...)                                        \
    static const matvec_shapes name##_shapes = {                                                   \
        LIST(replace, __VA_ARGS__), LIST(accumulate, __VA_ARGS__), LIST(many, __VA_ARGS__, 3),     \
        LIST(tiles, __VA_ARGS__, 3)}
SHAPES(ladder, ladder, large_of_32, many_of_32, tiled_of_32, 7, 96);
SHAPES(of_32, of_32, of_32, many_of_32, tiled_of_32, 7, 96);
SHAPES(head_of_32, head_of_32, of_32, many_of_32, tiled_of_32, 7, 96);
SHAPES(few_of_32, few_of_32, few_of_32, few_many_of_32, tiled_of_32, 7, 96);
SHAPES(of_256, of_256, of_256, many_of_256, tiled_of_256, 7, 512);
SHAPES(head_of_256, head_of_256, of_256, many_of_256, tiled_of_256, 7, 512);
SHAPES(few_of_256, few_of_256, few_of_256, few_many_of_256, tiled_of_256, 7, 512);
SHAPES(floats, floats, floats, many_floats, tiled_floats, 7, 100);
SHAPES(few_floats, few_floats, few_floats, many_floats, tiled_floats, 7, 100);

/* --- kernels --- */

/* The schedules: the file, and how a kernel's name begins; threads, rows and tokens of a threadgroup,
 * what in_dim is a multiple of and the most it may be, the most threadgroups, and what the device must
 * offer; how the name ends, the variant, and what it tries. The kernels follow: a format, the shapes it
 * is checked with, a schedule. */
/* clang-format off */
enum { ALL_TOKENS = 1 << 30 }; /* it loops over them itself */
enum { ONE_PER_CORE = 128, TWO_PER_CORE = 256 }; /* of a large GPU, with room for the next launch */
#define OWN(f) "matvec_" #f ".metal"
#define STREAM_FILE(f) "matvec_stream.metal"
#define FEW_STREAM_FILE(f) "few_stream.metal"
#define NEAR_FILE(f) "cuda/matvec_near.metal"
#define FEW_NEAR_FILE(f) "cuda/few_near.metal"
#define ONE  "matvec_"
#define MANY "multi_token_matvec_"

/*                             threads rows tokens  of  most groups needs */
#define ROW         OWN, ONE,    256,    8,   0,    0,    0, 0, 0, \
    "", "plain", "one simdgroup per row"
#define WEIGHTS     OWN, ONE,     32,    1,   0,    0,    0, 0, 0, \
    "", "plain", "one simdgroup per row, weight by weight"
#define VEC4        OWN, ONE,     32,    1,   0,    0,    0, 0, 0, \
    "_vec4", "vec4", "four weights at a time"
#define MULTIROW    OWN, ONE,    256,    4,   0,    0,    0, 0, 0, \
    "_multirow", "multirow", "two simdgroups per row"
#define SIMDGROUP   OWN, ONE,    256,   32,   0,    0,    0, 0, 0, \
    "_simdgroup", "simdgroup", "4 rows per simdgroup, one after another"
#define COALESCED   OWN, ONE,    256,    8,   0,    0,    0, 0, 0, \
    "_coalesced", "coalesced", "one simdgroup per row, 16-bit loads"
#define HALFBLOCK   OWN, ONE,    256,    8,   0,    0,    0, 0, 0, \
    "_halfblock", "halfblock", "one simdgroup per row, half a block per lane"
#define ROWBLOCK    OWN, ONE,    128,   16,   0,    0,    0, 0, 0, \
    "_rowblock", "rowblock", "4 rows per simdgroup at once, x in registers"
#define LEAN        OWN, ONE,    128,    4,   0,    0,    0, 0, 0, \
    "_lean", "lean", "one row per simdgroup, 16 weights per lane"
#define LEAN_ROWS   OWN, ONE,    128,   16,   0,    0,    0, 0, 0, \
    "_lean_rows", "lean_rows", "the same, 4 rows per simdgroup"
#define STRIP(n)    OWN, ONE, 32 / n,   32,   0,    0,    0, 0, 0, \
    "_strip", "strip", #n " rows per thread"
#define STREAM(rows, of, groups) STREAM_FILE, ONE, \
                                 256, rows,   0,   of,    0, groups, 0, \
    "_stream", "stream", "rows by way of threadgroup memory, in loads of 16 bytes"
#define NEAR(of) NEAR_FILE, ONE, \
                                 512,   32,   0,   of, 4096, 0, FEATURE_BULK_COPIES, \
    "_near", "near", "NVIDIA: rows by bulk copies (TMA), multiplied as bytes by tensor cores"
#define BY_TOKEN    OWN, MANY,   256,    8, ALL_TOKENS,    0,    0, 0, 0, \
    "", "plain", "one token after another"
#define REUSE       OWN, MANY,   128,   32,   8,    4,    0, 0, 0, \
    "_reuse", "reuse", "each weight decoded once for 8 tokens, one quad per row"
#define ALONE       OWN, MANY,    32,   32,   8,    4,    0, 0, 0, \
    "_alone", "alone", "the same, one thread per row"
#define TILED       OWN, MANY,   128,   64,  64,    4,    0, 0, 0, \
    "_tiled", "tiled", "tiles of 64 rows and 64 tokens, weights decoded once per tile"
#define TILED_SPLIT OWN, MANY,   128,   16,  32,    4,    0, 0, 0, \
    "_tiled_split", "tiled_split", "tiles of 16 rows and 32 tokens, columns split in four"
#define TILED_FEW   OWN, MANY,   256,   16,   8,    4,    0, 0, 0, \
    "_tiled_few", "tiled_few", "tiles of 16 rows and 8 tokens, columns split in eight"
#define MATRIX      OWN, MANY,   128,   64,  64,    4,    0, 0, 0, \
    "_matrix", "matrix", "tiles of 64 x 64, multiplied as simdgroup matrices"
#define TILED_STREAM FEW_STREAM_FILE, MANY, \
                                 512,   32,   8,   64,    0, 0, 0, \
    "_tiled_stream", "tiled_stream", \
    "tiles of 32 rows and 8 tokens as matrices, weights by way of threadgroup memory"
#define TILED_NEAR FEW_NEAR_FILE, MANY, \
                                 512,   32,   8,  256, 4096, 0, FEATURE_BULK_COPIES, \
    "_tiled_near", "tiled_near", \
    "NVIDIA: rows by bulk copies (TMA), as halves by tensor cores, in clusters of two"
/* clang-format on */

#define KERNEL(f, adds, does, list, file_, start, group_, rows_, tokens_, of, most_, groups_,      \
               needs_, end, variant_, about_)                                                      \
    {                                                                                              \
        .name = start #f adds end, .variant = variant_, .about = about_, .file = file_(f),         \
        .format = &format_##f, .accumulates = does, .group = group_, .groups = groups_,            \
        .needs = needs_, .rows = rows_, .tokens = tokens_, .multiple_of = of, .most = most_,       \
        .shapes = list                                                                             \
    }
/* y = W x, and y += W x; or both, with the same shapes or with those that formats.h names. */
#define PUT(f, list, ...) EXPAND(f, "", false, list, __VA_ARGS__)
#define ADD(f, list, ...) EXPAND(f, "_accumulate", true, list, __VA_ARGS__)
#define EXPAND(...) KERNEL(__VA_ARGS__)
#define BOTH(f, list, ...) PUT(f, &list, __VA_ARGS__), ADD(f, &list, __VA_ARGS__)
#define SINGLE(f, s, ...)                                                                          \
    PUT(f, &s##_shapes.replace, __VA_ARGS__), ADD(f, &s##_shapes.accumulate, __VA_ARGS__)
#define PLAIN(f, s) SINGLE(f, s, ROW), BOTH(f, s##_shapes.many, BY_TOKEN),
#define EVERY(f, s)                                                                                \
    BOTH(f, s##_shapes.many, REUSE), BOTH(f, s##_shapes.many, ALONE),                              \
        BOTH(f, s##_shapes.tiles, TILED),

/* clang-format off */
static const kernel kernels[] = {
    /* Most weights are Q4_0. */
    PUT(q4_0, &ladder_shapes.replace, WEIGHTS),
    PUT(q4_0, &ladder_shapes.replace, VEC4),
    PUT(q4_0, &ladder_shapes.replace, MULTIROW),
    PUT(q4_0, &ladder_shapes.replace, SIMDGROUP),
    PUT(q4_0, &ladder_shapes.replace, COALESCED),
    PUT(q4_0, &ladder_shapes.replace, HALFBLOCK),
    SINGLE(q4_0, ladder, ROWBLOCK),
    ADD(q4_0, &ladder_shapes.accumulate, ROW),
    BOTH(q4_0, ladder_shapes.many, BY_TOKEN), /* it is published */
    BOTH(q4_0, ladder_shapes.many, TILED_FEW),
    BOTH(q4_0, wide_tokens, TILED_STREAM),
    BOTH(q4_0, near_tokens, TILED_NEAR),
    /* The formats that most weights are in. */
    SINGLE(q4_0, ladder, LEAN),       SINGLE(q4_0, ladder, LEAN_ROWS),
    SINGLE(q8_0, head_of_32, LEAN),   SINGLE(q8_0, head_of_32, LEAN_ROWS),
    SINGLE(q4_k, of_256, LEAN),       SINGLE(q4_k, of_256, LEAN_ROWS),
    SINGLE(q6_k, head_of_256, LEAN),  SINGLE(q6_k, head_of_256, LEAN_ROWS),
    SINGLE(q4_0, ladder, STRIP(8)),   SINGLE(q8_0, head_of_32, STRIP(4)),
    BOTH(q4_0, wide_rows, STREAM(32, 256, TWO_PER_CORE)),
    BOTH(q8_0, wide_rows, STREAM(16, 256, ONE_PER_CORE)),
    BOTH(q4_k, wide_rows, STREAM(32, 256, TWO_PER_CORE)),
    BOTH(q6_k, wider_rows, STREAM(16, 2048, ONE_PER_CORE)),
    BOTH(f16, eights, STREAM(16, 8, 0)),
    BOTH(q4_0, near_rows, NEAR(256)),
    BOTH(q4_k, near_rows, NEAR(256)),
    BOTH(q6_k, wider_near_rows, NEAR(2048)),
    BOTH(q4_0, ladder_shapes.tiles, TILED_SPLIT),      BOTH(q4_0, ladder_shapes.tiles, MATRIX),
    BOTH(q8_0, head_of_32_shapes.tiles, TILED_SPLIT),  BOTH(q8_0, head_of_32_shapes.tiles, MATRIX),
    BOTH(q4_k, of_256_shapes.tiles, TILED_SPLIT),      BOTH(q4_k, of_256_shapes.tiles, MATRIX),
    BOTH(q6_k, head_of_256_shapes.tiles, TILED_SPLIT), BOTH(q6_k, head_of_256_shapes.tiles, MATRIX),
    BOTH(f16, floats_shapes.tiles, TILED_SPLIT),       BOTH(f16, floats_shapes.tiles, MATRIX),
    /* The others, for one token; floats also take rows of any length for many. */
    SINGLE(q4_1, of_32, ROW),         SINGLE(q5_0, few_of_32, ROW),
    SINGLE(q5_1, few_of_32, ROW),     SINGLE(q5_k, few_of_256, ROW),
    FLOAT_FORMATS(PLAIN)
    /* Every format. */
    FORMATS(EVERY)
};
/* clang-format on */

const op matvec_op = {
    .name = "matvec",
    .source = __FILE__,
    .about = "y = W x or y += W x, for one x or many",
    .dims = "out x in x batch",
    .kernels = kernels,
    .kernel_count = COUNT_OF(kernels),
    .inner = "in",
    .many = "batch",
    .sizes = "out", /* tokens: the lists have the edges of all tiles */
    .build = matvec_build,
};
