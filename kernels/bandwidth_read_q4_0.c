/* bandwidth_read_q4_0: launches, oracle and cases. */
#include "kernels.h"

#include "harness/os.h"
#include "record.h"
#include "reference/quant.h"
#include "reference/reference.h"

static void bandwidth_read_q4_0_oracle(const launch *l, oracle_io *io) {
    expected *out = &io->out[1];
    uint32_t n = oracle_u32(io, 2), groups = l->grid.x, group = l->group.x;
    reference_read_sums_q4_0(io->in[0], n, groups, group, out->value, out->scale);
    out->terms = (double)group * divide_up(n, groups * group);
    out->roundings = 2; /* the sum of a block is exact, its scale and the sum are not */
}

bool bandwidth_read_q4_0_record(tape *t, const kernel_row *k, slice data, slice out, uint32_t n,
                                uint32_t groups, err *e) {
    size_t bytes = os_multiply(n, sizeof(block_q4_0)),
           out_bytes = os_multiply(groups, sizeof(float));
    if (!record_trim(k, "data", bytes, 2, &data, e) ||
        !record_trim(k, "out", out_bytes, sizeof(float), &out, e))
        return false;
    if (groups > UINT32_MAX / k->group || n > UINT32_MAX - groups * k->group)
        return err_set(e, EXIT_CANNOT, "%s: %u blocks and %u threadgroups overflow a 32-bit index",
                       k->name, n, groups);
    launch *l = tape_add(t, "bandwidth_read_q4_0.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, data, ACCESS_READ, ELEM_U8);
    launch_bind(l, 1, out, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 2, n);
    launch_set_groups(l, (size3){groups, 1, 1}, (size3){k->group, 1, 1});
    l->bytes = bytes + out_bytes;
    l->flops = Q4_0_VALUES * (uint64_t)n;
    l->oracle = bandwidth_read_q4_0_oracle;
    return true;
}

static bool bandwidth_read_q4_0_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0], groups = c->shape.dim[1];
    slice data, out;
    return case_input_weights(c, "data", &format_q4_0, n, Q4_0_VALUES, &data, e) &&
           case_output(c, "out", groups * sizeof(float), &out, e) &&
           bandwidth_read_q4_0_record(c->tape, c->kernel, data, out, n, groups, e);
}

/* Fewer blocks than threads, as many, more by one; uneven strides; a buffer of a MB. */
static const shape shapes[] = {
    {{1, 1}},   {{1, 3}},   {{31, 1}},   {{33, 1}},    {{255, 1}},    {{256, 1}},
    {{257, 1}}, {{257, 2}}, {{1000, 3}}, {{12345, 7}}, {{70001, 40}},
};

static const kernel_row rows[] = {
    {.name = "bandwidth_read_q4_0", .about = "16-bit loads, blocks a grid apart", .group = 256},
};

const op bandwidth_read_q4_0_op = {
    .name = "bandwidth_read_q4_0",
    .about = "the roof of reading Q4_0 blocks",
    .dims = "n x groups",
    .kernels = rows,
    .kernel_count = COUNT_OF(rows),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{777, 2}},
    .build = bandwidth_read_q4_0_build,
};
