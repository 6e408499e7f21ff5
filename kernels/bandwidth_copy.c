/* bandwidth_copy: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

static void bandwidth_copy_oracle(const launch *l, oracle_io *io) {
    (void)l;
    reference_buffer_copy(io->in[0], 4 * (size_t)oracle_u32(io, 2), io->out[1].value);
    io->out[1].exact = true;
}

bool bandwidth_copy_record(tape *t, const kernel *k, slice src, slice dst, uint32_t n,
                           uint32_t groups, err *e) {
    if (groups == 0 || groups > UINT32_MAX / k->group || n > UINT32_MAX - groups * k->group)
        return err_set(e, EXIT_CANNOT, "%s: cannot copy %u float4 with %u threadgroups", k->name, n,
                       groups);
    size_t count = size_multiply(n, 4);
    const launch_work w = {.groups = {groups, 1, 1}, .oracle = bandwidth_copy_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN4("src", src, count), ARG_OUT4("dst", dst, count),
                       ARG_U32(n));
}

/* src has one float4 more than is copied, and it is not NaN as a guard zone is. */
static bool bandwidth_copy_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0], groups = c->shape.dim[1];
    slice src, dst;
    return case_input_f32(c, "src", size_multiply((size_t)n + 1, 4), &src, e) &&
           case_output(c, "dst", size_multiply(n, 4 * sizeof(float)), &dst, e) &&
           bandwidth_copy_record(c->tape, c->kernel, src, dst, n, groups, e);
}

static const shape shapes[] = {
    {{1, 1}},   {{1, 3}},    {{255, 1}},   {{256, 1}},     {{257, 1}},
    {{257, 2}}, {{1000, 3}}, {{12345, 7}}, {{100003, 64}},
};

static const kernel kernels[] = {
    OP_KERNEL("bandwidth_copy", NULL, "float4 loads and stores, strided by the grid",
              "bandwidth_copy.metal", .group = 256),
};

OP(bandwidth_copy, "dst = src, the roof for copying", "n x groups", kernels,
   SHAPE_LIST(shapes, 777, 2), .sizes = "n groups", .build = bandwidth_copy_build);
