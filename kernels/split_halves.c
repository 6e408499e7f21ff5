/* split_halves: launches, oracle and cases. */
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "kernels.h"
#include "record.h"
#include "reference/reference.h"

/* Columns: 256, and around the 1024 float4s that a threadgroup looks at at a time, or makes halves of. */
static const shape shapes[] = {{{1, 256}},  {{1, 512}},  {{2, 768}},   {{3, 1024}}, {{5, 1280}},
                               {{2, 3840}}, {{3, 4096}}, {{64, 4352}}, {{3, 14336}}};

static const kernel kernels[] = {
    OP_KERNEL("split_halves", "plain", "one threadgroup per token", "split_halves.metal",
              .group = 256, .rows = 1, .tokens = 1, .multiple_of = 256),
};

static void split_halves_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *halves = &io->out[1], *powers = &io->out[2];
    uint32_t columns = oracle_u32(io, 3);
    uint32_t *words = array_new(halves->count, sizeof *words);
    float *made = array_new(powers->count, sizeof *made);
    reference_split_halves(io->in[0], powers->count, columns, words, made);
    for (size_t i = 0; i < halves->count; i++)
        halves->value[i] = words[i];
    for (size_t i = 0; i < powers->count; i++)
        powers->value[i] = (double)made[i];
    powers->exact = true;
    free(words);
    free(made);
}

size_t split_halves_count(uint32_t tokens, uint32_t columns) {
    return size_multiply(tokens, reference_count_halves(columns));
}

bool split_halves_record(tape *t, const kernel *k, slice x, slice halves, slice powers,
                         uint32_t tokens, uint32_t columns, err *e) {
    if (!RECORD_TAKES(&split_halves_op, k, e, tokens, columns))
        return false;
    size_t count = size_multiply(tokens, columns);
    const launch_work work = {
        .groups = {tokens, 1, 1}, .flops = 3 * (uint64_t)count, .oracle = split_halves_oracle};
    return RECORD_ARGS(t, k, &work, e, ARG_IN4("x", x, count),
                       ARG_BUFFER("halves", halves, split_halves_count(tokens, columns),
                                  ACCESS_WRITE, ELEM_U32, 16),
                       ARG_OUT("powers", powers, tokens), ARG_U32(columns));
}

static bool split_halves_build(kernel_case *c, err *e) {
    uint32_t tokens = c->shape.dim[0], columns = c->shape.dim[1];
    size_t count = size_multiply(tokens, columns);
    slice x, halves, powers;
    return case_input_f32(c, "x", count, &x, e) &&
           case_output(c, "halves", split_halves_count(tokens, columns) * sizeof(uint32_t), &halves,
                       e) &&
           case_output(c, "powers", tokens * sizeof(float), &powers, e) &&
           split_halves_record(c->tape, c->kernel, x, halves, powers, tokens, columns, e);
}

OP(split_halves, "x as two halves per value, for tensor cores", "tokens x columns", kernels,
   SHAPE_LIST(shapes, 3, 1280), .inner = "columns", .many = "tokens", .sizes = "tokens columns",
   .build = split_halves_build);
