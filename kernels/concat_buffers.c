/* concat_buffers: launches, oracles and cases of out = a, then b, and of out = a, then b, then c.
 * Buffers are the parts in order and out; their lengths follow. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

enum { MOST_PARTS = 3 };
static const char *const names[MOST_PARTS] = {"a", "b", "c"};

#define KERNEL(name)                                                                               \
    OP_KERNEL(name, NULL, "one thread per float", "concat_buffers.metal", .group = 256)
static const kernel kernels_2[] = {KERNEL("concat_buffers_2")},
                    kernels_3[] = {KERNEL("concat_buffers_3")};

static int count_parts(const kernel *k) {
    return k == kernels_2 ? 2 : 3;
}

static void oracle(const launch *l, oracle_io *io) {
    int parts = count_parts(l->kernel);
    expected *out = &io->out[parts];
    size_t at = 0;
    for (int i = 0; i < parts; i++) {
        uint32_t dim = oracle_u32(io, parts + 1 + i);
        reference_buffer_copy(io->in[i], dim, out->value + at);
        at += dim;
    }
    out->exact = true;
}

static bool record(tape *t, const kernel *k, const slice *in, slice out, const uint32_t *dims,
                   err *e) {
    int parts = count_parts(k);
    launch_arg args[2 * MOST_PARTS + 1];
    size_t count = 0;
    for (int i = 0; i < parts; i++) {
        args[i] = (launch_arg)ARG_IN(names[i], in[i], dims[i]);
        args[parts + 1 + i] = (launch_arg)ARG_U32(dims[i]);
        count += dims[i];
    }
    args[parts] = (launch_arg)ARG_OUT("out", out, count);
    if (count > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %zu floats overflow a 32-bit index", k->name, count);
    const launch_work w = {.threads = (uint32_t)count, .oracle = oracle};
    return record_args(t, k, args, 2 * (size_t)parts + 1, &w, e);
}

/* Each input has one float more than is used: it must not show up. */
static bool build(kernel_case *c, err *e) {
    int parts = count_parts(c->kernel);
    const uint32_t *dims = c->shape.dim;
    size_t count = 0;
    slice in[MOST_PARTS], out;
    for (int i = 0; i < parts; i++) {
        if (!case_input_f32(c, names[i], (size_t)dims[i] + 1, &in[i], e))
            return false;
        count += dims[i];
    }
    return case_output(c, "out", size_multiply(count, sizeof(float)), &out, e) &&
           record(c->tape, c->kernel, in, out, dims, e);
}

static const shape shapes_2[] = {
    {{1, 1}},   {{1, 255}},   {{31, 33}},   {{255, 1}},     {{256, 1}},
    {{5, 300}}, {{576, 192}}, {{192, 576}}, {{1536, 1536}}, {{70001, 50003}},
};
static const shape shapes_3[] = {
    {{1, 1, 1}},   {{1, 254, 1}},     {{31, 33, 32}},  {{254, 1, 1}},        {{256, 1, 3}},
    {{5, 7, 500}}, {{576, 192, 192}}, {{1, 2, 40003}}, {{4096, 1024, 1024}},
};

OP(concat_buffers_2, "out = a, then b", "a x b", kernels_2, SHAPE_LIST(shapes_2, 77, 33),
   .sizes = "a b", .build = build);
OP(concat_buffers_3, "out = a, then b, then c", "a x b x c", kernels_3,
   SHAPE_LIST(shapes_3, 40, 33, 5), .sizes = "a b c", .build = build);
