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
    size_t n = size_multiply(tokens, dim), all = size_multiply(4, n);
    if (all > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: 4 times %zu values overflow a 32-bit index", k->name,
                       n);
    const launch_work w = {.threads = (uint32_t)n, .oracle = pack_kvakk_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_IN("k", keys, n), ARG_IN("v", v, n), ARG_IN("a", a, n),
                       ARG_IN("kk", kk, n), ARG_OUT("packed", packed, all), ARG_U32((uint32_t)n));
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
    if (n > UINT32_MAX - k->group)
        return err_set(e, EXIT_CANNOT, "%s: %zu values overflow a 32-bit index", k->name, n);
    const launch_work w = {.threads = (uint32_t)n, .oracle = channel_mix_v7_oracle};
    return RECORD_ARGS(t, k, &w, e, ARG_OUT("state", state, dim), ARG_IN("v", v, n),
                       ARG_BOTH("x", x, n), ARG_U32(tokens), ARG_U32(dim));
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

#define KERNEL(name) OP_KERNEL(name, NULL, "one thread per value", "pack_kvakk.metal", .group = 256)
static const kernel pack_kernels[] = {KERNEL("pack_kvakk")},
                    mix_kernels[] = {KERNEL("channel_mix_v7")};

OP(pack_kvakk, "k, v, a and kk in one buffer", "tokens x dim", pack_kernels,
   SHAPE_LIST(shapes, 3, 13), .sizes = "tokens dim", .build = pack_kvakk_build);
OP(channel_mix_v7, "state = last row of x, then x = v", "tokens x dim", mix_kernels,
   SHAPE_LIST(shapes, 3, 13), .sizes = "tokens dim", .build = channel_mix_v7_build);
