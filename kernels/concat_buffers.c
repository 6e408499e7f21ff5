/* concat_buffers: launches, oracles and cases of out = a, then b, and of out = a, then b, then c.
 * Buffers are the parts in order and out; their lengths follow. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

enum { MOST_PARTS = 3 };
static const char *const names[MOST_PARTS] = {"a", "b", "c"};

static void expect(oracle_io *io, int parts) {
    expected *out = &io->out[parts];
    size_t at = 0;
    for (int i = 0; i < parts; i++) {
        uint32_t dim = oracle_u32(io, parts + 1 + i);
        reference_buffer_copy(io->in[i], dim, out->value + at);
        at += dim;
    }
    out->exact = true;
}

static void concat_buffers_2_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expect(io, 2);
}

static void concat_buffers_3_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expect(io, 3);
}

static bool record(tape *t, const kernel *k, int parts, const slice *in, slice out,
                   const uint32_t *dims, err *e) {
    operand operands[MOST_PARTS + 1];
    size_t count = 0;
    for (int i = 0; i < parts; i++) {
        operands[i] = (operand){names[i], in[i], dims[i], ACCESS_READ};
        count += dims[i];
    }
    operands[parts] = (operand){"out", out, count, ACCESS_WRITE};
    if (count > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %zu floats overflow a 32-bit index", k->name, count);
    launch *l = record_floats(t, k, sizeof(float), operands, (size_t)parts + 1, e);
    if (!l)
        return false;
    for (int i = 0; i < parts; i++)
        launch_set_u32(l, parts + 1 + i, dims[i]);
    launch_set_threads_rounded(l, (uint32_t)count, k->group);
    l->oracle = parts == 2 ? concat_buffers_2_oracle : concat_buffers_3_oracle;
    return true;
}

bool concat_buffers_2_record(tape *t, const kernel *k, slice a, slice b, slice out, uint32_t dim_a,
                             uint32_t dim_b, err *e) {
    return record(t, k, 2, (slice[]){a, b}, out, (uint32_t[]){dim_a, dim_b}, e);
}

bool concat_buffers_3_record(tape *t, const kernel *k, slice a, slice b, slice c, slice out,
                             uint32_t dim_a, uint32_t dim_b, uint32_t dim_c, err *e) {
    return record(t, k, 3, (slice[]){a, b, c}, out, (uint32_t[]){dim_a, dim_b, dim_c}, e);
}

/* Each input has one float more than is used: it must not show up. */
static bool build(kernel_case *c, int parts, err *e) {
    const uint32_t *dims = c->shape.dim;
    size_t count = 0;
    slice in[MOST_PARTS], out;
    for (int i = 0; i < parts; i++) {
        if (!case_input_f32(c, names[i], (size_t)dims[i] + 1, &in[i], e))
            return false;
        count += dims[i];
    }
    return case_output(c, "out", size_multiply(count, sizeof(float)), &out, e) &&
           record(c->tape, c->kernel, parts, in, out, dims, e);
}

static const shape shapes_2[] = {
    {{1, 1}},   {{1, 255}},   {{31, 33}},   {{255, 1}},     {{256, 1}},
    {{5, 300}}, {{576, 192}}, {{192, 576}}, {{1536, 1536}}, {{70001, 50003}},
};
static const shape shapes_3[] = {
    {{1, 1, 1}},   {{1, 254, 1}},     {{31, 33, 32}},  {{254, 1, 1}},        {{256, 1, 3}},
    {{5, 7, 500}}, {{576, 192, 192}}, {{1, 2, 40003}}, {{4096, 1024, 1024}},
};

#define OP(parts, about_, dims_, ...)                                                              \
    static bool build_##parts(kernel_case *c, err *e) {                                            \
        return build(c, parts, e);                                                                 \
    }                                                                                              \
    static const kernel kernel_##parts = {.name = "concat_buffers_" #parts,                        \
                                          .about = "one thread per float",                         \
                                          .file = "concat_buffers_" #parts ".metal",               \
                                          .group = 256};                                           \
    const op concat_buffers_##parts##_op = {                                                       \
        .name = "concat_buffers_" #parts,                                                          \
        .about = about_,                                                                           \
        .dims = dims_,                                                                             \
        .kernels = &kernel_##parts,                                                                \
        .kernel_count = 1,                                                                         \
        .shapes = {shapes_##parts, COUNT_OF(shapes_##parts), {{__VA_ARGS__}}},                     \
        .build = build_##parts,                                                                    \
    }
OP(2, "out = a, then b", "a x b", 77, 33);
OP(3, "out = a, then b, then c", "a x b x c", 77, 33, 5);
