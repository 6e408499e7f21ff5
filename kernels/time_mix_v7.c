/* time_mix_v7: launches, oracles and cases of time_mix_v7 and time_first_v7. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"
#include "rwkv7_case.h"

static void time_mix_v7_oracle(const launch *l, oracle_io *io) {
    (void)l;
    const time_mix_v7_sizes n = {oracle_u32(io, 5), oracle_u32(io, 6), oracle_u32(io, 7)};
    expected *state = &io->out[3], *y = &io->out[4];
    reference_time_mix_v7(io->in[0], io->in[1], io->in[2], &n, state->value, state->scale, y->value,
                          y->scale);
    rwkv7_take_errors(state, (double)(n.tokens * n.head_size));
    rwkv7_take_errors(y, (double)(n.tokens * n.head_size));
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
static const shape ahead_shapes[] = {
    {{1, 1, 64}},  {{3, 2, 64}},  {{4, 1, 64}},  {{7, 3, 64}},  {{8, 12, 64}},  {{9, 2, 64}},
    {{13, 2, 64}}, {{16, 1, 64}}, {{17, 5, 64}}, {{64, 2, 64}}, {{255, 1, 64}},
};
static const shape_list ahead_list = SHAPE_LIST(ahead_shapes, 5, 2, 64);

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
   SHAPE_LIST(shapes, 5, 2, 8), .inner = "head_size", .accepts = rwkv7_accepts,
   .sizes = "tokens heads head_size", .build = time_mix_v7_build);
OP(time_first_v7, "x += (sum over the head of r_k * k * r) * v", DIMS, first_kernels,
   SHAPE_LIST(shapes, 5, 2, 8), .inner = "head_size", .accepts = rwkv7_accepts,
   .sizes = "tokens heads head_size", .build = time_first_v7_build);
