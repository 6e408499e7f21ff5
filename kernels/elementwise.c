/* elementwise: launches, oracles and cases of the ops that compute each float of an output from the
 * floats at the same index of their inputs: residual_add, residual_add_inplace, ffn_silu; and
 * bias_add, which repeats its second input for each row.
 *
 * A new one needs a description, a record function and its op. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

enum { MOST_OPERANDS = 3 };

/* An op of n floats: its buffers in binding order. n follows them. */
typedef struct {
    const char *names[MOST_OPERANDS];
    access_mode access[MOST_OPERANDS];
    size_t operands;
    uint32_t flops; /* per float */
    oracle_fn oracle;
} description;

static expected *find_output(oracle_io *io) {
    int i = 0;
    while (!io->out[i].value)
        i++;
    return &io->out[i];
}

static void add_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = find_output(io);
    reference_residual_add(io->in[0], io->in[1], out->count, out->value, out->scale);
    out->roundings = 0; /* one addition and nothing else */
}

static void silu_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = find_output(io);
    reference_ffn_silu(io->in[0], io->in[1], out->count, out->value, out->scale);
    out->roundings = 12; /* exp to 4 ULP and division to 2 count double, then + and * */
}

static const description residual_add = {
    {"a", "b", "out"}, {ACCESS_READ, ACCESS_READ, ACCESS_WRITE}, 3, 1, add_oracle};
static const description residual_add_inplace = {
    {"a", "b"}, {ACCESS_BOTH, ACCESS_READ}, 2, 1, add_oracle};
static const description ffn_silu = {{"gate", "up", "out"},
                                     {ACCESS_READ, ACCESS_READ, ACCESS_WRITE},
                                     3,
                                     4, /* exp, add, divide, multiply */
                                     silu_oracle};

static bool record(tape *t, const kernel *k, const description *d, const slice *at, uint32_t n,
                   err *e) {
    launch_arg args[MOST_OPERANDS + 1];
    for (size_t i = 0; i < d->operands; i++)
        args[i] =
            (launch_arg)ARG_BUFFER(d->names[i], at[i], n, d->access[i], ELEM_F32, sizeof(float));
    args[d->operands] = (launch_arg)ARG_U32(n);
    const launch_work w = {.threads = divide_up(n, k->rows ? k->rows : 1),
                           .flops = d->flops * (uint64_t)n,
                           .oracle = d->oracle};
    return record_args(t, k, args, d->operands + 1, &w, e);
}

static bool build(kernel_case *c, const description *d, err *e) {
    uint32_t n = c->shape.dim[0];
    slice at[MOST_OPERANDS];
    for (size_t i = 0; i < d->operands; i++)
        if (!(d->access[i] & ACCESS_READ
                  ? case_input_f32(c, d->names[i], n, &at[i], e)
                  : case_output(c, d->names[i], n * sizeof(float), &at[i], e)))
            return false;
    return record(c->tape, c->kernel, d, at, n, e);
}

bool residual_add_record(tape *t, const kernel *k, slice a, slice b, slice out, uint32_t n,
                         err *e) {
    return record(t, k, &residual_add, (slice[]){a, b, out}, n, e);
}

bool ffn_silu_record(tape *t, const kernel *k, slice gate, slice up, slice out, uint32_t n,
                     err *e) {
    return record(t, k, &ffn_silu, (slice[]){gate, up, out}, n, e);
}

static const shape add_shapes[] = {
    {{1}}, {{31}}, {{32}}, {{33}}, {{576}}, {{1536}}, {{4096}}, {{65537}}, {{1000003}},
};
static const shape silu_shapes[] = {
    {{1}}, {{31}}, {{32}}, {{33}}, {{576}}, {{1536}}, {{14336}}, {{500009}},
};

#define KERNEL(name, accumulates_)                                                                 \
    OP_KERNEL(name, NULL, "one thread per float", name ".metal", .accumulates = accumulates_,      \
              .group = 256)
/* Floats per thread where it is not one: rows. */
#define ELEMENTWISE(name, about, shapes, ...)                                                      \
    static bool name##_build(kernel_case *c, err *e) {                                             \
        return build(c, &name, e);                                                                 \
    }                                                                                              \
    static const kernel name##_kernels[] = {__VA_ARGS__};                                          \
    OP(name, about, "n", name##_kernels, SHAPE_LIST(shapes, 77), .sizes = "n",                     \
       .build = name##_build)
ELEMENTWISE(residual_add, "out = a + b", add_shapes, KERNEL("residual_add", false));
ELEMENTWISE(residual_add_inplace, "a += b", add_shapes, KERNEL("residual_add_inplace", true));
ELEMENTWISE(ffn_silu, "out = silu(gate) * up", silu_shapes,
            OP_KERNEL("ffn_silu", "plain", "one thread per float", "ffn_silu.metal", .group = 256),
            OP_KERNEL("ffn_silu_per_thread", "per_thread", "one thread per 64 floats",
                      "ffn_silu.metal", .group = 1, .rows = 64));

/* bias_add ---------------------------------------------------------------------------------- */

static void bias_add_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[0];
    const float *a = io->in[0];
    uint32_t dim = oracle_u32(io, 2), rows = oracle_u32(io, 3);
    for (size_t r = 0; r < rows; r++)
        reference_residual_add(a + r * dim, io->in[1], dim, out->value + r * dim,
                               out->scale + r * dim);
    out->roundings = 0; /* one addition and nothing else */
}

bool bias_add_record(tape *t, const kernel *k, slice a, slice b, uint32_t rows, uint32_t dim,
                     err *e) {
    size_t count = size_multiply(rows, dim);
    if (count > UINT32_MAX / sizeof(float))
        return err_set(e, EXIT_CANNOT, "%s: %u rows of %u overflow a 32-bit index", k->name, rows,
                       dim);
    const launch_work w = {.threads = (uint32_t)count, .flops = count, .oracle = bias_add_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_BOTH("a", a, count), ARG_IN("b", b, dim), ARG_U32(dim),
                       ARG_U32(rows));
}

/* The last row is followed by one float that must not change: adding to the NaN of a guard zone
 * would go unseen. */
static bool bias_add_build(kernel_case *c, err *e) {
    uint32_t rows = c->shape.dim[0], dim = c->shape.dim[1];
    slice a, b;
    return case_input_f32(c, "a", size_multiply(rows, dim) + 1, &a, e) &&
           case_input_f32(c, "b", dim, &b, e) &&
           bias_add_record(c->tape, c->kernel, a, b, rows, dim, e);
}

static const shape bias_shapes[] = {
    {{1, 1}},    {{1, 31}},  {{3, 1}},    {{2, 33}},   {{4, 64}},     {{1, 576}},     {{64, 576}},
    {{19, 192}}, {{7, 896}}, {{33, 128}}, {{5, 4096}}, {{100, 1536}}, {{1000, 1003}},
};

static const kernel bias_kernels[] = {KERNEL("bias_add", true)};

OP(bias_add, "a += b for each row of a", "rows x dim", bias_kernels, SHAPE_LIST(bias_shapes, 7, 11),
   .sizes = "rows dim", .build = bias_add_build);
