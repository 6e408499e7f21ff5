/* compute_fma: launches, oracle and cases. */
#include "kernels.h"

#include <math.h>

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

/* A rounding of a chain is multiplied by `keep` in every later round, so that at most 1 / (1 - keep) of its
 * last value are left; then three additions. */
static void compute_fma_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[1];
    reference_compute_fma(io->in[0], 4 * (size_t)oracle_u32(io, 2), oracle_u32(io, 3),
                          (double)oracle_f32(io, 4), out->value, out->scale);
    out->terms = 4;
    const double keep = fmin(fabs((double)oracle_f32(io, 4)), 0.999);
    out->roundings = ceil(2 / (1 - keep)) + 2;
}

bool compute_fma_record(tape *t, const kernel *k, slice x, slice out, uint32_t n, uint32_t rounds,
                        err *e) {
    if (n == 0 || n > UINT32_MAX - k->group)
        return err_set(e, EXIT_CANNOT, "%s: cannot compute with %u threads", k->name, n);
    size_t count = size_multiply(n, 4);
    const launch_work w = {
        .threads = n, .flops = 32 * (uint64_t)n * rounds, .oracle = compute_fma_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN4("x", x, count), ARG_OUT4("out", out, count), ARG_U32(n),
                       ARG_U32(rounds), ARG_F32(0.5f));
}

/* x has one float4 more than is used, and it is not NaN as a guard zone is. */
static bool compute_fma_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0], rounds = c->shape.dim[1];
    slice x, out;
    return case_input_f32(c, "x", size_multiply((size_t)n + 1, 4), &x, e) &&
           case_output(c, "out", size_multiply(n, 4 * sizeof(float)), &out, e) &&
           compute_fma_record(c->tape, c->kernel, x, out, n, rounds, e);
}

/* One round and few threads, the edges of a threadgroup, many rounds; the last is what bench times. */
static const shape shapes[] = {
    {{1, 1}}, {{31, 2}}, {{255, 3}}, {{256, 1}}, {{257, 40}}, {{1000, 7}}, {{8192, 256}},
};

static const kernel kernels[] = {
    OP_KERNEL("compute_fma", NULL, "sixteen chains of fused multiply-adds per thread",
              "compute_fma.metal", .group = 256),
};

OP(compute_fma, "out = the sum of four series a = a / 2 + x, the roof for arithmetic", "n x rounds",
   kernels, SHAPE_LIST(shapes, 777, 5), .sizes = "n rounds", .build = compute_fma_build);
