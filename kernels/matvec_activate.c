/* matvec_activate: launches, oracle and cases of y = activation(W x + bias), for weights of every
 * format and for one token or many. The kernels come from the list of formats; their MSL is in
 * matvec_rows.h. */
#include "kernels.h"

#include <math.h>

#include "activation_judge.h"
#include "formats/formats.h"
#include "harness/base/size.h"
#include "matvec_parts.h"
#include "record.h"
#include "reference/reference.h"

enum { BIAS = 5, HAS_BIAS, ACTIVATION, BATCH };

static void matvec_activate_oracle(const launch *l, oracle_io *io) {
    expected *out = &io->out[2];
    uint32_t out_dim = oracle_u32(io, 3), in_dim = oracle_u32(io, 4);
    uint32_t batch = io->in[BATCH] ? oracle_u32(io, BATCH) : 1;
    const float *bias = oracle_u32(io, HAS_BIAS) ? io->in[BIAS] : NULL;
    for (size_t i = 0; i < out->count; i++) {
        out->value[i] = bias ? (double)bias[i % out_dim] : 0;
        out->scale[i] = fabs(out->value[i]);
    }
    reference_matvec(l->kernel->format, io->in[0], io->in[1], out_dim, in_dim, batch, out->value,
                     out->scale);
    out->terms = in_dim + (bias ? 1.0 : 0.0);
    activation_judge(oracle_u32(io, ACTIVATION), l->pipeline->math != MATH_SAFE, out);
}

bool matvec_activate_record(tape *t, const kernel *k, slice w, slice x, slice bias, slice y,
                            uint32_t out_dim, uint32_t in_dim, uint32_t batch, uint32_t activation,
                            err *e) {
    bool has_bias = bias.buffer != NULL;
    if (!RECORD_TAKES(&matvec_activate_op, k, e, out_dim, in_dim, batch, activation, has_bias))
        return false;
    size_t values = size_multiply(batch, in_dim);
    launch_arg args[] = {MATVEC_W(k, w, out_dim, in_dim),
                         MATVEC_X(k, x, values),
                         ARG_OUT("y", y, size_multiply(batch, out_dim)),
                         ARG_U32(out_dim),
                         ARG_U32(in_dim),
                         ARG_IN("bias", bias, out_dim),
                         ARG_U32(has_bias),
                         ARG_U32(activation),
                         ARG_U32(batch)};
    if (!has_bias)
        args[BIAS] = args[1]; /* bound even if not read */
    const launch_work work = {.groups = record_tiles(k, out_dim, batch),
                              .flops = (uint64_t)out_dim * batch * (2 * (uint64_t)in_dim + 5),
                              .unmoved = has_bias ? 0 : values * sizeof(float),
                              .oracle = matvec_activate_oracle};
    return record_args(t, k, args, COUNT_OF(args) - (k->tokens == 0), &work, e);
}

static bool matvec_activate_accepts(const kernel *k, const shape *s, err *e) {
    (void)k;
    return activation_check(s->dim[3], e);
}

/* The fourth dimension is the activation, the fifth says whether there is a bias. */
static bool matvec_activate_build(kernel_case *c, err *e) {
    const kernel *k = c->kernel;
    const uint32_t *dim = c->shape.dim;
    uint32_t out_dim = dim[0], in_dim = dim[1], batch = dim[2];
    slice w, x, bias = {0}, y;
    return case_input_weights(c, "w", k->format, out_dim, in_dim, &w, e) &&
           case_input_f32(c, "x", size_multiply(batch, in_dim), &x, e) &&
           (!dim[4] || case_input_f32(c, "bias", out_dim, &bias, e)) &&
           case_output(c, "y", size_multiply(batch, out_dim) * sizeof(float), &y, e) &&
           matvec_activate_record(c->tape, k, w, x, bias, y, out_dim, in_dim, batch, dim[3], e);
}

/* The products themselves are checked as matvec: here are the ends of rows and of tiles of 8 tokens,
 * each activation, and the shapes of adapters. */
static const shape shapes[] = {
    {{1, 256, 1, ACTIVATION_TANH}},      {{9, 512, 1, ACTIVATION_SQUARED_RELU}},
    {{33, 256, 1, ACTIVATION_DECAY, 1}}, {{7, 768, 3, ACTIVATION_SIGMOID, 1}},
    {{40, 256, 9, ACTIVATION_NONE, 1}},  {{33, 512, 8, ACTIVATION_SILU}},
    {{64, 768, 1, ACTIVATION_TANH}},     {{256, 256, 2, ACTIVATION_SQUARED_RELU}},
};
/* Adapters of a low rank are the only products with such short rows. */
static const shape float_shapes[] = {
    {{1, 4, 1, ACTIVATION_SIGMOID, 1}},    {{31, 12, 3, ACTIVATION_TANH}},
    {{64, 768, 1, ACTIVATION_TANH}},       {{768, 64, 1, ACTIVATION_DECAY, 1}},
    {{33, 32, 5, ACTIVATION_SIGMOID, 1}},  {{7, 100, 8, ACTIVATION_NONE, 1}},
    {{768, 32, 9, ACTIVATION_SIGMOID, 1}}, {{65, 36, 17, ACTIVATION_SILU}},
    {{9, 33, 1, ACTIVATION_SQUARED_RELU}}, {{5, 31, 1, ACTIVATION_DECAY}},
};
static const shape_list float_list = {
    float_shapes, COUNT_OF(float_shapes), {{7, 100, 1, ACTIVATION_SIGMOID, 1}}};

#define KERNEL(f, name_, variant_, about_, list, ...)                                              \
    {                                                                                              \
        .name = name_, .variant = variant_, .about = about_, .file = "matvec_" #f ".metal",        \
        .format = &format_##f, .shapes = list, __VA_ARGS__                                         \
    }
#define ALL(f, list)                                                                               \
    KERNEL(f, "matvec_" #f "_activate", "plain", "one simdgroup per row", list, .group = 256,      \
           .rows = 8),                                                                             \
        KERNEL(f, "multi_token_matvec_" #f "_activate_reuse", "reuse",                             \
               "each weight decoded once for 8 tokens, one quad per row", list, .group = 128,      \
               .rows = 32, .tokens = 8, .multiple_of = 4),                                         \
        KERNEL(f, "multi_token_matvec_" #f "_activate_alone", "alone",                             \
               "the same, one thread per row", list, .group = 32, .rows = 32, .tokens = 8,         \
               .multiple_of = 4),
#define BLOCKS(f, s) ALL(f, NULL)
#define FLOATS(f, s) ALL(f, &float_list)

#define LEAN(end, about_, rows_)                                                                   \
    KERNEL(q4_0, "multi_token_matvec_q4_0_activate_" #end, #end, about_, NULL, .group = 128,       \
           .rows = rows_, .tokens = 8)

static const kernel kernels[] = {
    LEAN(lean, "each weight decoded once for 8 tokens, 2 rows per simdgroup", 8),
    LEAN(lean_rows, "the same, 4 rows per simdgroup", 16),
    BLOCKS(q4_0, ) BLOCK_FORMATS(BLOCKS) FLOAT_FORMATS(FLOATS)};

OP(matvec_activate, "y = activation(W x + bias), for one x or many",
   "out x in x batch x activation x bias", kernels,
   SHAPE_LIST(shapes, 7, 256, 1, ACTIVATION_SIGMOID, 1), .inner = "in", .many = "batch",
   .accepts = matvec_activate_accepts, .sizes = "out in batch", .build = matvec_activate_build);
