/* bandwidth_read: launches, oracle and cases of the kernels that read all of a buffer and leave its
 * sums. A kernel reads units of its format: float4, half4, blocks. */
#include "kernels.h"

#include <assert.h>

#include "harness/base/size.h"
#include "record.h"
#include "reference/quant.h"
#include "reference/reference.h"

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
    if (groups > UINT32_MAX / k->group || n > UINT32_MAX - groups * k->group)
        return err_set(e, EXIT_CANNOT, "%s: %u %s and %u threadgroups overflow a 32-bit index",
                       k->name, n, r->units, groups);
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
static const shape high_occupancy[] = {{{1}}, {{262143}}, {{262145}}, {{700001}}};

static const shape_list block_shapes = SHAPE_LIST(blocks, 777, 2);
static const shape_list high_occupancy_shapes = SHAPE_LIST(high_occupancy, 777);

#define KERNEL(end, variant_, about_, format_, ...)                                                \
    OP_KERNEL("bandwidth_read_" end, variant_, about_, "bandwidth_read_" end ".metal",             \
              .format = &format_, .group = 256, __VA_ARGS__)
static const kernel kernels[] = {
    KERNEL("f32", "plain", "float4 loads, strided by the grid", format_f32, .groups = 0),
    KERNEL("f16", "plain", "half4 loads, strided by the grid", format_f16, .groups = 0),
    KERNEL("q4_0", "plain", "16-bit loads, blocks strided by the grid", format_q4_0,
           .shapes = &block_shapes),
    KERNEL("high_occupancy", "high_occupancy",
           "float4 loads by 1024 threadgroups, as many threads as possible", format_f32,
           .groups = 1024, .shapes = &high_occupancy_shapes),
};

OP(bandwidth_read, "sum of a whole buffer, the roof for reading", "n x groups", kernels,
   SHAPE_LIST(floats, 777, 2), .sizes = "n", .build = bandwidth_read_build);
