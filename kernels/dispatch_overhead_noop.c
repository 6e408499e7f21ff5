/* dispatch_overhead_noop: launches, oracle and cases. */
#include "kernels.h"

#include "record.h"

static void dispatch_overhead_noop_oracle(const launch *l, oracle_io *io) {
    (void)l;
    io->out[0].value[0] += 1;
}

bool dispatch_overhead_noop_record(tape *t, const kernel *k, slice counter, err *e) {
    const launch_work w = {.groups = {1, 1, 1}, .oracle = dispatch_overhead_noop_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_WORDS("counter", counter, 1, ACCESS_BOTH));
}

static bool dispatch_overhead_noop_build(kernel_case *c, err *e) {
    uint32_t start = rng_below(&c->random, 1000);
    slice counter;
    bool ok = case_input_bytes(c, "counter", &start, sizeof start, &counter, e);
    for (uint32_t i = 0; ok && i < c->shape.dim[0]; i++)
        ok = dispatch_overhead_noop_record(c->tape, c->kernel, counter, e);
    return ok;
}

static const shape shapes[] = {{{1}}, {{3}}, {{32}}};

static const kernel kernels[] = {
    OP_KERNEL("dispatch_overhead_noop", NULL, "one thread adds 1 to a counter",
              "dispatch_overhead_noop.metal", .group = 1),
};

OP(dispatch_overhead_noop, "the least a launch can cost", "launches", kernels,
   SHAPE_LIST(shapes, 2), .build = dispatch_overhead_noop_build);
