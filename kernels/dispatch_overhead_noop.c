/* dispatch_overhead_noop: launches, oracle and cases. */
#include "kernels.h"

#include "record.h"

static void dispatch_overhead_noop_oracle(const launch *l, oracle_io *io) {
    (void)l;
    io->out[0].value[0] += 1;
}

bool dispatch_overhead_noop_record(tape *t, const kernel *k, slice counter, err *e) {
    if (!record_trim(k, "counter", sizeof(uint32_t), sizeof(uint32_t), &counter, e))
        return false;
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    launch_bind(l, 0, counter, ACCESS_BOTH, ELEM_U32);
    launch_set_groups(l, (size3){1, 1, 1}, (size3){k->group, 1, 1});
    l->bytes = 2 * sizeof(uint32_t);
    l->oracle = dispatch_overhead_noop_oracle;
    return true;
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
    {.name = "dispatch_overhead_noop",
     .about = "one thread adds 1 to a counter",
     .file = "dispatch_overhead_noop.metal",
     .group = 1},
};

const op dispatch_overhead_noop_op = {
    .name = "dispatch_overhead_noop",
    .about = "the least a launch can cost",
    .dims = "launches",
    .kernels = kernels,
    .kernel_count = COUNT_OF(kernels),
    .shapes = {shapes, COUNT_OF(shapes), {{2}}},
    .build = dispatch_overhead_noop_build,
};
