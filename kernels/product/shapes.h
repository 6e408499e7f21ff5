/* shapes: what the kernels of products are checked with, in the order of op.dims. For table.h
 * and product.c only. */
#pragma once

#include "kernels/kernels.h"
#include "kernels/record.h"

/* matvec: rows, columns, tokens -------------------------------------------------------------- */

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
SHAPES_OF(wide_rows, ANY_INPUT(7, 512), {{1, 256}}, {{7, 512}}, {{8, 1792}}, {{9, 2048}},
          {{15, 2304}}, {{16, 4096}}, {{31, 4352}}, {{32, 6144}}, {{33, 8448}}, {{65, 2048}},
          {{8225, 2304}}, {{4096, 4096}});
/* For kernels that take 1024 columns of 32 rows and 8 tokens at a time, 64 of them at least. */
SHAPES_OF(wide_tokens, ANY_INPUT(7, 256, 3), {{1, 64, 1}}, {{7, 256, 3}}, {{31, 960, 8}},
          {{32, 1024, 7}}, {{33, 1088, 9}}, {{65, 3200, 17}}, {{192, 576, 16}}, {{4096, 4096, 8}});
SHAPES_OF(wider_rows, ANY_INPUT(7, 2048), {{1, 2048}}, {{2, 4096}}, {{15, 6144}}, {{16, 8192}},
          {{17, 10240}}, {{33, 2048}}, {{4129, 4096}}, {{4096, 4096}});
SHAPES_OF(eights, ANY_INPUT(7, 256), {{1, 8}}, {{2, 248}}, {{7, 256}}, {{15, 264}}, {{16, 1024}},
          {{17, 1032}}, {{31, 4096}}, {{33, 10000}}, {{4129, 1032}}, {{4096, 4096}});
/* For kernels that take 256 to 4096 columns, of 16 or 32 rows. 16417x2048 fills all of both stages of
 * shared memory, since a thread block has 64 rows and more. */
SHAPES_OF(bulk_rows, ANY_INPUT(7, 512), {{1, 256}}, {{7, 512}}, {{8, 1792}}, {{15, 2304}},
          {{16, 3840}}, {{31, 4096}}, {{32, 2048}}, {{33, 1024}}, {{65, 2560}}, {{8225, 2304}},
          {{16417, 2048}}, {{4096, 4096}});
SHAPES_OF(bulk_normed, ANY_INPUT(7, 512), {{1, 256}}, {{16, 2048}}, {{33, 1024}}, {{97, 2304}},
          {{513, 4096}}, {{32000, 4096}});
SHAPES_OF(wider_bulk_normed, ANY_INPUT(7, 2048), {{1, 2048}}, {{33, 4096}}, {{513, 2048}});
SHAPES_OF(bulk_gates, ANY_INPUT(7, 512), {{1, 256}}, {{8, 2048}}, {{17, 1024}}, {{49, 2304}},
          {{257, 4096}}, {{14336, 4096}});
SHAPES_OF(wider_bulk_gates, ANY_INPUT(7, 2048), {{1, 2048}}, {{6, 4096}}, {{49, 2048}},
          {{257, 4096}}, {{14336, 4096}});
/* Boundaries between q, k and v at every place in a tile of 16. */
SHAPES_OF(bulk_heads, ANY_INPUT(3, 3, 1, 6, 512), {{0, 1, 1, 2, 256}}, {{1, 3, 1, 2, 512}},
          {{7, 5, 1, 6, 2048}}, {{2, 5, 2, 34, 2304}}, {{10, 4, 2, 64, 1024}},
          {{2047, 9, 3, 64, 4096}}, {{100, 32, 8, 128, 4096}});
SHAPES_OF(wider_bulk_heads, ANY_INPUT(3, 3, 1, 6, 2048), {{0, 1, 1, 2, 2048}}, {{1, 3, 1, 2, 4096}},
          {{7, 5, 1, 6, 2048}}, {{2, 5, 2, 34, 2048}}, {{2047, 9, 3, 64, 4096}},
          {{100, 32, 8, 128, 4096}});
SHAPES_OF(bulk_tokens, ANY_INPUT(7, 512, 3), {{1, 256, 1}}, {{7, 512, 3}}, {{31, 1792, 8}},
          {{32, 4096, 7}}, {{33, 1024, 9}}, {{65, 2304, 17}}, {{192, 768, 16}}, {{4096, 4096, 8}});
SHAPES_OF(bulk_long_tokens, ANY_INPUT(7, 3840, 3), {{1, 256, 1}}, {{17, 2048, 9}}, {{31, 5632, 8}},
          {{47, 8192, 3}}, {{33, 10240, 7}}, {{97, 14336, 16}}, {{225, 7424, 2}},
          {{4096, 14336, 8}});
SHAPES_OF(wider_bulk_tokens, ANY_INPUT(7, 2048, 3), {{1, 2048, 1}}, {{31, 2048, 8}},
          {{32, 4096, 7}}, {{65, 4096, 17}}, {{4096, 4096, 8}});
SHAPES_OF(wider_bulk_long_tokens, ANY_INPUT(7, 4096, 3), {{1, 2048, 1}}, {{17, 6144, 9}},
          {{31, 8192, 8}}, {{97, 14336, 3}}, {{4096, 14336, 8}});
SHAPES_OF(few_bulk_gates, ANY_INPUT(7, 512, 3), {{1, 256, 1}}, {{8, 2048, 8}}, {{17, 1024, 9}},
          {{49, 2304, 5}}, {{257, 4096, 17}}, {{14336, 4096, 8}});
SHAPES_OF(few_bulk_heads, ANY_INPUT(3, 3, 1, 6, 512, 3), {{0, 1, 1, 2, 256, 1}},
          {{1, 3, 1, 2, 512, 9}}, {{7, 5, 1, 6, 2048, 3}}, {{2, 5, 2, 34, 2304, 8}},
          {{10, 4, 2, 64, 1024, 17}}, {{2040, 9, 3, 64, 4096, 7}}, {{100, 32, 8, 128, 4096, 8}});
SHAPES_OF(wider_few_bulk_gates, ANY_INPUT(7, 2048, 3), {{1, 2048, 1}}, {{8, 2048, 8}},
          {{17, 4096, 9}}, {{257, 4096, 5}}, {{14336, 4096, 8}});
SHAPES_OF(wider_few_bulk_heads, ANY_INPUT(3, 3, 1, 6, 2048, 3), {{0, 1, 1, 2, 2048, 1}},
          {{7, 5, 1, 6, 2048, 3}}, {{2040, 9, 3, 64, 4096, 9}}, {{100, 32, 8, 128, 4096, 8}});
SHAPES_OF(wider_bulk_rows, ANY_INPUT(7, 2048), {{1, 2048}}, {{15, 4096}}, {{16, 2048}},
          {{17, 4096}}, {{4129, 2048}}, {{4096, 4096}});
/* For kernels that take 14 * 256 columns at a time. */
SHAPES_OF(bulk_long_rows, ANY_INPUT(7, 3840), {{1, 256}}, {{7, 3584}}, {{15, 3840}}, {{16, 8192}},
          {{17, 14336}}, {{33, 11008}}, {{97, 4096}}, {{225, 7424}}, {{4096, 14336}});
SHAPES_OF(wider_bulk_long_rows, ANY_INPUT(7, 6144), {{1, 2048}}, {{9, 4096}}, {{11, 6144}},
          {{17, 14336}}, {{97, 10240}}, {{4096, 14336}});

/* Formats decoded like one above: fewer shapes. */
static const shape few_of_32[] = {{{1, 32}}, {{7, 480}}, {{9, 1024}}, {{33, 2080}}};
static const shape few_of_256[] = {{{1, 256}}, {{7, 768}}, {{9, 1280}}, {{33, 2304}}};
static const shape few_floats[] = {
    {{1, 1}}, {{7, 3}}, {{8, 31}}, {{9, 32}}, {{33, 33}}, {{5, 1000}},
};

/* Tokens: 1 to more than two tiles of 8, and more than one of 32. Rows: around the 32 of a threadgroup. Units of a row (32
 * weights, or 4 floats): around the 4 lanes that share it. */
static const shape many_of_32[] = {
    {{1, 32, 1}},    {{3, 64, 2}},     {{31, 96, 3}},   {{32, 128, 4}},
    {{33, 160, 5}},  {{7, 544, 6}},    {{40, 576, 7}},  {{9, 1056, 9}},
    {{64, 224, 16}}, {{576, 1536, 8}}, {{33, 160, 43}},
};
static const shape many_of_256[] = {
    {{1, 256, 1}}, {{3, 512, 2}},  {{31, 256, 3}}, {{32, 768, 4}},  {{33, 256, 5}},
    {{7, 512, 6}}, {{40, 256, 7}}, {{65, 512, 8}}, {{9, 1280, 17}}, {{33, 256, 43}},
};
static const shape many_floats[] = {
    {{1, 1, 1}},  {{1, 8, 1}},    {{3, 24, 2}},  {{31, 12, 3}},  {{32, 16, 4}},  {{33, 40, 5}},
    {{7, 36, 6}}, {{40, 104, 7}}, {{65, 64, 8}}, {{9, 333, 17}}, {{9, 328, 17}}, {{33, 136, 43}},
};

/* And fewer for formats decoded like another, but still each number of tokens that has code of its
 * own. */
static const shape few_many_of_32[] = {
    {{1, 32, 1}},  {{3, 64, 2}},  {{31, 96, 3}}, {{32, 128, 4}},  {{33, 160, 5}},
    {{7, 288, 6}}, {{40, 64, 7}}, {{65, 96, 8}}, {{9, 1056, 17}}, {{33, 160, 43}},
};
static const shape few_many_of_256[] = {
    {{1, 256, 1}}, {{3, 512, 2}},  {{31, 256, 3}}, {{32, 256, 4}},  {{33, 256, 5}},
    {{7, 512, 6}}, {{40, 256, 7}}, {{65, 256, 8}}, {{9, 1280, 17}}, {{33, 256, 43}},
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

#define SHAPES(name, replace, accumulate, many, tiles, ...)                                        \
    static const matvec_shapes name##_shapes = {                                                   \
        SHAPE_LIST(replace, __VA_ARGS__), SHAPE_LIST(accumulate, __VA_ARGS__),                     \
        SHAPE_LIST(many, __VA_ARGS__, 3), SHAPE_LIST(tiles, __VA_ARGS__, 3)}
SHAPES(ladder, ladder, large_of_32, many_of_32, tiled_of_32, 7, 96);
SHAPES(of_32, of_32, of_32, many_of_32, tiled_of_32, 7, 96);
SHAPES(head_of_32, head_of_32, of_32, many_of_32, tiled_of_32, 7, 96);
SHAPES(few_of_32, few_of_32, few_of_32, few_many_of_32, tiled_of_32, 7, 96);
SHAPES(of_256, of_256, of_256, many_of_256, tiled_of_256, 7, 512);
SHAPES(head_of_256, head_of_256, of_256, many_of_256, tiled_of_256, 7, 512);
SHAPES(few_of_256, few_of_256, few_of_256, few_many_of_256, tiled_of_256, 7, 512);
SHAPES(floats, floats, floats, many_floats, tiled_floats, 7, 104);
SHAPES(few_floats, few_floats, few_floats, many_floats, tiled_floats, 7, 104);

/* The other ops -------------------------------------------------------------------------------- */

/* The products themselves are checked as matvec: here are the ends of rows and of tiles of 8 tokens,
 * each activation, and the shapes of adapters. */
static const shape activated_blocks[] = {
    {{1, 256, 1, ACTIVATION_TANH}},      {{9, 512, 1, ACTIVATION_SQUARED_RELU}},
    {{33, 256, 1, ACTIVATION_DECAY, 1}}, {{7, 768, 3, ACTIVATION_SIGMOID, 1}},
    {{40, 256, 9, ACTIVATION_NONE, 1}},  {{33, 512, 8, ACTIVATION_SILU}},
    {{64, 768, 1, ACTIVATION_TANH}},     {{256, 256, 2, ACTIVATION_SQUARED_RELU}},
    {{33, 256, 43, ACTIVATION_SILU, 1}},
};
SHAPES_OF(wider_activated_list, ANY_INPUT(7, 2048, 1, ACTIVATION_SIGMOID, 1),
          {{1, 2048, 1, ACTIVATION_TANH}}, {{9, 4096, 2, ACTIVATION_SQUARED_RELU}},
          {{33, 2048, 8, ACTIVATION_SILU}}, {{7, 2048, 3, ACTIVATION_SIGMOID, 1}},
          {{40, 4096, 9, ACTIVATION_NONE, 1}}, {{257, 2048, 17, ACTIVATION_DECAY, 1}});
static const shape_list activated_list =
    SHAPE_LIST(activated_blocks, 7, 256, 1, ACTIVATION_SIGMOID, 1);
/* Adapters of a low rank are the only products with such short rows. */
SHAPES_OF(activated_float_list, ANY_INPUT(7, 104, 1, ACTIVATION_SIGMOID, 1),
          {{1, 4, 1, ACTIVATION_SIGMOID, 1}}, {{31, 12, 3, ACTIVATION_TANH}},
          {{64, 768, 1, ACTIVATION_TANH}}, {{768, 64, 1, ACTIVATION_DECAY, 1}},
          {{33, 32, 5, ACTIVATION_SIGMOID, 1}}, {{7, 100, 8, ACTIVATION_NONE, 1}},
          {{768, 32, 9, ACTIVATION_SIGMOID, 1}}, {{65, 36, 17, ACTIVATION_SILU}},
          {{9, 33, 1, ACTIVATION_SQUARED_RELU}}, {{5, 31, 1, ACTIVATION_DECAY}});

/* 1 to 7 products; each format in the first place; rows around the 8 of a threadgroup. */
static const shape mixed[] = {
    {{1, 32, 1, 0}},    {{7, 64, 2, 1}},   {{8, 96, 3, 2}},   {{9, 32, 4, 3}},  {{3, 544, 5, 4}},
    {{33, 32, 6, 5}},   {{1, 96, 7, 6}},   {{2, 32, 7, 7}},   {{15, 64, 7, 8}}, {{16, 32, 7, 9}},
    {{17, 128, 7, 10}}, {{64, 768, 7, 8}}, {{768, 64, 4, 8}},
};

/* Floats are formats 8 to 10. Rows and tokens around those of tiles, turns of 32 columns around the 8 that share
 * them, and the 4 that are loaded together; the adapters of models. */
SHAPES_OF(mixed_token_list, ANY_INPUT(5, 64, 7, 8, 3), {{1, 32, 1, 8, 1}}, {{15, 64, 3, 9, 2}},
          {{17, 96, 7, 10, 7}}, {{31, 128, 2, 8, 9}}, {{33, 160, 4, 9, 17}}, {{5, 288, 7, 8, 15}},
          {{129, 32, 2, 10, 8}}, {{257, 96, 3, 8, 16}}, {{7, 1056, 2, 9, 33}}, {{64, 768, 4, 8, 8}},
          {{768, 64, 4, 9, 8}});

/* After floats, in formats 8 to 10, comes the format of the kernel, whose rows are whole chunks of 256 columns,
 * in Q6_K of 2048. Rows in floats: as long as 1, 2 and 16 warps take at once, and longer; more than there are
 * threads. */
SHAPES_OF(mixed_bulk, ANY_INPUT(7, 512, 7, 9), {{1, 256, 4, 8}}, {{2, 512, 7, 10}},
          {{7, 768, 2, 10}}, {{33, 2048, 5, 9}}, {{5, 4096, 4, 8}}, {{1, 4, 3, 8}},
          {{15, 96, 3, 9}}, {{17, 260, 3, 10}}, {{3, 516, 2, 8}}, {{64, 4100, 1, 10}},
          {{9, 9000, 3, 8}}, {{70000, 4, 1, 9}}, {{768, 64, 3, 8}}, {{300, 768, 7, 8}});
SHAPES_OF(wider_mixed_bulk, ANY_INPUT(7, 2048, 7, 9), {{1, 2048, 4, 8}}, {{7, 4096, 7, 10}},
          {{33, 2048, 2, 10}}, {{15, 96, 3, 9}}, {{260, 2048, 4, 9}});

/* Boundaries between matrices at every place in a threadgroup; the model's QKV, and gate with
 * up. */
static const shape batched[] = {
    {{1, 1, 1, 32}},   {{1, 1, 0, 32}},   {{8, 8, 8, 64}},     {{7, 9, 1, 480}},
    {{3, 5, 0, 512}},  {{31, 1, 33, 96}}, {{2, 30, 65, 1056}}, {{576, 192, 192, 576}},
    {{9, 6, 17, 992}}, {{32, 32, 0, 32}}, {{5, 4, 100, 2080}}, {{1536, 1536, 0, 576}},
};

/* One matrix to three. Rows and tokens around the 128 and 64 of a tile, and the 32 of a warp; columns:
 * 256 at a time. */
static const shape split[] = {
    {{1, 0, 0, 256, 1}},     {{31, 33, 0, 512, 33}},      {{64, 1, 127, 768, 31}},
    {{65, 0, 0, 1024, 65}},  {{127, 129, 0, 256, 63}},    {{129, 2, 3, 256, 64}},
    {{257, 0, 0, 256, 130}}, {{512, 128, 128, 2048, 64}},
};
/* What is not added to y may have an activation, too. */
SHAPES_OF(split_list, ANY_INPUT(65, 3, 1, 256, 3, ACTIVATION_SQUARED_RELU), {{1, 0, 0, 256, 1}},
          {{31, 33, 0, 512, 33, ACTIVATION_SQUARED_RELU}}, {{64, 1, 127, 768, 31}},
          {{65, 0, 0, 1024, 65, ACTIVATION_SQUARED_RELU}}, {{127, 129, 0, 256, 63}},
          {{129, 2, 3, 256, 64}}, {{257, 0, 0, 256, 130, ACTIVATION_SQUARED_RELU}},
          {{512, 128, 128, 2048, 64}});

/* Only the down projection of a model has this form. */
static const shape of_silu[] = {
    {{1, 32}},    {{2, 64}},  {{7, 96}},    {{8, 992}},    {{9, 1024}},
    {{15, 1056}}, {{17, 32}}, {{1, 11008}}, {{576, 1536}},
};

/* 8160 is the largest hidden of whole blocks that the megakernel takes. */
static const shape normed_blocks[] = {
    {{1, 32}},   {{2, 64}},    {{7, 96}},    {{8, 992}},    {{9, 1024}},   {{15, 1056}},
    {{3, 8160}}, {{192, 576}}, {{576, 576}}, {{1536, 576}}, {{576, 1536}},
};
SHAPES_OF(normed_float_list, ANY_INPUT(7, 77), {{1, 1}}, {{2, 31}}, {{7, 32}}, {{8, 33}},
          {{9, 100}}, {{3, 8191}}, {{192, 576}}, {{64, 1536}});

/* Rows: around the 4 of a threadgroup. Blocks of a row: around the 16 that lanes take at a time. */
static const shape gated[] = {
    {{1, 32}},   {{2, 64}},    {{3, 480}}, {{4, 512}},    {{5, 544}},
    {{9, 1024}}, {{15, 1056}}, {{3, 96}},  {{1536, 576}}, {{64, 4096}},
};
/* Outputs around the 8, 16 and 32, tokens around the 32 and 64 of a tile. */
SHAPES_OF(gated_tiled_list, ANY_INPUT(7, 96, 3), {{1, 32, 1}}, {{7, 64, 33}}, {{9, 96, 31}},
          {{17, 128, 32}}, {{33, 160, 63}}, {{32, 288, 65}}, {{31, 576, 64}}, {{65, 32, 130}});

/* Rows: boundaries between q, k and v at every place in a threadgroup of 8. Blocks of a row: around
 * the 16 that lanes take at a time. Then those of models. */
static const shape appended[] = {
    {{0, 1, 1, 2, 32}},     {{1, 1, 1, 2, 64}},       {{3, 3, 1, 2, 480}},  {{7, 5, 1, 6, 512}},
    {{2, 2, 2, 34, 544}},   {{5, 4, 2, 16, 1056}},    {{0, 9, 3, 64, 576}}, {{10, 9, 3, 64, 576}},
    {{2047, 9, 3, 64, 96}}, {{100, 8, 2, 128, 1024}},
};

/* Stacked rows around the 16, 32 and 64, tokens around the 32 and 64 of a tile. */
SHAPES_OF(appended_tiled_list, ANY_INPUT(3, 3, 1, 6, 96, 5), {{0, 1, 1, 2, 32, 1}},
          {{1, 5, 1, 2, 64, 33}}, {{3, 3, 1, 6, 96, 31}}, {{7, 1, 1, 22, 160, 63}},
          {{2, 2, 1, 16, 288, 65}}, {{0, 9, 3, 64, 576, 8}}, {{10, 3, 1, 64, 128, 64}},
          {{100, 2, 1, 128, 32, 130}});
