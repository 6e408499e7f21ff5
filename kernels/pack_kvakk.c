/* pack_kvakk: launches, oracles and cases of pack_kvakk and channel_mix_v7, which copy. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"

static void pack_kvakk_oracle(const launch *l, oracle_io *io) {
    (void)l;
    size_t n = oracle_u32(io, 5);
    for (size_t part = 0; part < 4; part++)
        for (size_t i = 0; i < n; i++)
            io->out[4].value[part * n + i] = (double)((const float *)io->in[part])[i];
    io->out[4].exact = true;
}

bool pack_kvakk_record(tape *t, const kernel *k, slice keys, slice v, slice a, slice kk,
                       slice packed, uint32_t tokens, uint32_t dim, err *e) {
    size_t n = size_multiply(tokens, dim);
    const operand operands[] = {{"k", keys, n, ACCESS_READ},
                                {"v", v, n, ACCESS_READ},
                                {"a", a, n, ACCESS_READ},
                                {"kk", kk, n, ACCESS_READ},
                                {"packed", packed, size_multiply(4, n), ACCESS_WRITE}};
    if (4 * n > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: 4 times %zu values overflow a 32-bit index", k->name,
                       n);
    launch *l = record_floats(t, k, sizeof(float), operands, COUNT_OF(operands), e);
    if (!l)
        return false;
    launch_set_u32(l, 5, (uint32_t)n);
    launch_set_threads_rounded(l, (uint32_t)n, k->group);
    l->oracle = pack_kvakk_oracle;
    return true;
}

static void channel_mix_v7_oracle(const launch *l, oracle_io *io) {
    (void)l;
    size_t tokens = oracle_u32(io, 3), dim = oracle_u32(io, 4);
    const float *v = io->in[1], *x = io->in[2];
    for (size_t i = 0; i < dim; i++)
        io->out[0].value[i] = (double)x[(tokens - 1) * dim + i];
    for (size_t i = 0; i < tokens * dim; i++)
        io->out[2].value[i] = (double)v[i];
    io->out[0].exact = io->out[2].exact = true;
}

bool channel_mix_v7_record(tape *t, const kernel *k, slice state, slice v, slice x, uint32_t tokens,
                           uint32_t dim, err *e) {
    size_t n = size_multiply(tokens, dim);
    const operand operands[] = {
        {"state", state, dim, ACCESS_WRITE}, {"v", v, n, ACCESS_READ}, {"x", x, n, ACCESS_BOTH}};
    if (n > UINT32_MAX - k->group)
        return err_set(e, EXIT_CANNOT, "%s: %zu values overflow a 32-bit index", k->name, n);
    launch *l = record_floats(t, k, sizeof(float), operands, COUNT_OF(operands), e);
    if (!l)
        return false;
    launch_set_u32(l, 3, tokens);
    launch_set_u32(l, 4, dim);
    launch_set_threads_rounded(l, (uint32_t)n, k->group);
    l->oracle = channel_mix_v7_oracle;
    return true;
}

/* Inputs have one float more than is copied: copying past the end, from guard zone to guard zone,
 * would go unseen. */
static bool pack_kvakk_build(kernel_case *c, err *e) {
    uint32_t tokens = c->shape.dim[0], dim = c->shape.dim[1];
    size_t n = size_multiply(tokens, dim);
    slice keys, v, a, kk, packed;
    return case_input_f32(c, "k", n + 1, &keys, e) && case_input_f32(c, "v", n + 1, &v, e) &&
           case_input_f32(c, "a", n + 1, &a, e) && case_input_f32(c, "kk", n + 1, &kk, e) &&
           case_output(c, "packed", 4 * n * sizeof(float), &packed, e) &&
           pack_kvakk_record(c->tape, c->kernel, keys, v, a, kk, packed, tokens, dim, e);
}

static bool channel_mix_v7_build(kernel_case *c, err *e) {
    uint32_t tokens = c->shape.dim[0], dim = c->shape.dim[1];
    size_t n = size_multiply(tokens, dim);
    slice state, v, x;
    return case_output(c, "state", dim * sizeof(float), &state, e) &&
           case_input_f32(c, "v", n + 1, &v, e) && case_input_f32(c, "x", n + 1, &x, e) &&
           channel_mix_v7_record(c->tape, c->kernel, state, v, x, tokens, dim, e);
}

static const shape shapes[] = {
    {{1, 1}}, {{1, 31}}, {{1, 256}}, {{1, 257}}, {{2, 33}}, {{1, 768}}, {{7, 768}}, {{64, 128}},
};

#define OP(name_, about_)                                                                          \
    static const kernel name_##_kernel = {.name = #name_,                                          \
                                          .about = "one thread per value",                         \
                                          .file = "pack_kvakk.metal",                              \
                                          .group = 256};                                           \
    const op name_##_op = {                                                                        \
        .name = #name_,                                                                            \
        .about = about_,                                                                           \
        .dims = "tokens x dim",                                                                    \
        .kernels = &name_##_kernel,                                                                \
        .kernel_count = 1,                                                                         \
        .shapes = {shapes, COUNT_OF(shapes), {{3, 13}}},                                           \
        .build = name_##_build,                                                                    \
    }
OP(pack_kvakk, "k, v, a and kk in one buffer");
OP(channel_mix_v7, "state = last row of x, then x = v");
