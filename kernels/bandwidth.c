/* bandwidth: launches, oracles and cases of the kernels that a device is measured with: bandwidth_read,
 * bandwidth_copy, bandwidth_triad, compute_fma and dispatch_overhead_noop; and how the roof
 * (harness/measure/roof.h) launches them. */
#include "kernels.h"

#include <assert.h>
#include <math.h>

#include "harness/base/size.h"
#include "record.h"
#include "reference/quant.h"
#include "reference/reference.h"

/* Threads stride over n units by the size of the grid. */
static bool check_grid(const kernel *k, uint32_t n, uint32_t groups, const char *units, err *e) {
    return (groups > 0 && groups <= UINT32_MAX / k->group && n <= UINT32_MAX - groups * k->group) ||
           err_set(e, EXIT_CANNOT, "%s: %u %s and %u threadgroups overflow a 32-bit index", k->name,
                   n, units, groups);
}

/* Reading: all of a buffer, of which the sums are left. A kernel reads units of its format. */

/* How a format is read. */
typedef struct {
    const weight_format *format;
    uint32_t values; /* in a unit */
    const char *units;
    size_t alignment;
    elem type;
    double terms, roundings; /* of a unit, as in expected */
} reader;

/* Floats need additions only; the sum of a block is exact, its scaling and the total are not. */
static const reader readers[] = {
    {&format_f32, 4, "float4", 16, ELEM_F32, 4, 0},
    {&format_f16, 4, "half4", 8, ELEM_F16, 4, 0},
    {&format_q4_0, Q4_0_VALUES, "blocks", 2, ELEM_U8, 1, 2},
};

static const reader *find_reader(const kernel *k) {
    size_t i = 0;
    while (i < COUNT_OF(readers) && readers[i].format != k->format)
        i++;
    assert(i < COUNT_OF(readers));
    return &readers[i];
}

static void bandwidth_read_oracle(const launch *l, oracle_io *io) {
    const reader *r = find_reader(l->kernel);
    expected *out = &io->out[1];
    uint32_t n = oracle_u32(io, 2), groups = l->grid.x, group = l->group.x;
    if (r->format == &format_f32)
        reference_read_sums(io->in[0], n, groups, group, out->value, out->scale);
    else if (r->format == &format_f16)
        reference_read_sums_f16(io->in[0], n, groups, group, out->value, out->scale);
    else
        reference_read_sums_q4_0(io->in[0], n, groups, group, out->value, out->scale);
    out->terms = r->terms * group * divide_up(n, groups * group);
    out->roundings = r->roundings;
}

bool bandwidth_read_record(tape *t, const kernel *k, slice data, slice out, uint32_t n,
                           uint32_t groups, err *e) {
    const reader *r = find_reader(k);
    assert(k->groups == 0 || k->groups == groups);
    if (!check_grid(k, n, groups, r->units, e))
        return false;
    size_t bytes = size_multiply(n, format_get_bytes(r->format, 1, r->values));
    const launch_work w = {.groups = {groups, 1, 1},
                           .flops = r->values * (uint64_t)n,
                           .oracle = bandwidth_read_oracle};
    return RECORD_ARGS(t, k, &w, e,
                       ARG_BUFFER("data", data, bytes / elem_get_bytes(r->type), ACCESS_READ,
                                  r->type, r->alignment),
                       ARG_OUT("out", out, groups), ARG_U32(n));
}

static bool bandwidth_read_build(kernel_case *c, err *e) {
    const reader *r = find_reader(c->kernel);
    uint32_t n = c->shape.dim[0], groups = c->kernel->groups ? c->kernel->groups : c->shape.dim[1];
    slice data, out;
    return case_input_weights(c, "data", r->format, n, r->values, &data, e) &&
           case_output(c, "out", groups * sizeof(float), &out, e) &&
           bandwidth_read_record(c->tape, c->kernel, data, out, n, groups, e);
}

/* Fewer units than threads, as many, one more; uneven strides; then a buffer of 4, 2 or 1 MB. */
/* clang-format off */
#define SHAPES {{1, 1}}, {{1, 3}}, {{31, 1}}, {{33, 1}}, {{255, 1}}, {{256, 1}}, {{257, 1}}, \
    {{257, 2}}, {{1000, 3}}, {{12345, 7}}
/* clang-format on */
static const shape floats[] = {SHAPES, {{250007, 64}}};
static const shape blocks[] = {SHAPES, {{70001, 40}}};

/* Most threadgroups idle; around the 262144 threads of the grid; uneven strides. */
SHAPES_OF(high_occupancy_shapes, ANY_INPUT(777), {{1}}, {{262143}}, {{262145}}, {{700001}});

static const shape_list block_shapes = SHAPE_LIST(blocks, 777, 2);

#define READ(end, variant_, about_, format_, ...)                                                  \
    OP_KERNEL("bandwidth_read_" end, variant_, about_, "bandwidth_read_" end ".metal",             \
              .format = &format_, .group = 256, __VA_ARGS__)
static const kernel read_kernels[] = {
    READ("f32", "plain", "float4 loads, strided by the grid", format_f32, .groups = 0),
    READ("f16", "plain", "half4 loads, strided by the grid", format_f16, .groups = 0),
    READ("q4_0", "plain", "16-bit loads, blocks strided by the grid", format_q4_0,
         .shapes = &block_shapes),
    READ("high_occupancy", "high_occupancy",
         "float4 loads by 1024 threadgroups, as many threads as possible", format_f32,
         .groups = 1024, .shapes = &high_occupancy_shapes),
};

OP(bandwidth_read, "sum of a whole buffer, the roof for reading", "n x groups", read_kernels,
   SHAPE_LIST(floats, 777, 2), .sizes = "n", .build = bandwidth_read_build);

/* Copying, and copying of two streams into one. What is read has one float4 more than is used, and it is
 * not NaN as a guard zone is. */

static void bandwidth_copy_oracle(const launch *l, oracle_io *io) {
    (void)l;
    reference_buffer_copy(io->in[0], 4 * (size_t)oracle_u32(io, 2), io->out[1].value);
    io->out[1].exact = true;
}

bool bandwidth_copy_record(tape *t, const kernel *k, slice src, slice dst, uint32_t n,
                           uint32_t groups, err *e) {
    if (!check_grid(k, n, groups, "float4", e))
        return false;
    size_t count = size_multiply(n, 4);
    const launch_work w = {.groups = {groups, 1, 1}, .oracle = bandwidth_copy_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN4("src", src, count), ARG_OUT4("dst", dst, count),
                       ARG_U32(n));
}

static bool bandwidth_copy_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0], groups = c->shape.dim[1];
    slice src, dst;
    return case_input_f32(c, "src", size_multiply((size_t)n + 1, 4), &src, e) &&
           case_output(c, "dst", size_multiply(n, 4 * sizeof(float)), &dst, e) &&
           bandwidth_copy_record(c->tape, c->kernel, src, dst, n, groups, e);
}

static void bandwidth_triad_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[2];
    reference_triad(io->in[0], io->in[1], (double)oracle_f32(io, 4), out->count, out->value,
                    out->scale);
    out->terms = 0;
    out->roundings = 1; /* the product; the sum is rounded when it is stored */
}

bool bandwidth_triad_record(tape *t, const kernel *k, slice b, slice c, slice out, uint32_t n,
                            float scalar, uint32_t groups, err *e) {
    if (!check_grid(k, n, groups, "float4", e))
        return false;
    size_t count = size_multiply(n, 4);
    const launch_work w = {
        .groups = {groups, 1, 1}, .flops = 8 * (uint64_t)n, .oracle = bandwidth_triad_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN4("b", b, count), ARG_IN4("c", c, count),
                       ARG_OUT4("out", out, count), ARG_U32(n), ARG_F32(scalar));
}

static bool bandwidth_triad_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0], groups = c->shape.dim[1];
    size_t count = size_multiply((size_t)n + 1, 4);
    slice b, d, out;
    return case_input_f32(c, "b", count, &b, e) && case_input_f32(c, "c", count, &d, e) &&
           case_output(c, "out", size_multiply(n, 4 * sizeof(float)), &out, e) &&
           bandwidth_triad_record(c->tape, c->kernel, b, d, out, n, 0.4f, groups, e);
}

static const shape strided[] = {
    {{1, 1}},   {{1, 3}},    {{255, 1}},   {{256, 1}},     {{257, 1}},
    {{257, 2}}, {{1000, 3}}, {{12345, 7}}, {{100003, 64}},
};

#define STRIDED(name, about)                                                                       \
    static const kernel name##_kernels[] = {                                                       \
        OP_KERNEL(#name, NULL, "float4 loads and stores, strided by the grid", #name ".metal",     \
                  .group = 256),                                                                   \
    };                                                                                             \
    OP(name, about, "n x groups", name##_kernels, SHAPE_LIST(strided, 777, 2),                     \
       .sizes = "n groups", .build = name##_build)
STRIDED(bandwidth_copy, "dst = src, the roof for copying");
STRIDED(bandwidth_triad, "out = b + scalar * c");

/* Arithmetic ---------------------------------------------------------------------------------- */

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
static const shape fma_shapes[] = {
    {{1, 1}}, {{31, 2}}, {{255, 3}}, {{256, 1}}, {{257, 40}}, {{1000, 7}}, {{8192, 256}},
};

static const kernel fma_kernels[] = {
    OP_KERNEL("compute_fma", NULL, "sixteen chains of fused multiply-adds per thread",
              "compute_fma.metal", .group = 256),
};

OP(compute_fma, "out = the sum of four series a = a / 2 + x, the roof for arithmetic", "n x rounds",
   fma_kernels, SHAPE_LIST(fma_shapes, 777, 5), .sizes = "n rounds", .build = compute_fma_build);

/* Nothing ------------------------------------------------------------------------------------- */

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

static const shape noop_shapes[] = {{{1}}, {{3}}, {{32}}};

static const kernel noop_kernels[] = {
    OP_KERNEL("dispatch_overhead_noop", NULL, "one thread adds 1 to a counter",
              "dispatch_overhead_noop.metal", .group = 1),
};

OP(dispatch_overhead_noop, "the least a launch can cost", "launches", noop_kernels,
   SHAPE_LIST(noop_shapes, 2), .build = dispatch_overhead_noop_build);

/* The roof ------------------------------------------------------------------------------------ */

static bool roof_read(tape *t, slice in, slice sums, uint32_t vectors, uint32_t groups, err *e) {
    return bandwidth_read_record(t, op_find_kernel(&bandwidth_read_op, "bandwidth_read_f32"), in,
                                 sums, vectors, groups, e);
}

static bool roof_copy(tape *t, slice in, slice out, uint32_t vectors, uint32_t groups, err *e) {
    return bandwidth_copy_record(t, &bandwidth_copy_op.kernels[0], in, out, vectors, groups, e);
}

static bool roof_triad(tape *t, slice a, slice b, slice out, uint32_t vectors, uint32_t groups,
                       err *e) {
    return bandwidth_triad_record(t, &bandwidth_triad_op.kernels[0], a, b, out, vectors, 0.5f,
                                  groups, e);
}

static bool roof_empty(tape *t, slice counter, err *e) {
    return dispatch_overhead_noop_record(t, &dispatch_overhead_noop_op.kernels[0], counter, e);
}

static bool roof_compute(tape *t, slice in, slice out, uint32_t threads, uint32_t rounds, err *e) {
    return compute_fma_record(t, &compute_fma_op.kernels[0], in, out, threads, rounds, e);
}

const roof_kernels bandwidth_roof_kernels = {roof_read, roof_copy, roof_triad, roof_empty,
                                             roof_compute};
