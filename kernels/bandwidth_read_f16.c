/* bandwidth_read_f16: launches, oracle and cases. */
#include "kernels.h"

#include "harness/os.h"
#include "record.h"
#include "reference/reference.h"

static void bandwidth_read_f16_oracle(const launch *l, oracle_io *io) {
    expected *out = &io->out[1];
    uint32_t n = oracle_u32(io, 2), groups = l->grid.x, group = l->group.x;
    reference_read_sums_f16(io->in[0], n, groups, group, out->value, out->scale);
    out->terms = 4.0 * group * divide_up(n, groups * group);
    out->roundings = 0; /* additions only */
}

bool bandwidth_read_f16_record(tape *t, const kernel_row *k, slice data, slice out, uint32_t n,
                               uint32_t groups, err *e) {
    size_t bytes = os_multiply(n, 4 * sizeof(uint16_t)),
           out_bytes = os_multiply(groups, sizeof(float));
    if (!record_trim(k, "data", bytes, 8, &data, e) ||
        !record_trim(k, "out", out_bytes, sizeof(float), &out, e))
        return false;
    if (groups > UINT32_MAX / k->group || n > UINT32_MAX - groups * k->group)
        return err_set(e, EXIT_CANNOT, "%s: %u half4 and %u threadgroups overflow a 32-bit index",
                       k->name, n, groups);
    launch *l = tape_add(t, "bandwidth_read_f16.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, data, ACCESS_READ, ELEM_F16);
    launch_bind(l, 1, out, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 2, n);
    launch_set_groups(l, (size3){groups, 1, 1}, (size3){k->group, 1, 1});
    l->bytes = bytes + out_bytes;
    l->flops = 4 * (uint64_t)n;
    l->oracle = bandwidth_read_f16_oracle;
    return true;
}

static bool bandwidth_read_f16_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0], groups = c->shape.dim[1];
    slice data, out;
    return case_input_weights(c, "data", &format_f16, 1, 4 * n, &data, e) &&
           case_output(c, "out", groups * sizeof(float), &out, e) &&
           bandwidth_read_f16_record(c->tape, c->kernel, data, out, n, groups, e);
}

/* Fewer half4 than threads, as many, more by one; uneven strides; a buffer of 2 MB. */
static const shape shapes[] = {
    {{1, 1}},   {{1, 3}},   {{31, 1}},   {{33, 1}},    {{255, 1}},     {{256, 1}},
    {{257, 1}}, {{257, 2}}, {{1000, 3}}, {{12345, 7}}, {{250007, 64}},
};

static const kernel_row rows[] = {
    {.name = "bandwidth_read_f16", .about = "half4 loads a grid apart", .group = 256},
};

const op bandwidth_read_f16_op = {
    .name = "bandwidth_read_f16",
    .about = "the roof of reading halves",
    .dims = "n x groups",
    .kernels = rows,
    .kernel_count = COUNT_OF(rows),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{777, 2}},
    .build = bandwidth_read_f16_build,
};
