/* elementwise: launches, oracles and cases of the ops that compute each float of an output from the
 * floats at the same index of their operands, or from a row that is repeated: residual_add,
 * residual_add_inplace, bias_add, ffn_silu, and the steps of a recurrent layer add, mul,
 * add_activate, affine, lerp, control_k_v7.
 *
 * All are one table. A new one needs a kernel, a function that computes one float, a line in the
 * table, a record function and its op. */
#include "kernels.h"

#include <math.h>

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

enum { MOST_OPERANDS = 3 };

/* in has the floats of one index, of all operands; one that is only written is 0. scalars are the op's
 * arguments after n and the period. */
typedef struct {
    double value, magnitude;
} result;
typedef result compute_fn(const double *in, const float *scalars);

static result compute_add(const double *in, const float *scalars) {
    (void)scalars;
    return (result){in[1] + in[0], fabs(in[0]) + fabs(in[1])};
}

static result compute_silu(const double *in, const float *scalars) {
    (void)scalars;
    const float gate = (float)in[0], up = (float)in[1];
    result r;
    reference_ffn_silu(&gate, &up, 1, &r.value, &r.magnitude);
    return r;
}

static result compute_mul(const double *in, const float *scalars) {
    (void)scalars;
    return (result){in[1] * in[0], fabs(in[1] * in[0])};
}

static result compute_affine(const double *in, const float *scalars) {
    double scaled = (double)scalars[0] * in[0], bias = (double)scalars[1];
    return (result){scaled + bias, fabs(scaled) + fabs(bias)};
}

static result mix(double from, double to, double share) {
    return (result){from + (to - from) * share, fabs(from) + (fabs(to) + fabs(from)) * fabs(share)};
}

static result compute_lerp(const double *in, const float *scalars) {
    (void)scalars;
    return mix(in[1], in[2], in[0]);
}

static result compute_lerp_reversed(const double *in, const float *scalars) {
    (void)scalars;
    return mix(in[2], in[1], in[0]);
}

static result compute_control_k(const double *in, const float *scalars) {
    (void)scalars;
    double k = in[2];
    return (result){k * (1 + (in[1] - 1) * in[0]), fabs(k) * (1 + (fabs(in[1]) + 1) * fabs(in[0]))};
}

/* Which operand is repeated for each row where the launch says so; NEVER: none can be. */
enum { NEVER = -1 };
/* The numbers after the operands: how many floats, and how long a row is where one is repeated; how
 * long a row is, and how many there are. */
typedef enum { COUNT, COUNT_PERIOD, DIM_ROWS } numbers;

typedef struct {
    const char *names[MOST_OPERANDS]; /* in binding order */
    int operands, output, repeated;
    access_mode access; /* of the output */
    numbers numbers;
    bool has_scalars; /* two floats */
    bool has_activation;
    double roundings;
    uint32_t flops; /* per float */
    compute_fn *compute;
} description;

#define ONE_THREAD "one thread per float"
#define OUT(name) OP_KERNEL(name, NULL, ONE_THREAD, "elementwise.metal", .group = 256)
#define IN_PLACE(name, variant, about)                                                             \
    OP_KERNEL(name, variant, about, "elementwise.metal", .accumulates = true, .group = 256)
#define SILU(name, variant, about, ...)                                                            \
    OP_KERNEL(name, variant, about, "ffn_silu.metal", __VA_ARGS__) /* rows: floats per thread */

/* Kernels and their descriptions. Of silu exp to 4 ULP and division to 2 count double, then + and *. */
/* clang-format off */
#define KERNELS(X) \
    X(RESIDUAL_ADD,         OUT("residual_add"), \
      {"a", "b", "out"},    3, 2, NEVER, ACCESS_WRITE, COUNT,        false, false, 0,  1, compute_add) \
    X(RESIDUAL_ADD_INPLACE, IN_PLACE("residual_add_inplace", NULL, ONE_THREAD), \
      {"a", "b"},           2, 0, NEVER, ACCESS_BOTH,  COUNT,        false, false, 0,  1, compute_add) \
    X(BIAS_ADD,             IN_PLACE("bias_add", NULL, ONE_THREAD), \
      {"a", "b"},           2, 0, 1,     ACCESS_BOTH,  DIM_ROWS,     false, false, 0,  1, compute_add) \
    X(FFN_SILU,             SILU("ffn_silu", "plain", ONE_THREAD, .group = 256), \
      {"gate", "up", "out"}, 3, 2, NEVER, ACCESS_WRITE, COUNT,       false, false, 12, 4, compute_silu) \
    X(FFN_SILU_PER_THREAD,  SILU("ffn_silu_per_thread", "per_thread", "one thread per 64 floats", .group = 1, .rows = 64), \
      {"gate", "up", "out"}, 3, 2, NEVER, ACCESS_WRITE, COUNT,       false, false, 12, 4, compute_silu) \
    X(ADD,                  IN_PLACE("add", NULL, ONE_THREAD), \
      {"x", "y"},           2, 1, 0,     ACCESS_BOTH,  COUNT_PERIOD, false, false, 0,  1, compute_add) \
    X(MUL,                  IN_PLACE("mul", NULL, ONE_THREAD), \
      {"x", "y"},           2, 1, 0,     ACCESS_BOTH,  COUNT_PERIOD, false, false, 1,  1, compute_mul) \
    X(ADD_ACTIVATE,         IN_PLACE("add_activate", NULL, ONE_THREAD), \
      {"x", "y"},           2, 1, 0,     ACCESS_BOTH,  COUNT_PERIOD, false, true,  0,  5, compute_add) \
    X(AFFINE,               IN_PLACE("affine", NULL, ONE_THREAD), \
      {"y"},                1, 0, NEVER, ACCESS_BOTH,  COUNT,        true,  false, 2,  2, compute_affine) \
    X(LERP,                 IN_PLACE("lerp", "plain", "f is the share of y"), \
      {"f", "x", "y"},      3, 2, 0,     ACCESS_BOTH,  COUNT_PERIOD, false, false, 3,  3, compute_lerp) \
    X(LERP_REVERSED,        IN_PLACE("lerp_reversed", "reversed", "f is the share of x"), \
      {"f", "x", "y"},      3, 2, 0,     ACCESS_BOTH,  COUNT_PERIOD, false, false, 3,  3, compute_lerp_reversed) \
    X(CONTROL_K,            IN_PLACE("control_k_v7", NULL, ONE_THREAD), \
      {"k_a", "a", "k"},    3, 2, 0,     ACCESS_BOTH,  COUNT_PERIOD, false, false, 4,  4, compute_control_k)
/* clang-format on */
#define NUMBER(number, ...) number,
enum { KERNELS(NUMBER) };
#define KERNEL(number, kernel, ...) kernel,
static const kernel kernels[] = {KERNELS(KERNEL)};
#define DESCRIPTION(number, kernel, ...) {__VA_ARGS__},
static const description descriptions[] = {KERNELS(DESCRIPTION)};

static const description *find_description(const kernel *k) {
    return &descriptions[k - kernels];
}

static void oracle(const launch *l, oracle_io *io) {
    const description *d = find_description(l->kernel);
    int at = d->operands, after = at + (d->numbers == COUNT ? 1 : 2);
    expected *out = &io->out[d->output];
    size_t period =
        d->numbers == COUNT ? out->count : oracle_u32(io, d->numbers == DIM_ROWS ? at : at + 1);
    float scalars[2] = {0, 0};
    for (int s = 0; d->has_scalars && s < 2; s++)
        scalars[s] = oracle_f32(io, after + s);
    for (size_t i = 0; i < out->count; i++) {
        double in[MOST_OPERANDS] = {0};
        for (int o = 0; o < d->operands; o++)
            if (o != d->output || d->access == ACCESS_BOTH)
                in[o] = (double)((const float *)io->in[o])[o == d->repeated ? i % period : i];
        result r = d->compute(in, scalars);
        out->value[i] = r.value;
        out->scale[i] = r.magnitude;
    }
    out->roundings = d->roundings;
    if (d->has_activation)
        activation_judge(oracle_u32(io, after), l->pipeline->math != MATH_SAFE, out);
}

typedef struct {
    uint32_t rows, dim;
    bool repeats;
    float scalars[2];
    uint32_t activation;
} arguments;

static bool record(tape *t, const kernel *k, const slice *at, const arguments *a, err *e) {
    const description *d = find_description(k);
    size_t n = size_multiply(a->rows, a->dim);
    if (n > UINT32_MAX - k->group)
        return err_set(e, EXIT_CANNOT, "%s: %u rows of %u overflow a 32-bit index", k->name,
                       a->rows, a->dim);
    if (d->has_activation &&
        !RECORD_TAKES(&add_activate_op, k, e, a->rows, a->dim, a->repeats, a->activation))
        return false;
    launch_arg args[MOST_OPERANDS + 4];
    size_t count = 0;
    for (int i = 0; i < d->operands; i++)
        args[count++] = (launch_arg)ARG_BUFFER(
            d->names[i], at[i], a->repeats && i == d->repeated ? a->dim : n,
            i == d->output ? d->access : ACCESS_READ, ELEM_F32, sizeof(float));
    args[count++] = (launch_arg)ARG_U32(d->numbers == DIM_ROWS ? a->dim : (uint32_t)n);
    if (d->numbers == DIM_ROWS)
        args[count++] = (launch_arg)ARG_U32(a->rows);
    if (d->numbers == COUNT_PERIOD)
        args[count++] = (launch_arg)ARG_U32(a->repeats ? a->dim : (uint32_t)n);
    if (d->has_activation)
        args[count++] = (launch_arg)ARG_U32(a->activation);
    for (int s = 0; d->has_scalars && s < 2; s++)
        args[count++] = (launch_arg)ARG_F32(a->scalars[s]);
    const launch_work w = {.threads = divide_up((uint32_t)n, k->rows ? k->rows : 1),
                           .flops = d->flops * (uint64_t)n,
                           .oracle = oracle};
    return record_args(t, k, args, count, &w, e);
}

bool residual_add_record(tape *t, const kernel *k, slice a, slice b, slice out, uint32_t n,
                         err *e) {
    return record(t, k, (slice[]){a, b, out}, &(arguments){.rows = 1, .dim = n}, e);
}

bool ffn_silu_record(tape *t, const kernel *k, slice gate, slice up, slice out, uint32_t n,
                     err *e) {
    return record(t, k, (slice[]){gate, up, out}, &(arguments){.rows = 1, .dim = n}, e);
}

bool bias_add_record(tape *t, const kernel *k, slice a, slice b, uint32_t rows, uint32_t dim,
                     err *e) {
    return record(t, k, (slice[]){a, b}, &(arguments){rows, dim, true, {0, 0}, 0}, e);
}

bool add_record(tape *t, const kernel *k, slice x, slice y, uint32_t rows, uint32_t dim,
                bool repeats, err *e) {
    return record(t, k, (slice[]){x, y}, &(arguments){rows, dim, repeats, {0, 0}, 0}, e);
}

bool mul_record(tape *t, const kernel *k, slice x, slice y, uint32_t rows, uint32_t dim,
                bool repeats, err *e) {
    return record(t, k, (slice[]){x, y}, &(arguments){rows, dim, repeats, {0, 0}, 0}, e);
}

bool add_activate_record(tape *t, const kernel *k, slice x, slice y, uint32_t rows, uint32_t dim,
                         bool repeats, uint32_t activation, err *e) {
    return record(t, k, (slice[]){x, y}, &(arguments){rows, dim, repeats, {0, 0}, activation}, e);
}

bool lerp_record(tape *t, const kernel *k, slice f, slice x, slice y, uint32_t rows, uint32_t dim,
                 bool repeats, err *e) {
    return record(t, k, (slice[]){f, x, y}, &(arguments){rows, dim, repeats, {0, 0}, 0}, e);
}

bool control_k_v7_record(tape *t, const kernel *k, slice k_a, slice a, slice keys, uint32_t rows,
                         uint32_t dim, err *e) {
    return record(t, k, (slice[]){k_a, a, keys}, &(arguments){rows, dim, true, {0, 0}, 0}, e);
}

/* --- cases --- */

/* rows x dim x repeats x activation; of the ops without rows, the first is their number of floats. What is
 * read has one float more than is used, and so has what is changed: a kernel without the guard of its
 * tail then overwrites a float that the check looks at. */
static bool build(kernel_case *c, err *e) {
    const description *d = find_description(c->kernel);
    const uint32_t *dim = c->shape.dim;
    bool has_rows = dim[1] != 0,
         always = c->kernel == &kernels[CONTROL_K] || c->kernel == &kernels[BIAS_ADD];
    const arguments a = {has_rows ? dim[0] : 1,
                         has_rows ? dim[1] : dim[0],
                         (dim[2] == 1 || always) && d->repeated != NEVER,
                         {-0.75f, 3.5f},
                         dim[3]};
    size_t n = size_multiply(a.rows, a.dim);
    slice at[MOST_OPERANDS];
    for (int i = 0; i < d->operands; i++)
        if (i == d->output && d->access == ACCESS_WRITE
                ? !case_output(c, d->names[i], n * sizeof(float), &at[i], e)
                : !case_input_f32(c, d->names[i], a.repeats && i == d->repeated ? a.dim : n + 1,
                                  &at[i], e))
            return false;
    return record(c->tape, c->kernel, at, &a, e);
}

static const shape residual_shapes[] = {
    {{1}}, {{31}}, {{32}}, {{33}}, {{576}}, {{1536}}, {{4096}}, {{65537}}, {{1000003}},
};
static const shape silu_shapes[] = {
    {{1}}, {{31}}, {{32}}, {{33}}, {{576}}, {{1536}}, {{14336}}, {{500009}},
};
static const shape bias_shapes[] = {
    {{1, 1}},    {{1, 31}},  {{3, 1}},    {{2, 33}},   {{4, 64}},     {{1, 576}},     {{64, 576}},
    {{19, 192}}, {{7, 896}}, {{33, 128}}, {{5, 4096}}, {{100, 1536}}, {{1000, 1003}},
};
/* One value, the edges of a simdgroup and of a threadgroup, rows of a model, a large odd size. */
static const shape shapes[] = {
    {{1, 1}},      {{1, 31}},     {{1, 32}},    {{1, 33}},       {{1, 768}},
    {{7, 2048}},   {{3, 1, 1}},   {{2, 33, 1}}, {{64, 4, 1}},    {{9, 31, 1}},
    {{5, 768, 1}}, {{19, 64, 1}}, {{33, 2560}}, {{501, 999, 1}},
};
static const shape rows_shapes[] = {
    {{1, 1}},  {{1, 31}},  {{1, 257}}, {{3, 1}},   {{2, 33}},
    {{64, 4}}, {{5, 768}}, {{19, 64}}, {{1, 768}}, {{301, 999}},
};
static const shape flat_shapes[] = {
    {{1, 1}}, {{1, 31}}, {{1, 33}}, {{1, 256}}, {{1, 257}}, {{5, 768}}, {{501, 999}},
};

/* Each activation at one shape, and one of them at all edges. */
static const shape activate_shapes[] = {
    {{1, 1, 0, 2}},   {{1, 31, 0, 2}},    {{1, 257, 1, 2}}, {{3, 33, 1, 2}},  {{64, 4, 1, 2}},
    {{5, 768, 1, 0}}, {{5, 768, 1, 1}},   {{5, 768, 1, 2}}, {{5, 768, 1, 3}}, {{5, 768, 1, 4}},
    {{5, 768, 1, 5}}, {{301, 999, 1, 5}}, {{2, 77, 0, 1}},  {{2, 77, 0, 3}},  {{2, 77, 0, 4}},
};

static bool accepts(const kernel *k, const shape *s, err *e) {
    return !find_description(k)->has_activation || activation_check(s->dim[3], e);
}

/* An op of `count` kernels from the one called `first` on. */
#define ELEMENTWISE(name, first, count, about, dims, sizes_, shapes)                               \
    OP_OF(name, about, dims, &kernels[first], count, shapes, .sizes = sizes_, .accepts = accepts,  \
          .build = build)
ELEMENTWISE(residual_add, RESIDUAL_ADD, 1, "out = a + b", "n", "n",
            SHAPE_LIST(residual_shapes, 77));
ELEMENTWISE(residual_add_inplace, RESIDUAL_ADD_INPLACE, 1, "a += b", "n", "n",
            SHAPE_LIST(residual_shapes, 77));
ELEMENTWISE(bias_add, BIAS_ADD, 1, "a += b for each row of a", "rows x dim", "rows dim",
            SHAPE_LIST(bias_shapes, 7, 11));
ELEMENTWISE(ffn_silu, FFN_SILU, 2, "out = silu(gate) * up", "n", "n", SHAPE_LIST(silu_shapes, 77));
ELEMENTWISE(add, ADD, 1, "y += x, x repeated for each row or not", "rows x dim x repeats",
            "rows dim", SHAPE_LIST(shapes, 7, 11, 1));
ELEMENTWISE(mul, MUL, 1, "y *= x, x repeated for each row or not", "rows x dim x repeats",
            "rows dim", SHAPE_LIST(shapes, 7, 11, 1));
ELEMENTWISE(add_activate, ADD_ACTIVATE, 1, "y = activation(y + x)",
            "rows x dim x repeats x activation", "rows dim",
            SHAPE_LIST(activate_shapes, 7, 11, 1, ACTIVATION_SIGMOID));
ELEMENTWISE(affine, AFFINE, 1, "y = scale * y + bias", "rows x dim", "rows dim",
            SHAPE_LIST(flat_shapes, 1, 77));
ELEMENTWISE(lerp, LERP, 2, "y between x and y, by f", "rows x dim x repeats", "rows dim",
            SHAPE_LIST(shapes, 7, 11, 1));
ELEMENTWISE(control_k_v7, CONTROL_K, 1, "k = k * (1 + (a - 1) * k_a)", "rows x dim", "rows dim",
            SHAPE_LIST(rows_shapes, 7, 11));
