/* time_mix_v7: launches, oracles and cases of the ops of an RWKV-7 time mix: time_mix_v7 and
 * time_first_v7, and time_mix_v7_prepare, time_mix_v7_finish and time_mix_v7_token, which fuse what is
 * around them. */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

/* What all kernels have: heads of whole float4s. */
#define RWKV7_HEADS .multiple_of = 4, .most = 256

/* tokens x heads x head_size: sizes that 32 bits can count. */
static bool accepts(const kernel *k, const shape *s, err *e) {
    (void)k;
    size_t count;
    if (!size_multiply_checked(size_multiply(s->dim[1], s->dim[2]), size_multiply(4, s->dim[0]),
                               &count) ||
        count > UINT32_MAX)
        return err_set(e, EXIT_CANNOT,
                       "needs values that a 32-bit index can count, not %u tokens of %u heads",
                       s->dim[0], s->dim[1]);
    return true;
}

/* scale holds errors in roundings (reference/time_mix_v7.c): the tolerance becomes twice the error.
 * terms is how many results a device that flushes may lose on the way. */
static void take_errors(expected *out, double terms) {
    out->terms = terms;
    out->roundings = 0;
    for (size_t i = 0; i < out->count; i++)
        out->scale[i] /= sqrt(terms); /* the tolerance multiplies it by twice that */
}

/* Inputs as a model makes them, from values of the case's distribution: a recurrence needs decays
 * and rates from 0 to 1 and keys of unit length to stay finite, and what is multiplied with three
 * others must not be large. */
static float *draw(kernel_case *c, size_t count) {
    float *values = array_new(count, sizeof *values);
    fill_f32(&c->random, c->inputs, values, count);
    return values;
}

static float *draw_mapped(kernel_case *c, size_t count, double (*map)(double x)) {
    float *values = draw(c, count);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)map((double)values[i]);
    return values;
}

static bool make_input(kernel_case *c, const char *label, float *values, size_t count, slice *out,
                       err *e) {
    bool ok = case_input_bytes(c, label, values, size_multiply(count, sizeof *values), out, e);
    free(values);
    return ok;
}

static double shrink(double x) {
    return fabs(x) > 1e6 ? 1e-12 * x : x;
}

static bool case_input_decay(kernel_case *c, const char *label, size_t count, slice *out, err *e) {
    return make_input(c, label, draw_mapped(c, count, reference_decay), count, out, e);
}

static bool case_input_rate(kernel_case *c, const char *label, size_t count, slice *out, err *e) {
    return make_input(c, label, draw_mapped(c, count, reference_sigmoid), count, out, e);
}

static bool case_input_small(kernel_case *c, const char *label, size_t count, slice *out, err *e) {
    return make_input(c, label, draw_mapped(c, count, shrink), count, out, e);
}

static void scale_to_unit_length(float *x, size_t size) {
    double squares = 0;
    for (size_t i = 0; i < size; i++)
        squares += (double)x[i] * (double)x[i];
    for (size_t i = 0; squares > 0 && i < size; i++)
        x[i] = (float)((double)x[i] / sqrt(squares));
}

/* (4, tokens, heads, head_size): k, v, a, kk */
static bool case_input_packed(kernel_case *c, const char *label, uint32_t tokens, uint32_t heads,
                              uint32_t head_size, slice *out, err *e) {
    size_t rows = size_multiply(tokens, heads), count = size_multiply(rows, head_size);
    float *values = draw(c, size_multiply(4, count));
    for (size_t i = 2 * count; i < 3 * count; i++)
        values[i] = (float)reference_sigmoid((double)values[i]);
    for (size_t r = 0; r < rows; r++)
        scale_to_unit_length(values + 3 * count + r * head_size, head_size);
    return make_input(c, label, values, 4 * count, out, e);
}

/* The recurrence ------------------------------------------------------------------------------- */

static void time_mix_v7_oracle(const launch *l, oracle_io *io) {
    (void)l;
    const time_mix_v7_sizes n = {oracle_u32(io, 5), oracle_u32(io, 6), oracle_u32(io, 7)};
    expected *state = &io->out[3], *y = &io->out[4];
    reference_time_mix_v7(io->in[0], io->in[1], io->in[2], &n, state->value, state->scale, y->value,
                          y->scale);
    take_errors(state, (double)(n.tokens * n.head_size));
    take_errors(y, (double)(n.tokens * n.head_size));
}

bool time_mix_v7_record(tape *t, const kernel *k, slice r, slice w, slice packed, slice state,
                        slice y, uint32_t tokens, uint32_t heads, uint32_t head_size, err *e) {
    if (!RECORD_TAKES(&time_mix_v7_op, k, e, tokens, heads, head_size))
        return false;
    size_t dim = size_multiply(heads, head_size), count = size_multiply(tokens, dim);
    launch_work work = {.threads = (uint32_t)dim, /* one per row of all heads */
                        .flops = (uint64_t)count * (10 * (uint64_t)head_size + 1),
                        .oracle = time_mix_v7_oracle};
    if (k->rows != 0) {
        work.threads = 0;
        work.groups = (size3){divide_up(head_size, k->rows), heads, 1};
    }
    return RECORD_ARGS(t, k, &work, e, ARG_IN4("r", r, count), ARG_IN4("w", w, count),
                       ARG_IN4("packed", packed, size_multiply(4, count)),
                       ARG_BOTH4("state", state, size_multiply(dim, head_size)),
                       ARG_OUT4("y", y, count), ARG_U32(tokens), ARG_U32(heads),
                       ARG_U32(head_size));
}

static void time_first_v7_oracle(const launch *l, oracle_io *io) {
    (void)l;
    const time_mix_v7_sizes n = {oracle_u32(io, 4), oracle_u32(io, 5), oracle_u32(io, 6)};
    expected *x = &io->out[3];
    reference_time_first_v7(io->in[0], io->in[1], io->in[2], &n, x->value, x->scale);
    x->terms = (double)n.head_size + 1;
}

bool time_first_v7_record(tape *t, const kernel *k, slice r_k, slice r, slice packed, slice x,
                          uint32_t tokens, uint32_t heads, uint32_t head_size, err *e) {
    if (!RECORD_TAKES(&time_first_v7_op, k, e, tokens, heads, head_size))
        return false;
    size_t dim = size_multiply(heads, head_size), count = size_multiply(tokens, dim);
    const launch_work w = {.groups = {divide_up(tokens * heads, k->rows), 1, 1},
                           .flops = 5 * (uint64_t)count,
                           .unmoved = 2 * count * sizeof(float), /* a and kk are not read */
                           .oracle = time_first_v7_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN("r_k", r_k, dim), ARG_IN("r", r, count),
                       ARG_IN("packed", packed, size_multiply(4, count)), ARG_BOTH("x", x, count),
                       ARG_U32(tokens), ARG_U32(heads), ARG_U32(head_size));
}

/* --- cases --- */

static bool time_mix_v7_build(kernel_case *c, err *e) {
    uint32_t tokens = c->shape.dim[0], heads = c->shape.dim[1], head_size = c->shape.dim[2];
    size_t dim = size_multiply(heads, head_size), count = size_multiply(tokens, dim);
    slice r, w, packed, state, y;
    return case_input_small(c, "r", count, &r, e) && case_input_decay(c, "w", count, &w, e) &&
           case_input_packed(c, "packed", tokens, heads, head_size, &packed, e) &&
           case_input_f32(c, "state", size_multiply(dim + 1, head_size), &state, e) &&
           case_output(c, "y", count * sizeof(float), &y, e) &&
           time_mix_v7_record(c->tape, c->kernel, r, w, packed, state, y, tokens, heads, head_size,
                              e);
}

static bool time_first_v7_build(kernel_case *c, err *e) {
    uint32_t tokens = c->shape.dim[0], heads = c->shape.dim[1], head_size = c->shape.dim[2];
    size_t dim = size_multiply(heads, head_size), count = size_multiply(tokens, dim);
    slice r_k, r, packed, x;
    return case_input_small(c, "r_k", dim, &r_k, e) && case_input_small(c, "r", count, &r, e) &&
           case_input_packed(c, "packed", tokens, heads, head_size, &packed, e) &&
           case_input_f32(c, "x", count + dim, &x, e) &&
           time_first_v7_record(c->tape, c->kernel, r_k, r, packed, x, tokens, heads, head_size, e);
}

/* One token and odd numbers of them, around what is staged at a time (8 tokens of a head of 64);
 * one head and several; heads of one float4, of a part of a simdgroup, of a model, of the largest
 * size. */
static const shape shapes[] = {
    {{1, 1, 4}},   {{1, 1, 64}},  {{1, 12, 64}}, {{2, 2, 4}},    {{3, 2, 20}},
    {{7, 3, 32}},  {{8, 2, 64}},  {{9, 2, 64}},  {{17, 1, 64}},  {{5, 2, 128}},
    {{3, 1, 256}}, {{64, 2, 64}}, {{33, 5, 12}}, {{256, 1, 64}},
};

/* Of heads of 64: around the 4 tokens whose sums are brought together, and the 8 that are loaded. */
SHAPES_OF(ahead_list, ANY_INPUT(5, 2, 64), {{1, 1, 64}}, {{3, 2, 64}}, {{4, 1, 64}}, {{7, 3, 64}},
          {{8, 12, 64}}, {{9, 2, 64}}, {{13, 2, 64}}, {{16, 1, 64}}, {{17, 5, 64}}, {{64, 2, 64}},
          {{255, 1, 64}});

#define KERNEL(name, file, variant, about, group_, rows_)                                          \
    OP_KERNEL(name, variant, about, file, .group = group_, .rows = rows_, RWKV7_HEADS)
static const kernel mix_kernels[] = {
    KERNEL("time_mix_v7", "time_mix_v7.metal", "quad", "one quad per row of the state", 64, 16),
    KERNEL("time_mix_v7_per_thread", "time_mix_v7.metal", "per_thread",
           "one thread per row of the state", 32, 0),
    OP_KERNEL("time_mix_v7_prefetch", "prefetch", "two rows of heads of 64 by 8 lanes, loads ahead",
              "time_mix_v7.metal", .group = 64, .rows = 16, .multiple_of = 64, .most = 64,
              .shapes = &ahead_list),
};
static const kernel first_kernels[] = {
    KERNEL("time_first_v7", "time_first_v7.metal", "simdgroup", "one simdgroup per head", 256, 8),
    KERNEL("time_first_v7_per_thread", "time_first_v7.metal", "per_thread", "one thread per head",
           32, 32),
};

#define DIMS "tokens x heads x head_size"
OP(time_mix_v7, "the RWKV-7 recurrence: state in place, y = S r for each token", DIMS, mix_kernels,
   SHAPE_LIST(shapes, 5, 2, 8), .inner = "head_size", .accepts = accepts,
   .sizes = "tokens heads head_size", .build = time_mix_v7_build);
OP(time_first_v7, "x += (sum over the head of r_k * k * r) * v", DIMS, first_kernels,
   SHAPE_LIST(shapes, 5, 2, 8), .inner = "head_size", .accepts = accepts,
   .sizes = "tokens heads head_size", .build = time_first_v7_build);

/* Fused ---------------------------------------------------------------------------------------- */

#define FUSED(name, ...) KERNEL(name, "time_mix_v7_fused.metal", __VA_ARGS__)
static const kernel prepare_kernels[] = {
    FUSED("time_mix_v7_prepare", "simdgroup", "one simdgroup per head", 256, 8),
    FUSED("time_mix_v7_prepare_per_thread", "per_thread", "one thread per head", 32, 32),
};
static const kernel finish_kernels[] = {
    FUSED("time_mix_v7_finish", "simdgroup", "one simdgroup per head", 256, 8),
    FUSED("time_mix_v7_finish_per_thread", "per_thread", "one thread per head", 32, 32),
};
/* Four threads per row of the state: the group is that of a head of 64. */
static const kernel token_kernels[] = {
    FUSED("time_mix_v7_token", NULL, "one threadgroup per head, one quad per row", 256, 0),
};

/* --- prepare --- */

static void prepare_oracle(const launch *l, oracle_io *io) {
    (void)l;
    const time_mix_v7_sizes n = {oracle_u32(io, 8), oracle_u32(io, 9), oracle_u32(io, 10)};
    const time_mix_v7_inputs x = {.k = io->in[0],
                                  .v = io->in[1],
                                  .a = io->in[2],
                                  .k_k = io->in[3],
                                  .k_a = io->in[4],
                                  .v_gate = oracle_u32(io, 11) ? io->in[5] : NULL,
                                  .v_first = io->in[6]};
    expected *packed = &io->out[7];
    reference_time_mix_v7_prepare(&x, &n, packed->value, packed->scale);
    packed->terms = (double)n.head_size;
    packed->roundings = 10; /* products, a sum of squares, rsqrt to 2 ULP */
}

bool time_mix_v7_prepare_record(tape *t, const kernel *k, const time_mix_v7_slices *s, slice packed,
                                uint32_t tokens, uint32_t heads, uint32_t head_size, err *e) {
    if (!RECORD_TAKES(&time_mix_v7_prepare_op, k, e, tokens, heads, head_size))
        return false;
    size_t dim = size_multiply(heads, head_size), count = size_multiply(tokens, dim);
    bool mixes_v = s->v_gate.buffer != NULL;
    const launch_work w = {.groups = {divide_up(tokens * heads, k->rows), 1, 1},
                           .flops = (mixes_v ? 12 : 9) * (uint64_t)count,
                           .unmoved = mixes_v ? 0 : 2 * count * sizeof(float),
                           .oracle = prepare_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN("k", s->k, count), ARG_IN("v", s->v, count),
                       ARG_IN("a", s->a, count), ARG_IN("k_k", s->k_k, dim),
                       ARG_IN("k_a", s->k_a, dim),
                       ARG_IN("v_gate", mixes_v ? s->v_gate : s->v, count),
                       ARG_IN("v_first", mixes_v ? s->v_first : s->v, count),
                       ARG_OUT("packed", packed, size_multiply(4, count)), ARG_U32(tokens),
                       ARG_U32(heads), ARG_U32(head_size), ARG_U32(mixes_v));
}

/* --- finish --- */

static void finish_oracle(const launch *l, oracle_io *io) {
    (void)l;
    const time_mix_v7_sizes n = {oracle_u32(io, 7), oracle_u32(io, 8), oracle_u32(io, 9)};
    const time_mix_v7_inputs x = {.r = io->in[0],
                                  .g = io->in[2],
                                  .r_k = io->in[3],
                                  .norm_w = io->in[4],
                                  .norm_b = io->in[5],
                                  .eps = (double)oracle_f32(io, 10)};
    expected *y = &io->out[6];
    reference_time_mix_v7_finish(&x, &n, io->in[1], y->value, y->scale);
    take_errors(y, (double)n.head_size);
}

bool time_mix_v7_finish_record(tape *t, const kernel *k, const time_mix_v7_slices *s, slice packed,
                               slice y, uint32_t tokens, uint32_t heads, uint32_t head_size,
                               float eps, err *e) {
    if (!RECORD_TAKES(&time_mix_v7_finish_op, k, e, tokens, heads, head_size))
        return false;
    size_t dim = size_multiply(heads, head_size), count = size_multiply(tokens, dim);
    const launch_work w = {.groups = {divide_up(tokens * heads, k->rows), 1, 1},
                           .flops = 13 * (uint64_t)count,
                           .unmoved = 2 * count * sizeof(float), /* a and kk are not read */
                           .oracle = finish_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN("r", s->r, count),
                       ARG_IN("packed", packed, size_multiply(4, count)), ARG_IN("g", s->g, count),
                       ARG_IN("r_k", s->r_k, dim), ARG_IN("norm_w", s->norm_w, dim),
                       ARG_IN("norm_b", s->norm_b, dim), ARG_BOTH("y", y, count), ARG_U32(tokens),
                       ARG_U32(heads), ARG_U32(head_size), ARG_F32(eps));
}

/* --- token --- */

static void token_oracle(const launch *l, oracle_io *io) {
    (void)l;
    size_t size = oracle_u32(io, 15);
    const time_mix_v7_sizes n = {1, io->out[14].count / size, size};
    const void *const *in = io->in; /* in the order of the inputs */
    const time_mix_v7_inputs x = {
        in[0], in[1], in[2],  in[3],  in[4],  oracle_u32(io, 16) ? in[5] : NULL, in[6], in[7],
        in[8], in[9], in[10], in[11], in[12], (double)oracle_f32(io, 17)};
    expected *state = &io->out[13], *y = &io->out[14];
    reference_time_mix_v7_token(&x, &n, state->value, state->scale, y->value, y->scale);
    take_errors(state, (double)size);
    take_errors(y, (double)size);
}

bool time_mix_v7_token_record(tape *t, const kernel *k, const time_mix_v7_slices *s, slice state,
                              slice y, uint32_t heads, uint32_t head_size, float eps, err *e) {
    if (!RECORD_TAKES(&time_mix_v7_token_op, k, e, heads, head_size))
        return false;
    size_t dim = size_multiply(heads, head_size);
    bool mixes_v = s->v_gate.buffer != NULL;
    const launch_work w = {.groups = {heads, 1, 1},
                           .group = 32 * divide_up(4 * head_size, 32),
                           .flops = (uint64_t)dim * (10 * (uint64_t)head_size + 24),
                           .unmoved = mixes_v ? 0 : 2 * dim * sizeof(float),
                           .oracle = token_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN("k", s->k, dim), ARG_IN("v", s->v, dim),
                       ARG_IN("a", s->a, dim), ARG_IN("k_k", s->k_k, dim),
                       ARG_IN("k_a", s->k_a, dim),
                       ARG_IN("v_gate", mixes_v ? s->v_gate : s->v, dim),
                       ARG_IN("v_first", mixes_v ? s->v_first : s->v, dim), ARG_IN("r", s->r, dim),
                       ARG_IN("w", s->w, dim), ARG_IN("g", s->g, dim), ARG_IN("r_k", s->r_k, dim),
                       ARG_IN("norm_w", s->norm_w, dim), ARG_IN("norm_b", s->norm_b, dim),
                       ARG_BOTH4("state", state, size_multiply(dim, head_size)),
                       ARG_OUT("y", y, dim), ARG_U32(head_size), ARG_U32(mixes_v), ARG_F32(eps));
}

/* --- cases. The last dimension says whether values are mixed with those of the first layer. --- */

static bool make_vectors(kernel_case *c, size_t count, bool mixes_v, time_mix_v7_slices *s,
                         err *e) {
    return case_input_f32(c, "k", count, &s->k, e) && case_input_f32(c, "v", count, &s->v, e) &&
           case_input_rate(c, "a", count, &s->a, e) &&
           (!mixes_v || (case_input_rate(c, "v_gate", count, &s->v_gate, e) &&
                         case_input_f32(c, "v_first", count, &s->v_first, e))) &&
           case_input_small(c, "r", count, &s->r, e) && case_input_decay(c, "w", count, &s->w, e) &&
           case_input_small(c, "g", count, &s->g, e);
}

static bool make_weights(kernel_case *c, size_t dim, time_mix_v7_slices *s, err *e) {
    return case_input_small(c, "k_k", dim, &s->k_k, e) &&
           case_input_small(c, "k_a", dim, &s->k_a, e) &&
           case_input_small(c, "r_k", dim, &s->r_k, e) &&
           case_input_small(c, "norm_w", dim, &s->norm_w, e) &&
           case_input_f32(c, "norm_b", dim, &s->norm_b, e);
}

static bool prepare_build(kernel_case *c, err *e) {
    uint32_t tokens = c->shape.dim[0], heads = c->shape.dim[1], head_size = c->shape.dim[2];
    size_t dim = size_multiply(heads, head_size), count = size_multiply(tokens, dim);
    time_mix_v7_slices s = {.k = {0}};
    slice packed;
    return make_vectors(c, count, c->shape.dim[3] == 1, &s, e) && make_weights(c, dim, &s, e) &&
           case_output(c, "packed", 4 * count * sizeof(float), &packed, e) &&
           time_mix_v7_prepare_record(c->tape, c->kernel, &s, packed, tokens, heads, head_size, e);
}

static bool finish_build(kernel_case *c, err *e) {
    uint32_t tokens = c->shape.dim[0], heads = c->shape.dim[1], head_size = c->shape.dim[2];
    size_t dim = size_multiply(heads, head_size), count = size_multiply(tokens, dim);
    time_mix_v7_slices s = {.k = {0}};
    slice packed, y;
    return make_vectors(c, count, false, &s, e) && make_weights(c, dim, &s, e) &&
           case_input_packed(c, "packed", tokens, heads, head_size, &packed, e) &&
           case_input_f32(c, "y", count + dim, &y, e) &&
           time_mix_v7_finish_record(c->tape, c->kernel, &s, packed, y, tokens, heads, head_size,
                                     64e-5f, e);
}

static bool token_build(kernel_case *c, err *e) {
    uint32_t heads = c->shape.dim[0], head_size = c->shape.dim[1];
    size_t dim = size_multiply(heads, head_size);
    time_mix_v7_slices s = {.k = {0}};
    slice state, y;
    return make_vectors(c, dim, c->shape.dim[2] == 1, &s, e) && make_weights(c, dim, &s, e) &&
           case_input_f32(c, "state", size_multiply(dim + 1, head_size), &state, e) &&
           case_output(c, "y", dim * sizeof(float), &y, e) &&
           time_mix_v7_token_record(c->tape, c->kernel, &s, state, y, heads, head_size, 64e-5f, e);
}

static const shape prepare_shapes[] = {
    {{1, 1, 4}},    {{1, 1, 64, 1}},  {{1, 12, 64}},    {{1, 12, 64, 1}},
    {{3, 2, 4, 1}}, {{7, 3, 32, 1}},  {{2, 5, 20, 1}},  {{9, 4, 64, 1}},
    {{33, 2, 64}},  {{5, 1, 128, 1}}, {{2, 1, 256, 1}},
};
static const shape finish_shapes[] = {
    {{1, 1, 4}},  {{1, 1, 64}}, {{1, 12, 64}}, {{3, 2, 4}},   {{7, 3, 32}},
    {{2, 5, 20}}, {{9, 4, 64}}, {{33, 2, 64}}, {{5, 1, 128}}, {{2, 1, 256}},
};
static const shape token_shapes[] = {
    {{1, 4}},  {{2, 4, 1}}, {{3, 8, 1}},   {{1, 12, 1}},  {{5, 20}},     {{3, 32, 1}},
    {{1, 64}}, {{12, 64}},  {{12, 64, 1}}, {{2, 100, 1}}, {{2, 128, 1}}, {{1, 256, 1}},
};

OP(time_mix_v7_prepare, "keys and values as the recurrence needs them, packed",
   "tokens x heads x head_size x mixes_v", prepare_kernels, SHAPE_LIST(prepare_shapes, 3, 2, 8, 1),
   .inner = "head_size", .accepts = accepts, .sizes = "tokens heads head_size",
   .build = prepare_build);
OP(time_mix_v7_finish, "group norm, bonus and gate of what the recurrence gives",
   "tokens x heads x head_size", finish_kernels, SHAPE_LIST(finish_shapes, 3, 2, 8),
   .inner = "head_size", .accepts = accepts, .sizes = "tokens heads head_size",
   .build = finish_build);
OP(time_mix_v7_token, "the whole time mix of one token, between its projections",
   "heads x head_size x mixes_v", token_kernels, SHAPE_LIST(token_shapes, 2, 8, 1),
   .inner = "head_size", .sizes = "heads head_size", .build = token_build);
