/* repetition_penalty: launches, oracle and cases. */
#include "kernels.h"

#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/check/shapes.h"
#include "record.h"
#include "reference/reference.h"

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

static const shape shapes[] = {
    {{0, 10}},   {{1, 1}},      {{2, 1}},       {{3, 2}},
    {{31, 100}}, {{64, 65537}}, {{600, 32000}}, {{2048, 49152}},
};

static const kernel kernels[] = {
    OP_KERNEL("repetition_penalty", NULL, "one thread per id, only the first of equal ids acts",
              "repetition_penalty.metal", .group = 256),
};

OP(repetition_penalty, "lower the logits of tokens seen before", "n x vocab", kernels,
   SHAPE_LIST(shapes, 50, 77), .sizes = "n vocab", .build = repetition_penalty_build);
