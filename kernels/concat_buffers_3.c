/* concat_buffers_3: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/os.h"
#include "record.h"
#include "reference/reference.h"

static void concat_buffers_3_oracle(const launch *l, oracle_io *io) {
    (void)l;
    double *out = io->out[3].value;
    for (int i = 0; i < 3; i++) { /* a and dim_a, b and dim_b, c and dim_c */
        reference_buffer_copy(io->in[i], oracle_u32(io, 4 + i), out);
        out += oracle_u32(io, 4 + i);
    }
    io->out[3].exact = true;
}

bool concat_buffers_3_record(tape *t, const kernel *k, slice a, slice b, slice c, slice out,
                             uint32_t dim_a, uint32_t dim_b, uint32_t dim_c, err *e) {
    size_t a_bytes = os_multiply(dim_a, sizeof(float)), b_bytes = os_multiply(dim_b, sizeof(float));
    size_t c_bytes = os_multiply(dim_c, sizeof(float)), bytes = a_bytes + b_bytes + c_bytes;
    if (!record_trim(k, "a", a_bytes, sizeof(float), &a, e) ||
        !record_trim(k, "b", b_bytes, sizeof(float), &b, e) ||
        !record_trim(k, "c", c_bytes, sizeof(float), &c, e) ||
        !record_trim(k, "out", bytes, sizeof(float), &out, e))
        return false;
    if (bytes / sizeof(float) > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %u + %u + %u floats overflow a 32-bit index", k->name,
                       dim_a, dim_b, dim_c);
    launch *l = tape_add(t, "concat_buffers_3.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, a, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, b, ACCESS_READ, ELEM_F32);
    launch_bind(l, 2, c, ACCESS_READ, ELEM_F32);
    launch_bind(l, 3, out, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 4, dim_a);
    launch_set_u32(l, 5, dim_b);
    launch_set_u32(l, 6, dim_c);
    launch_set_threads_rounded(l, dim_a + dim_b + dim_c, k->group);
    l->bytes = 2 * bytes;
    l->oracle = concat_buffers_3_oracle;
    return true;
}

/* Each input has a float more than is asked for: it must not show up. */
static bool concat_buffers_3_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    size_t count = (size_t)dim[0] + dim[1] + dim[2];
    slice in[3], out;
    return case_input_f32(c, "a", (size_t)dim[0] + 1, &in[0], e) &&
           case_input_f32(c, "b", (size_t)dim[1] + 1, &in[1], e) &&
           case_input_f32(c, "c", (size_t)dim[2] + 1, &in[2], e) &&
           case_output(c, "out", count * sizeof(float), &out, e) &&
           concat_buffers_3_record(c->tape, c->kernel, in[0], in[1], in[2], out, dim[0], dim[1],
                                   dim[2], e);
}

static const shape shapes[] = {
    {{1, 1, 1}},   {{1, 254, 1}},     {{31, 33, 32}},  {{254, 1, 1}},        {{256, 1, 3}},
    {{5, 7, 500}}, {{576, 192, 192}}, {{1, 2, 40003}}, {{4096, 1024, 1024}},
};

static const kernel rows[] = {
    {.name = "concat_buffers_3", .about = "a thread a float", .group = 256},
};

const op concat_buffers_3_op = {
    .name = "concat_buffers_3",
    .about = "out = a, then b, then c",
    .dims = "a x b x c",
    .kernels = rows,
    .kernel_count = COUNT_OF(rows),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{77, 33, 5}},
    .build = concat_buffers_3_build,
};
