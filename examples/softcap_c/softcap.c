/* How softcap.metal is launched, and what it should compute. Compiled by assay when it is first
 * used.
 *
 * The file answers four questions in this order: what is the right result (the oracle), how is the
 * kernel launched (the build function), which sizes are worth checking (the shapes), which kernels
 * are there (the table). A second variant is one more MSL function and one more row in the table.
 */
#include <assay.h>

#define CAP 30.0f

/* The oracle sees the launch as the kernel does: io->in[i] and io->out[i] belong to [[buffer(i)]].
 * It fills in the expected value of each element, and how exact it must be: off by at most this
 * many roundings of 2^-24 (tanh to 5 ULP counts double, a division by fast math 5, a product 1) of
 * its scale. The scale is the value itself, but x / cap may be denormal, and cap times its rounding
 * remains. */
static void softcap_oracle(const launch *l, oracle_io *io) {
    (void)l;
    const float *x = io->in[0];
    double cap = (double)oracle_f32(io, 3);
    expected *y = &io->out[1];
    for (size_t i = 0; i < y->count; i++) {
        y->value[i] = cap * tanh((double)x[i] / cap);
        y->scale[i] = fmax(fabs(y->value[i]), cap * (double)FLT_MIN);
    }
    y->roundings = 16;
}

/* One case: buffers made for its shape and filled from its distribution, and the launch. */
static bool softcap_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0];
    slice x, y;
    if (!case_input_f32(c, "x", n, &x, e) || !case_output(c, "y", n * sizeof(float), &y, e))
        return false;
    const launch_arg args[] = {
        ARG_IN("x", x, n),  /* [[buffer(0)]]; checked: unchanged afterwards */
        ARG_OUT("y", y, n), /* [[buffer(1)]]; checked: every element is written */
        ARG_U32(n),         /* [[buffer(2)]] */
        ARG_F32(CAP),       /* [[buffer(3)]] */
    };
    const launch_work w = {.threads = n, /* the kernel guards the tail */
                           .flops = 12 * (uint64_t)n,
                           .oracle = softcap_oracle};
    return record_args(c->tape, c->kernel, args, COUNT_OF(args), &w, e);
}

static const shape shapes[] = {
    {{1}}, {{31}}, {{32}}, {{33}}, {{255}}, {{256}}, {{257}}, {{4096}}, {{100003}},
};

static const kernel kernels[] = {
    {.name = "softcap", .about = "one thread per float", .file = "softcap.metal", .group = 256},
};

const op softcap_op = {
    .name = "softcap",
    .about = "y = cap * tanh(x / cap)",
    .dims = "n",
    .kernels = kernels,
    .kernel_count = COUNT_OF(kernels),
    .shapes = {shapes, COUNT_OF(shapes), {{77}}}, /* 77: also run with every input distribution */
    .build = softcap_build,
};
