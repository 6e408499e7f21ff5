/* bandwidth_read: launches, oracle and cases of the kernels that read all of a buffer and leave its
 * sums.
 *
 * Each op has a .metal file of its name and reads units of its own: float4, half4, blocks. The one
 * surprise: what a kernel reads is found from its name. */
#include "kernels.h"

#include <assert.h>

#include "harness/base/os.h"
#include "record.h"
#include "reference/quant.h"
#include "reference/reference.h"

typedef struct {
    const op *op;
    const char *file;
    const weight_format *format;
    uint32_t values; /* in a unit */
    const char *units;
    size_t alignment;
    elem type;
    double terms, roundings; /* of a unit, as in expected */
    uint32_t groups;         /* always as many threadgroups; 0: the shape says how many */
} reader;

/* Of floats there are additions only; the sum of a block is exact, its scale and the sum are not.
 */
static const reader readers[] = {
    {&bandwidth_read_f32_op, "bandwidth_read_f32.metal", &format_f32, 4, "float4", 16, ELEM_F32, 4,
     0, 0},
    {&bandwidth_read_f16_op, "bandwidth_read_f16.metal", &format_f16, 4, "half4", 8, ELEM_F16, 4, 0,
     0},
    {&bandwidth_read_q4_0_op, "bandwidth_read_q4_0.metal", &format_q4_0, Q4_0_VALUES, "blocks", 2,
     ELEM_U8, 1, 2, 0},
    {&bandwidth_read_high_occupancy_op, "bandwidth_read_high_occupancy.metal", &format_f32, 4,
     "float4", 16, ELEM_F32, 4, 0, BANDWIDTH_READ_HIGH_OCCUPANCY_GROUPS},
};

static const reader *find_reader(const char *name) {
    for (size_t i = 0; i < COUNT_OF(readers); i++)
        if (op_find_kernel(readers[i].op, name))
            return &readers[i];
    return NULL;
}

static void bandwidth_read_oracle(const launch *l, oracle_io *io) {
    const reader *r = find_reader(l->pipeline->kernel);
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
    const reader *r = find_reader(k->name);
    assert(r && (r->groups == 0 || r->groups == groups));
    size_t bytes = os_multiply(n, format_get_bytes(r->format, 1, r->values)),
           out_bytes = os_multiply(groups, sizeof(float));
    if (!record_trim(k, "data", bytes, r->alignment, &data, e) ||
        !record_trim(k, "out", out_bytes, sizeof(float), &out, e))
        return false;
    if (groups > UINT32_MAX / k->group || n > UINT32_MAX - groups * k->group)
        return err_set(e, EXIT_CANNOT, "%s: %u %s and %u threadgroups overflow a 32-bit index",
                       k->name, n, r->units, groups);
    launch *l = tape_add(t, r->file, k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, data, ACCESS_READ, r->type);
    launch_bind(l, 1, out, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 2, n);
    launch_set_groups(l, (size3){groups, 1, 1}, (size3){k->group, 1, 1});
    l->bytes = bytes + out_bytes;
    l->flops = r->values * (uint64_t)n;
    l->oracle = bandwidth_read_oracle;
    return true;
}

static bool bandwidth_read_build(kernel_case *c, err *e) {
    const reader *r = find_reader(c->kernel->name);
    uint32_t n = c->shape.dim[0], groups = r->groups != 0 ? r->groups : c->shape.dim[1];
    slice data, out;
    return case_input_weights(c, "data", r->format, n, r->values, &data, e) &&
           case_output(c, "out", groups * sizeof(float), &out, e) &&
           bandwidth_read_record(c->tape, c->kernel, data, out, n, groups, e);
}

/* Fewer units than threads, as many, more by one; uneven strides; then a buffer of 4, 2 or 1 MB. */
#define SHAPES                                                                                     \
    {{1, 1}}, {{1, 3}}, {{31, 1}}, {{33, 1}}, {{255, 1}}, {{256, 1}}, {{257, 1}}, {{257, 2}},      \
        {{1000, 3}}, {                                                                             \
        { 12345, 7 }                                                                               \
    }
static const shape float_shapes[] = {SHAPES, {{250007, 64}}};
static const shape block_shapes[] = {SHAPES, {{70001, 40}}};

/* Most threadgroups have nothing; around the 262144 threads of the grid, and uneven strides. */
static const shape high_occupancy_shapes[] = {{{1}}, {{262143}}, {{262145}}, {{700001}}};

#define OP(name_, about_, how, dims_, shapes_, ...)                                                \
    static const kernel name_##_rows[] = {{#name_, how, .group = 256}};                        \
    const op name_##_op = {                                                                        \
        .name = #name_,                                                                            \
        .about = about_,                                                                           \
        .dims = dims_,                                                                             \
        .kernels = name_##_rows,                                                                   \
        .kernel_count = COUNT_OF(name_##_rows),                                                    \
        .shapes = shapes_,                                                                         \
        .shape_count = COUNT_OF(shapes_),                                                          \
        .any_input = {{__VA_ARGS__}},                                                              \
        .build = bandwidth_read_build,                                                             \
    }

OP(bandwidth_read_f32, "the roof of reading: sums all of a buffer", "float4 loads a grid apart",
   "n x groups", float_shapes, 777, 2);
OP(bandwidth_read_f16, "the roof of reading halves", "half4 loads a grid apart", "n x groups",
   float_shapes, 777, 2);
OP(bandwidth_read_q4_0, "the roof of reading Q4_0 blocks", "16-bit loads, blocks a grid apart",
   "n x groups", block_shapes, 777, 2);
OP(bandwidth_read_high_occupancy, "reading with as many threads as possible",
   "float4 loads, 1024 threadgroups", "n", high_occupancy_shapes, 777);
