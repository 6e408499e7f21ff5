/* time_mix_v7_fused: launches, oracles and cases of time_mix_v7_prepare, time_mix_v7_finish and
 * time_mix_v7_token. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"
#include "rwkv7_case.h"

#define KERNEL(name, variant, about, group_, rows_)                                                \
    OP_KERNEL(name, variant, about, "time_mix_v7_fused.metal", .group = group_, .rows = rows_,     \
              RWKV7_HEADS)
static const kernel prepare_kernels[] = {
    KERNEL("time_mix_v7_prepare", "simdgroup", "one simdgroup per head", 256, 8),
    KERNEL("time_mix_v7_prepare_per_thread", "per_thread", "one thread per head", 32, 32),
};
static const kernel finish_kernels[] = {
    KERNEL("time_mix_v7_finish", "simdgroup", "one simdgroup per head", 256, 8),
    KERNEL("time_mix_v7_finish_per_thread", "per_thread", "one thread per head", 32, 32),
};
/* Four threads per row of the state: the group is that of a head of 64. */
static const kernel token_kernels[] = {
    KERNEL("time_mix_v7_token", NULL, "one threadgroup per head, one quad per row", 256, 0),
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
    rwkv7_take_errors(y, (double)n.head_size);
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
    const time_mix_v7_inputs x = {.k = io->in[0],
                                  .v = io->in[1],
                                  .a = io->in[2],
                                  .k_k = io->in[3],
                                  .k_a = io->in[4],
                                  .v_gate = oracle_u32(io, 16) ? io->in[5] : NULL,
                                  .v_first = io->in[6],
                                  .r = io->in[7],
                                  .w = io->in[8],
                                  .g = io->in[9],
                                  .r_k = io->in[10],
                                  .norm_w = io->in[11],
                                  .norm_b = io->in[12],
                                  .eps = (double)oracle_f32(io, 17)};
    expected *state = &io->out[13], *y = &io->out[14];
    reference_time_mix_v7_token(&x, &n, state->value, state->scale, y->value, y->scale);
    rwkv7_take_errors(state, (double)size);
    rwkv7_take_errors(y, (double)size);
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
   .inner = "head_size", .accepts = rwkv7_accepts, .sizes = "tokens heads head_size",
   .build = prepare_build);
OP(time_mix_v7_finish, "group norm, bonus and gate of what the recurrence gives",
   "tokens x heads x head_size", finish_kernels, SHAPE_LIST(finish_shapes, 3, 2, 8),
   .inner = "head_size", .accepts = rwkv7_accepts, .sizes = "tokens heads head_size",
   .build = finish_build);
OP(time_mix_v7_token, "the whole time mix of one token, between its projections",
   "heads x head_size x mixes_v", token_kernels, SHAPE_LIST(token_shapes, 2, 8, 1),
   .inner = "head_size", .sizes = "heads head_size", .build = token_build);
