/* decode_advance: launches, oracle and cases. */
#include "kernels.h"

#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

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
static const shape shapes[] = {{{0, 1}},    {{1, 1}},     {{0, 2}},          {{1, 2}},
                               {{2, 3}},    {{3, 3}},     {{63, 64}},        {{64, 64}},
                               {{1000, 7}}, {{200, 256}}, {{3000000000, 10}}};

static const kernel kernels[] = {
    OP_KERNEL("decode_advance", NULL, "one thread", "decode_advance.metal", .group = 1),
};

OP(decode_advance, "the chosen token becomes the next input, on the device", "step x ring", kernels,
   SHAPE_LIST(shapes, 5, 4), .sizes = "ring", .places = "step", .build = decode_advance_build);
