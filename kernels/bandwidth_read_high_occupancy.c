/* bandwidth_read_high_occupancy: launches, oracle and cases. */
#include "kernels.h"

#include "harness/os.h"
#include "record.h"
#include "reference/reference.h"

static void bandwidth_read_high_occupancy_oracle(const launch *l, oracle_io *io) {
    expected *out = &io->out[1];
    uint32_t n = oracle_u32(io, 2), groups = l->grid.x, group = l->group.x;
    reference_read_sums(io->in[0], n, groups, group, out->value, out->scale);
    out->terms = 4.0 * group * divide_up(n, groups * group);
    out->roundings = 0; /* additions only */
}

bool bandwidth_read_high_occupancy_record(tape *t, const kernel_row *k, slice data, slice out,
                                          uint32_t n, err *e) {
    const uint32_t groups = BANDWIDTH_READ_HIGH_OCCUPANCY_GROUPS;
    size_t bytes = os_multiply(n, 4 * sizeof(float)), out_bytes = groups * sizeof(float);
    if (!record_trim(k, "data", bytes, 16, &data, e) ||
        !record_trim(k, "out", out_bytes, sizeof(float), &out, e))
        return false;
    if (n > UINT32_MAX - groups * k->group)
        return err_set(e, EXIT_CANNOT, "%s: %u float4 overflow a 32-bit index", k->name, n);
    launch *l = tape_add(t, "bandwidth_read_high_occupancy.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, data, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, out, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 2, n);
    launch_set_groups(l, (size3){groups, 1, 1}, (size3){k->group, 1, 1});
    l->bytes = bytes + out_bytes;
    l->flops = 4 * (uint64_t)n;
    l->oracle = bandwidth_read_high_occupancy_oracle;
    return true;
}

static bool bandwidth_read_high_occupancy_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0];
    slice data, out;
    return case_input_f32(c, "data", os_multiply(n, 4), &data, e) &&
           case_output(c, "out", BANDWIDTH_READ_HIGH_OCCUPANCY_GROUPS * sizeof(float), &out, e) &&
           bandwidth_read_high_occupancy_record(c->tape, c->kernel, data, out, n, e);
}

/* Most threadgroups have nothing; around the 262144 threads of the grid, and uneven strides. */
static const shape shapes[] = {
    {{1}},
    {{262143}},
    {{262145}},
    {{700001}},
};

static const kernel_row rows[] = {
    {.name = "bandwidth_read_high_occupancy",
     .about = "float4 loads, 1024 threadgroups",
     .group = 256},
};

const op bandwidth_read_high_occupancy_op = {
    .name = "bandwidth_read_high_occupancy",
    .about = "reading with as many threads as possible",
    .dims = "n",
    .kernels = rows,
    .kernel_count = COUNT_OF(rows),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{777}},
    .build = bandwidth_read_high_occupancy_build,
};
