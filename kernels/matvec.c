/* matvec: launches, oracle and cases of y = W x and y += W x, for weights of every format and for
 * one token or many.
 *
 * Each format has four ops: matvec_<format>, with a .metal file of that name, matvec_<format>_
 * accumulate, with another, and multi_token_ of both, whose kernels are in the same files. They
 * differ in nothing that this file is about, so they are made here together. The one surprise: the
 * op that a kernel belongs to, and with it the format, is found from its name. */
#include "kernels.h"

#include <assert.h>
#include <math.h>

#include "harness/base/os.h"
#include "record.h"
#include "reference/reference.h"

typedef struct {
    const op *op;
    const weight_format *format;
    const char *file;
    bool accumulates;
} product;

/* The two ops of a file: for one token, for many. */
#define PRODUCTS(file, type, accumulates)                                                          \
    {&file##_op, &format_##type, #file ".metal", accumulates}, {                                   \
        &multi_token_##file##_op, &format_##type, #file ".metal", accumulates                      \
    }

static const product products[] = {
    PRODUCTS(matvec_q4_0, q4_0, false), PRODUCTS(matvec_q4_0_accumulate, q4_0, true),
    PRODUCTS(matvec_q4_1, q4_1, false), PRODUCTS(matvec_q4_1_accumulate, q4_1, true),
    PRODUCTS(matvec_q5_0, q5_0, false), PRODUCTS(matvec_q5_0_accumulate, q5_0, true),
    PRODUCTS(matvec_q5_1, q5_1, false), PRODUCTS(matvec_q5_1_accumulate, q5_1, true),
    PRODUCTS(matvec_q8_0, q8_0, false), PRODUCTS(matvec_q8_0_accumulate, q8_0, true),
    PRODUCTS(matvec_q4_k, q4_k, false), PRODUCTS(matvec_q4_k_accumulate, q4_k, true),
    PRODUCTS(matvec_q5_k, q5_k, false), PRODUCTS(matvec_q5_k_accumulate, q5_k, true),
    PRODUCTS(matvec_q6_k, q6_k, false), PRODUCTS(matvec_q6_k_accumulate, q6_k, true),
    PRODUCTS(matvec_f16, f16, false),   PRODUCTS(matvec_f16_accumulate, f16, true),
    PRODUCTS(matvec_bf16, bf16, false), PRODUCTS(matvec_bf16_accumulate, bf16, true),
    PRODUCTS(matvec_f32, f32, false),   PRODUCTS(matvec_f32_accumulate, f32, true),
};

static const product *find_product(const char *name) {
    for (size_t i = 0; i < COUNT_OF(products); i++)
        if (op_find_kernel(products[i].op, name))
            return &products[i];
    return NULL;
}

static void matvec_oracle(const launch *l, oracle_io *io) {
    const product *p = find_product(l->pipeline->kernel);
    expected *out = &io->out[2];
    uint32_t out_dim = oracle_u32(io, 3), in_dim = oracle_u32(io, 4);
    uint32_t batch = io->in[5] ? oracle_u32(io, 5) : 1;
    for (size_t i = 0; i < out->count; i++) {
        if (!p->accumulates) /* else it starts as y before the launch */
            out->value[i] = 0;
        out->scale[i] = fabs(out->value[i]);
    }
    reference_matvec(p->format, io->in[0], io->in[1], out_dim, in_dim, batch, out->value,
                     out->scale);
    out->terms = in_dim + (p->accumulates ? 1.0 : 0.0);
}

static bool check_dims(const kernel *k, uint32_t in_dim, uint32_t batch, err *e) {
    if (k->tokens == 0 && batch != 1)
        return err_set(e, EXIT_CANNOT, "%s: takes one token, not %u; use a multi_token_ kernel",
                       k->name, batch);
    if (k->min_dim != 0 && in_dim % k->min_dim != 0)
        return err_set(e, EXIT_CANNOT,
                       "%s: in_dim is %u and must be a multiple of %u; its op has a kernel for any",
                       k->name, in_dim, k->min_dim);
    return true;
}

/* Geometry: k->rows rows and k->tokens tokens a threadgroup of k->group threads; k->tokens is 0 for
 * kernels of one token, which have no batch argument. k->min_dim: what in_dim must be a multiple
 * of, where that is more than a block. */
bool matvec_record(tape *t, const kernel *k, slice w, slice x, slice y, uint32_t out_dim,
                   uint32_t in_dim, uint32_t batch, err *e) {
    const product *p = find_product(k->name);
    assert(p);
    size_t x_bytes = os_multiply(os_multiply(batch, in_dim), sizeof(float)),
           y_bytes = os_multiply(os_multiply(batch, out_dim), sizeof(float));
    bool is_float = p->format->values == 1; /* blocks need the alignment of their fp16 scales */
    uint32_t width = is_float && k->min_dim ? k->min_dim : 1; /* weights in a load */
    if (!check_dims(k, in_dim, batch, e) ||
        !record_check_weights(k, "w", p->format, w, out_dim, in_dim,
                              is_float ? width * p->format->bytes : 2, e) ||
        !record_trim(k, "x", x_bytes, is_float ? width * sizeof(float) : 16, &x, e) ||
        !record_trim(k, "y", y_bytes, sizeof(float), &y, e))
        return false;
    launch *l = tape_add(t, p->file, k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, w, ACCESS_READ, ELEM_U8);
    launch_bind(l, 1, x, ACCESS_READ, ELEM_F32);
    launch_bind(l, 2, y, p->accumulates ? ACCESS_BOTH : ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 3, out_dim);
    launch_set_u32(l, 4, in_dim);
    if (k->tokens != 0)
        launch_set_u32(l, 5, batch);
    uint32_t tiles = k->tokens == 0 ? 1 : divide_up(batch, k->tokens);
    launch_set_groups(l, (size3){divide_up(out_dim, k->rows), tiles, 1}, (size3){k->group, 1, 1});
    uint64_t outputs = (uint64_t)out_dim * batch;
    l->bytes = w.bytes + x_bytes + (p->accumulates ? 2 : 1) * y_bytes;
    l->flops = 2 * outputs * in_dim + (p->accumulates ? outputs : 0);
    l->oracle = matvec_oracle;
    return true;
}

static bool matvec_accepts(const kernel *k, const shape *s, err *e) {
    return k->min_dim == 0 || s->dim[1] % k->min_dim == 0 ||
           err_set(e, EXIT_CANNOT, "rows are a multiple of %u weights", k->min_dim);
}

static bool matvec_build(kernel_case *c, err *e) {
    const product *p = find_product(c->kernel->name);
    uint32_t out_dim = c->shape.dim[0], in_dim = c->shape.dim[1];
    uint32_t batch = c->shape.dim[2] ? c->shape.dim[2] : 1;
    size_t outputs = os_multiply(batch, out_dim);
    slice w, x, y;
    return case_input_weights(c, "w", p->format, out_dim, in_dim, &w, e) &&
           case_input_f32(c, "x", os_multiply(batch, in_dim), &x, e) &&
           (p->accumulates ? case_input_f32(c, "y", outputs, &y, e)
                           : case_output(c, "y", outputs * sizeof(float), &y, e)) &&
           matvec_record(c->tape, c->kernel, w, x, y, out_dim, in_dim, batch, e);
}

/* --- shapes: rows, columns, tokens --- */

/* Rows: 1, and around the 4, 8, 16 and 32 of a threadgroup. Blocks of a row: 1, and around the 16,
 * 32 and 64 that one stride of the lanes covers. */
static const shape ladder_shapes[] = {
    {{1, 32}},     {{2, 32}},      {{3, 64}},      {{4, 480}},   {{5, 512}},   {{7, 544}},
    {{8, 992}},    {{9, 1024}},    {{15, 1056}},   {{16, 32}},   {{17, 2016}}, {{31, 2048}},
    {{32, 2080}},  {{33, 96}},     {{1, 11008}},   {{192, 576}}, {{576, 576}}, {{1536, 576}},
    {{576, 1536}}, {{4096, 4096}}, {{49152, 576}},
};

/* The same for the other formats, in blocks of 32, of 256 and of 1: fewer, because their kernels
 * deal out rows and blocks in one way. Nothing is added to logits, and only two of them are the
 * format of a head. */
#define SHAPES_OF_32                                                                               \
    {{1, 32}}, {{2, 64}}, {{3, 96}}, {{7, 480}}, {{8, 992}}, {{9, 1024}}, {{15, 1056}},            \
        {{17, 32}}, {{33, 2080}}, {{1, 11008}}, {{192, 576}}, {{1536, 576}}, {                     \
        { 576, 1536 }                                                                              \
    }
#define SHAPES_OF_256                                                                              \
    {{1, 256}}, {{2, 512}}, {{7, 768}}, {{8, 1024}}, {{9, 1280}}, {{17, 256}}, {{33, 2304}},       \
        {{1, 8192}}, {{1024, 1024}}, {                                                             \
        { 768, 3072 }                                                                              \
    }
static const shape q4_0_accumulate_shapes[] = {SHAPES_OF_32, {{4096, 4096}}};
static const shape q8_0_shapes[] = {SHAPES_OF_32, {{49152, 576}}};
static const shape q4_1_shapes[] = {SHAPES_OF_32};
static const shape q6_k_shapes[] = {SHAPES_OF_256, {{49152, 512}}};
static const shape q4_k_shapes[] = {SHAPES_OF_256};
static const shape float_shapes[] = {
    {{1, 1}},    {{2, 3}},    {{7, 4}},    {{8, 31}},   {{9, 32}},    {{17, 33}},
    {{31, 127}}, {{33, 128}}, {{1, 8191}}, {{5, 1000}}, {{96, 1024}}, {{1024, 96}},
};

/* What is read as another format is, with other bits: fewer again. */
static const shape few_of_32[] = {
    {{1, 32}}, {{2, 64}}, {{7, 480}}, {{9, 1024}}, {{17, 32}}, {{33, 2080}}, {{192, 576}},
};
static const shape few_of_256[] = {
    {{1, 256}}, {{2, 512}}, {{7, 768}}, {{9, 1280}}, {{17, 256}}, {{33, 2304}}, {{192, 768}},
};
static const shape few_floats[] = {
    {{1, 1}}, {{2, 3}}, {{7, 4}}, {{8, 31}}, {{9, 32}}, {{17, 33}}, {{33, 128}}, {{5, 1000}},
};

/* Tokens: 1 to more than two tiles of 8. Rows: around the 32 of a threadgroup. Units of a row (32
 * weights, or 4 floats): around the 4 lanes that share it. */
static const shape many_of_32[] = {
    {{1, 32, 1}},   {{3, 64, 2}},    {{31, 96, 3}},    {{32, 128, 4}},
    {{33, 160, 5}}, {{7, 544, 6}},   {{40, 576, 7}},   {{65, 96, 8}},
    {{9, 1056, 9}}, {{64, 224, 16}}, {{192, 576, 19}}, {{576, 1536, 8}},
};
static const shape many_of_256[] = {
    {{1, 256, 1}},  {{3, 512, 2}},   {{31, 256, 3}},   {{32, 768, 4}},
    {{33, 256, 5}}, {{7, 512, 6}},   {{40, 256, 7}},   {{65, 512, 8}},
    {{9, 1280, 9}}, {{64, 256, 16}}, {{192, 768, 19}},
};
static const shape many_floats[] = {
    {{1, 1, 1}},    {{3, 4, 2}},   {{31, 12, 3}}, {{32, 16, 4}},  {{33, 20, 5}},    {{7, 36, 6}},
    {{40, 100, 7}}, {{65, 64, 8}}, {{9, 333, 9}}, {{64, 28, 16}}, {{100, 128, 19}},
};

/* And fewer for what is read as another format is; each number of tokens that has code of its own
 * is still there. */
static const shape few_many_of_32[] = {
    {{1, 32, 1}},  {{3, 64, 2}},  {{31, 96, 3}}, {{32, 128, 4}},  {{33, 160, 5}},
    {{7, 288, 6}}, {{40, 64, 7}}, {{65, 96, 8}}, {{9, 1056, 17}}, {{64, 96, 16}},
};
static const shape few_many_of_256[] = {
    {{1, 256, 1}}, {{3, 512, 2}},  {{31, 256, 3}}, {{32, 256, 4}},  {{33, 256, 5}},
    {{7, 512, 6}}, {{40, 256, 7}}, {{65, 256, 8}}, {{9, 1280, 17}}, {{35, 256, 16}},
};

/* --- kernels --- */

enum { ALL_TOKENS = INT32_MAX };

#define OP(name_, about_, dims_, rungs, shapes_, ...)                                              \
    const op name_##_op = {                                                                        \
        .name = #name_,                                                                            \
        .about = about_,                                                                           \
        .dims = dims_,                                                                             \
        .kernels = rungs,                                                                          \
        .kernel_count = COUNT_OF(rungs),                                                           \
        .shapes = shapes_,                                                                         \
        .shape_count = COUNT_OF(shapes_),                                                          \
        .any_input = {{__VA_ARGS__}},                                                              \
        .accepts = matvec_accepts,                                                                 \
        .build = matvec_build,                                                                     \
    }

#define ONE_TOKEN(name, about, shapes, ...)                                                        \
    static const kernel name##_rungs[] = {                                                     \
        {#name, "a simdgroup a row", .group = 256, .rows = 8}};                                    \
    OP(name, about, "out x in", name##_rungs, shapes, __VA_ARGS__)

/* `step` is what in_dim must be a multiple of for the kernel that reads float4s, where that is more
 * than a block. */
#define MANY_TOKENS(name, about, step, shapes, ...)                                                \
    static const kernel name##_rungs[] = {                                                     \
        {#name, "one token after the other", .group = 256, .rows = 8, .tokens = ALL_TOKENS},       \
        {#name "_reuse", "a weight decoded once for 8 tokens, a quad a row", .group = 128,         \
         .rows = 32, .min_dim = step, .tokens = 8},                                                \
        {#name "_alone", "the same, a thread a row", .group = 32, .rows = 32, .min_dim = step,     \
         .tokens = 8}};                                                                            \
    OP(name, about, "out x in x batch", name##_rungs, shapes, __VA_ARGS__)

#define BOTH_MANY(type, words, step, shapes, ...)                                                  \
    MANY_TOKENS(multi_token_matvec_##type, "y = W x for many x, W in " words, step, shapes,        \
                __VA_ARGS__);                                                                      \
    MANY_TOKENS(multi_token_matvec_##type##_accumulate, "y += W x for many x, W in " words, step,  \
                shapes, __VA_ARGS__)

#define BOTH_ONE(type, words, shapes, accumulate_shapes, ...)                                      \
    ONE_TOKEN(matvec_##type, "y = W x, W in " words, shapes, __VA_ARGS__);                         \
    ONE_TOKEN(matvec_##type##_accumulate, "y += W x, W in " words, accumulate_shapes, __VA_ARGS__)

BOTH_ONE(q4_1, "Q4_1", q4_1_shapes, q4_1_shapes, 7, 96);
BOTH_MANY(q4_1, "Q4_1", 0, many_of_32, 7, 96, 3);
BOTH_ONE(q8_0, "Q8_0", q8_0_shapes, q4_1_shapes, 7, 96);
BOTH_MANY(q8_0, "Q8_0", 0, many_of_32, 7, 96, 3);
BOTH_ONE(q4_k, "Q4_K", q4_k_shapes, q4_k_shapes, 7, 512);
BOTH_MANY(q4_k, "Q4_K", 0, many_of_256, 7, 512, 3);
BOTH_ONE(q6_k, "Q6_K", q6_k_shapes, q4_k_shapes, 7, 512);
BOTH_MANY(q6_k, "Q6_K", 0, many_of_256, 7, 512, 3);
BOTH_ONE(q5_0, "Q5_0", few_of_32, few_of_32, 7, 96);
BOTH_MANY(q5_0, "Q5_0", 0, few_many_of_32, 7, 96, 3);
BOTH_ONE(q5_1, "Q5_1", few_of_32, few_of_32, 7, 96);
BOTH_MANY(q5_1, "Q5_1", 0, few_many_of_32, 7, 96, 3);
BOTH_ONE(q5_k, "Q5_K", few_of_256, few_of_256, 7, 512);
BOTH_MANY(q5_k, "Q5_K", 0, few_many_of_256, 7, 512, 3);
BOTH_ONE(bf16, "BF16", few_floats, few_floats, 7, 100);
BOTH_MANY(bf16, "BF16", 4, many_floats, 7, 100, 3);
BOTH_ONE(f16, "F16", float_shapes, float_shapes, 7, 100);
BOTH_MANY(f16, "F16", 4, many_floats, 7, 100, 3);
BOTH_ONE(f32, "F32", float_shapes, float_shapes, 7, 100);
BOTH_MANY(f32, "F32", 4, many_floats, 7, 100, 3);

/* Q4_0 is what most weights are: here is the ladder. */
static const kernel q4_0_rungs[] = {
    {.name = "matvec_q4_0", .about = "a simdgroup a row, weight by weight", .group = 32, .rows = 1},
    {.name = "matvec_q4_0_vec4", .about = "four weights at a time", .group = 32, .rows = 1},
    {.name = "matvec_q4_0_multirow", .about = "two simdgroups a row", .group = 256, .rows = 4},
    {.name = "matvec_q4_0_simdgroup",
     .about = "4 rows a simdgroup, one after the other",
     .group = 256,
     .rows = 32},
    {.name = "matvec_q4_0_coalesced",
     .about = "a simdgroup a row, 16-bit loads",
     .group = 256,
     .rows = 8},
    {.name = "matvec_q4_0_halfblock",
     .about = "a simdgroup a row, a lane half a block",
     .group = 256,
     .rows = 8},
    {.name = "matvec_q4_0_rowblock",
     .about = "4 rows a simdgroup at once, x in registers",
     .group = 128,
     .rows = 16},
};
OP(matvec_q4_0, "y = W x, W in Q4_0", "out x in", q4_0_rungs, ladder_shapes, 7, 96);

static const kernel q4_0_accumulate_rungs[] = {
    {.name = "matvec_q4_0_accumulate", .about = "a simdgroup a row", .group = 256, .rows = 8},
    {.name = "matvec_q4_0_accumulate_rowblock",
     .about = "4 rows a simdgroup at once, x in registers",
     .group = 128,
     .rows = 16},
};
OP(matvec_q4_0_accumulate, "y += W x, W in Q4_0", "out x in", q4_0_accumulate_rungs,
   q4_0_accumulate_shapes, 7, 96);
BOTH_MANY(q4_0, "Q4_0", 0, many_of_32, 7, 96, 3);
