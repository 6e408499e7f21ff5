/* choose: launches, oracles and cases of what follows the logits: repetition_penalty, argmax and
 * decode_advance. Two kernels of argmax are the two halves of one computation; the first half has a
 * variant. A case of a first half records both; a case of argmax_final feeds it pairs in an order that
 * argmax_reduce would never leave. */
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "harness/check/shapes.h"
#include "record.h"
#include "reference/reference.h"

/* repetition_penalty ---------------------------------------------------------------------------- */

static void repetition_penalty_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *logits = &io->out[0];
    size_t room = io->bytes[1] / sizeof(uint32_t), n = oracle_u32(io, 2);
    reference_repetition_penalty(io->in[1], n < room ? n : room, oracle_u32(io, 4),
                                 (double)oracle_f32(io, 3), logits->value, logits->scale);
    logits->terms = 0;
    logits->roundings = 5; /* a fast division: 2.5 ULP. Unchanged logits have a scale of 0. */
}

bool repetition_penalty_record(tape *t, const kernel *k, slice logits, slice ids, param n,
                               uint32_t vocab, float penalty, err *e) {
    size_t room = ids.bytes / sizeof(uint32_t);
    if (room > UINT32_MAX / 2 || (!n.at.buffer && n.bits > room))
        return err_set(e, EXIT_CANNOT, "%s: there is room for %zu ids, but n is %u", k->name, room,
                       n.bits);
    if (!(penalty > 0))
        return err_set(e, EXIT_CANNOT, "%s: the penalty is %g and must be above 0", k->name,
                       (double)penalty);
    const launch_work w = {.threads = (uint32_t)room,
                           .flops = room,
                           .unmoved = 2 * sizeof(float) * ((uint64_t)vocab - room),
                           .oracle = repetition_penalty_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_BOTH("logits", logits, vocab),
                       ARG_WORDS("ids", ids, room, ACCESS_READ), ARG_PARAM(n), ARG_F32(penalty),
                       ARG_U32(vocab));
}

/* Ids of a case: from a range so small that most of them occur several times, sometimes one past
 * the end of the vocabulary, by one or by far. 300 more than n follow, just as valid as the others:
 * only n says that they do not count. Among the last that count are edges of the vocabulary outside that
 * range; the very last is the only one of its kind. */
static bool make_ids(kernel_case *c, uint32_t n, uint32_t vocab, slice *out, err *e) {
    size_t room = (size_t)n + 300;
    uint32_t *ids = array_new(room, sizeof *ids);
    uint32_t range = n / 2 + 2 < vocab ? n / 2 + 2 : vocab;
    for (size_t i = 0; i < room; i++) {
        uint32_t id = vocab - 1 - rng_below(&c->random, range), kind = rng_below(&c->random, 20);
        ids[i] = kind == 0 ? vocab : kind == 1 ? UINT32_MAX - rng_below(&c->random, 9) : id;
    }
    for (uint32_t i = 0; i < (n + 1) / 2; i++) {
        uint32_t id = shapes_get_index(&c->random, i + 1, vocab);
        if (id < vocab - range && (i == 0 || id != ids[n - 1]))
            ids[n - 1 - i] = id;
    }
    bool ok = case_input_bytes(c, "ids", ids, room * sizeof *ids, out, e);
    free(ids);
    return ok;
}

/* n comes from device memory, as it does in a model. The logits are followed by one that is not
 * part of the vocabulary. */
static bool repetition_penalty_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0], vocab = c->shape.dim[1];
    slice logits, ids, place;
    return case_input_f32(c, "logits", (size_t)vocab + 1, &logits, e) &&
           make_ids(c, n, vocab, &ids, e) && case_input_bytes(c, "n", &n, sizeof n, &place, e) &&
           repetition_penalty_record(c->tape, c->kernel, logits, ids, param_at(place), vocab, 1.3f,
                                     e);
}

static const shape penalty_shapes[] = {
    {{0, 10}},   {{1, 1}},      {{2, 1}},       {{3, 2}},
    {{31, 100}}, {{64, 65537}}, {{600, 32000}}, {{2048, 49152}},
};

static const kernel penalty_kernels[] = {
    OP_KERNEL("repetition_penalty", NULL, "one thread per id, only the first of equal ids acts",
              "repetition_penalty.metal", .group = 256),
};

OP(repetition_penalty, "lower the logits of tokens seen before", "n x vocab", penalty_kernels,
   SHAPE_LIST(penalty_shapes, 50, 77), .sizes = "n vocab", .build = repetition_penalty_build);

/* argmax ---------------------------------------------------------------------------------------- */

enum { VALUES_A_GROUP = 1024 };

static const kernel argmax_kernels[] = {
    OP_KERNEL("argmax_reduce", "reduce", "the best of each 1024, followed by argmax_final",
              "argmax.metal", .group = 256, .rows = VALUES_A_GROUP),
    OP_KERNEL("argmax_final", "final", "the best of (value, index) pairs in any order",
              "argmax.metal", .group = 256),
    OP_KERNEL("argmax_reduce_per_thread", "per_thread", "the same as reduce, one thread per 1024",
              "argmax.metal", .group = 1, .rows = VALUES_A_GROUP),
};
static const kernel *const final = &argmax_kernels[1];

uint32_t argmax_count_groups(uint32_t n) {
    return divide_up(n, VALUES_A_GROUP);
}

static void argmax_reduce_oracle(const launch *l, oracle_io *io) {
    (void)l;
    const float *logits = io->in[0];
    uint32_t n = oracle_u32(io, 1);
    for (uint32_t g = 0; g < argmax_count_groups(n); g++) {
        uint32_t indices[VALUES_A_GROUP], first = g * VALUES_A_GROUP;
        uint32_t count = n - first < VALUES_A_GROUP ? n - first : VALUES_A_GROUP;
        for (uint32_t i = 0; i < count; i++)
            indices[i] = first + i;
        maximum best = reference_maximum(logits + first, indices, count);
        io->out[2].value[g] = best.value;
        io->out[3].value[g] = best.index;
    }
    io->out[2].exact = io->out[2].chosen = true;
}

static void argmax_final_oracle(const launch *l, oracle_io *io) {
    (void)l;
    maximum best = reference_maximum(io->in[0], io->in[1], oracle_u32(io, 2));
    io->out[3].value[0] = best.index == UINT32_MAX ? 0 : best.index;
}

static bool argmax_reduce_record(tape *t, const kernel *reduce, slice logits, slice pvals,
                                 slice pidx, uint32_t n, err *e) {
    uint32_t groups = argmax_count_groups(n);
    const launch_work w = {.groups = {groups, 1, 1}, .flops = n, .oracle = argmax_reduce_oracle};
    return RECORD_ARGS(t, reduce, &w, e, ARG_IN("logits", logits, n), ARG_U32(n),
                       ARG_OUT("pvals", pvals, groups),
                       ARG_WORDS("pidx", pidx, groups, ACCESS_WRITE));
}

static bool argmax_final_record(tape *t, uint32_t threads, slice pvals, slice pidx, slice result,
                                uint32_t groups, err *e) {
    const launch_work w = {
        .groups = {1, 1, 1}, .group = threads, .flops = groups, .oracle = argmax_final_oracle};
    return RECORD_ARGS(t, final, &w, e, ARG_IN("pvals", pvals, groups),
                       ARG_WORDS("pidx", pidx, groups, ACCESS_READ), ARG_U32(groups),
                       ARG_WORDS("result", result, 1, ACCESS_WRITE));
}

bool argmax_record(tape *t, const kernel *reduce, slice logits, slice pvals, slice pidx,
                   slice result, uint32_t n, err *e) {
    if (!argmax_reduce_record(t, reduce, logits, pvals, pidx, n, e))
        return false;
    tape_barrier(t);
    /* As many threads as for the first half: any number will do. */
    return argmax_final_record(t, reduce->group, pvals, pidx, result, argmax_count_groups(n), e);
}

/* The pattern of the values of a case: the second dimension of its shape. */
typedef enum {
    DRAWN = 1, /* from the distribution */
    SOME_NAN,
    ALL_NAN,
    INFINITIES,
    ALL_MINUS_INFINITY,
    NAN_AND_MINUS_INFINITY,
    ALL_SAME,
    MAX_FIRST,
    MAX_LAST,
    MAX_AT_EDGES, /* of each threadgroup's values at another edge of them */
    NEGATIVE,
    TIES,
    SIGNED_ZEROS,
} pattern;

static float make_smallest_nan(void) {
    const uint32_t bits = 0x7F800001;
    float nan;
    memcpy(&nan, &bits, sizeof nan);
    return nan;
}

static float apply_pattern(pattern p, float drawn, uint32_t i, uint32_t n, rng *r) {
    switch (p) {
    case SOME_NAN:
        return rng_below(r, 3) != 0 ? drawn : i % 2 ? NAN : make_smallest_nan();
    case ALL_NAN:
        return NAN;
    case INFINITIES:
        return i == n / 2 ? INFINITY : rng_below(r, 4) == 0 ? -INFINITY : drawn;
    case ALL_MINUS_INFINITY:
        return -INFINITY;
    case NAN_AND_MINUS_INFINITY: /* the answer is the one that is not NaN */
        return i == n - 1 ? -INFINITY : NAN;
    case ALL_SAME:
        return 0.25f;
    case MAX_FIRST:
        return i == 0 ? 1e30f : drawn;
    case MAX_LAST:
        return i == n - 1 ? 1e30f : drawn;
    case MAX_AT_EDGES: {
        uint32_t group = i / VALUES_A_GROUP, first = group * VALUES_A_GROUP;
        uint32_t count = n - first < VALUES_A_GROUP ? n - first : VALUES_A_GROUP;
        return i - first == shapes_get_index(r, group, count) ? 1e30f : drawn;
    }
    case NEGATIVE:
        return -1 - fabsf(drawn);
    case TIES: /* a few values, each many times over */
        return (float)rng_below(r, 3);
    case SIGNED_ZEROS: /* both are equal */
        return i % 2 ? 0.0f : -0.0f;
    case DRAWN:
        break;
    }
    return drawn;
}

/* The last value is followed by one that would win: a guard zone is NaN, which argmax skips, so a
 * read past the end would go unseen. */
static bool make_values(kernel_case *c, const char *label, uint32_t n, slice *out, err *e) {
    size_t bytes = size_multiply((size_t)n + 1, sizeof(float));
    float *values = array_new(1, bytes);
    fill_f32(&c->random, c->inputs, values, n);
    for (uint32_t i = 0; i < n; i++)
        values[i] = apply_pattern((pattern)c->shape.dim[1], values[i], i, n, &c->random);
    values[n] = INFINITY;
    bool ok = case_input_bytes(c, label, values, bytes, out, e);
    free(values);
    return ok;
}

static void move_index(uint32_t *indices, uint32_t index, uint32_t to) {
    uint32_t i = 0;
    while (indices[i] != index)
        i++;
    indices[i] = indices[to];
    indices[to] = index;
}

/* 0 to n - 1 in random order, and one more, as for the values. If there are enough, one thread takes 1 and
 * then 0: of equals, the second is the better one. */
static bool make_shuffled_indices(kernel_case *c, uint32_t n, slice *out, err *e) {
    size_t bytes = size_multiply((size_t)n + 1, sizeof(uint32_t));
    uint32_t *indices = array_new(1, bytes);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = rng_below(&c->random, i + 1);
        indices[i] = indices[j];
        indices[j] = i;
    }
    if (n > final->group) {
        move_index(indices, 1, 0);
        move_index(indices, 0, final->group);
    }
    indices[n] = n;
    bool ok = case_input_bytes(c, "pidx", indices, bytes, out, e);
    free(indices);
    return ok;
}

static bool argmax_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0];
    size_t scratch = argmax_count_groups(n) * sizeof(float);
    slice logits, pvals, pidx, result;
    if (!case_output(c, "result", sizeof(uint32_t), &result, e))
        return false;
    if (c->kernel == final)
        return make_values(c, "pvals", n, &pvals, e) && make_shuffled_indices(c, n, &pidx, e) &&
               argmax_final_record(c->tape, final->group, pvals, pidx, result, n, e);
    return make_values(c, "logits", n, &logits, e) && case_output(c, "pvals", scratch, &pvals, e) &&
           case_output(c, "pidx", scratch, &pidx, e) &&
           argmax_record(c->tape, c->kernel, logits, pvals, pidx, result, n, e);
}

/* 300007: more threadgroups than argmax_final has threads. */
/* clang-format off */
static const shape argmax_shapes[] = {
    {{1, DRAWN}}, {{2, DRAWN}}, {{7, DRAWN}}, {{31, DRAWN}}, {{33, DRAWN}}, {{1023, DRAWN}}, {{1024, DRAWN}},
    {{1025, DRAWN}}, {{4096, DRAWN}}, {{10000, DRAWN}}, {{40000, MAX_AT_EDGES}}, {{1, ALL_NAN}},
    {{1025, SOME_NAN}}, {{49152, SOME_NAN}}, {{10000, ALL_NAN}}, {{7, INFINITIES}}, {{10000, INFINITIES}},
    {{5000, ALL_MINUS_INFINITY}}, {{5000, NAN_AND_MINUS_INFINITY}}, {{257, ALL_SAME}}, {{49152, ALL_SAME}},
    {{10000, MAX_FIRST}}, {{257, MAX_LAST}}, {{1025, MAX_LAST}}, {{65536, MAX_LAST}}, {{65537, MAX_LAST}},
    {{300007, MAX_LAST}}, {{49151, NEGATIVE}}, {{33, TIES}}, {{2000, TIES}}, {{300007, TIES}}, {{1100, SIGNED_ZEROS}},
};
/* clang-format on */

OP(argmax, "index of the largest logit", "n x pattern", argmax_kernels,
   SHAPE_LIST(argmax_shapes, 77, DRAWN), .sizes = "n", .build = argmax_build);

/* decode_advance -------------------------------------------------------------------------------- */

static void decode_advance_oracle(const launch *l, oracle_io *io) {
    (void)l;
    const uint32_t *next = io->in[0], *state = io->in[1];
    reference_decode_advance(*next, state, oracle_u32(io, 3), io->out[1].value, io->out[2].value);
}

bool decode_advance_record(tape *t, const kernel *k, slice next, slice state, slice history,
                           uint32_t ring, err *e) {
    const launch_work w = {.groups = {1, 1, 1},
                           .unmoved = 2 * sizeof(uint32_t) * (uint64_t)ring - sizeof(uint32_t),
                           .oracle = decode_advance_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_WORDS("next", next, 1, ACCESS_READ),
                       ARG_WORDS("state", state, DECODE_STATE_BYTES / 4, ACCESS_BOTH),
                       ARG_WORDS("history", history, ring, ACCESS_BOTH), ARG_U32(ring));
}

/* Token, position, cache length and history are arbitrary numbers, all different, so that none can
 * be mistaken for another. */
static bool decode_advance_build(kernel_case *c, err *e) {
    uint32_t step = c->shape.dim[0], ring = c->shape.dim[1];
    uint32_t any = rng_below(&c->random, 1u << 20), next_token = any + 1;
    const uint32_t before[] = {any + 5, any + 20, any + 40, step};
    size_t bytes = size_multiply(ring, sizeof(uint32_t));
    uint32_t *tokens = array_new(1, bytes);
    for (uint32_t i = 0; i < ring; i++)
        tokens[i] = any + 100 + i;
    slice next, state, history;
    bool ok = case_input_bytes(c, "next", &next_token, sizeof next_token, &next, e) &&
              case_input_bytes(c, "state", before, sizeof before, &state, e) &&
              case_input_bytes(c, "history", tokens, bytes, &history, e) &&
              decode_advance_record(c->tape, c->kernel, next, state, history, ring, e);
    free(tokens);
    return ok;
}

/* Rings of one token, of any number and of a power of two; steps at their start, at their end, and
 * after many rounds. */
static const shape advance_shapes[] = {{{0, 1}},    {{1, 1}},     {{0, 2}},          {{1, 2}},
                                       {{2, 3}},    {{3, 3}},     {{63, 64}},        {{64, 64}},
                                       {{1000, 7}}, {{200, 256}}, {{3000000000, 10}}};

static const kernel advance_kernels[] = {
    OP_KERNEL("decode_advance", NULL, "one thread", "decode_advance.metal", .group = 1),
};

OP(decode_advance, "the chosen token becomes the next input, on the device", "step x ring",
   advance_kernels, SHAPE_LIST(advance_shapes, 5, 4), .sizes = "ring", .places = "step",
   .build = decode_advance_build);
