/* concat_buffers_2: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/os.h"
#include "record.h"
#include "reference/reference.h"

static void concat_buffers_2_oracle(const launch *l, oracle_io *io) {
    (void)l;
    uint32_t dim_a = oracle_u32(io, 3);
    reference_buffer_copy(io->in[0], dim_a, io->out[2].value);
    reference_buffer_copy(io->in[1], oracle_u32(io, 4), io->out[2].value + dim_a);
    io->out[2].exact = true;
}

bool concat_buffers_2_record(tape *t, const kernel *k, slice a, slice b, slice out,
                             uint32_t dim_a, uint32_t dim_b, err *e) {
    size_t a_bytes = os_multiply(dim_a, sizeof(float)), b_bytes = os_multiply(dim_b, sizeof(float));
    if (!record_trim(k, "a", a_bytes, sizeof(float), &a, e) ||
        !record_trim(k, "b", b_bytes, sizeof(float), &b, e) ||
        !record_trim(k, "out", a_bytes + b_bytes, sizeof(float), &out, e))
        return false;
    if (dim_a > UINT32_MAX - dim_b)
        return err_set(e, EXIT_CANNOT, "%s: %u + %u floats overflow a 32-bit index", k->name, dim_a,
                       dim_b);
    launch *l = tape_add(t, "concat_buffers_2.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, a, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, b, ACCESS_READ, ELEM_F32);
    launch_bind(l, 2, out, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 3, dim_a);
    launch_set_u32(l, 4, dim_b);
    launch_set_threads_rounded(l, dim_a + dim_b, k->group);
    l->bytes = 2 * (a_bytes + b_bytes);
    l->oracle = concat_buffers_2_oracle;
    return true;
}

/* Each input has a float more than is asked for: it must not show up. */
static bool concat_buffers_2_build(kernel_case *c, err *e) {
    uint32_t dim_a = c->shape.dim[0], dim_b = c->shape.dim[1];
    slice a, b, out;
    return case_input_f32(c, "a", (size_t)dim_a + 1, &a, e) &&
           case_input_f32(c, "b", (size_t)dim_b + 1, &b, e) &&
           case_output(c, "out", ((size_t)dim_a + dim_b) * sizeof(float), &out, e) &&
           concat_buffers_2_record(c->tape, c->kernel, a, b, out, dim_a, dim_b, e);
}

static const shape shapes[] = {
    {{1, 1}},   {{1, 255}},   {{31, 33}},   {{255, 1}},     {{256, 1}},
    {{5, 300}}, {{576, 192}}, {{192, 576}}, {{1536, 1536}}, {{70001, 50003}},
};

static const kernel rows[] = {
    {.name = "concat_buffers_2", .about = "a thread a float", .group = 256},
};

const op concat_buffers_2_op = {
    .name = "concat_buffers_2",
    .about = "out = a, then b",
    .dims = "a x b",
    .kernels = rows,
    .kernel_count = COUNT_OF(rows),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{77, 33}},
    .build = concat_buffers_2_build,
};
