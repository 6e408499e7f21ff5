/* concat_buffers: launches, oracles and cases of out = a, then b (then c), of pack_kvakk, which has four
 * parts of the same length, and of channel_mix_v7, which copies as well. Buffers are the parts in order and
 * out; their lengths follow, or the one of all of them. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

enum { MOST_PARTS = 4, PACKED = 4 };
static const char *const names[MOST_PARTS] = {"a", "b", "c"}, *const packed_names[MOST_PARTS] = {
                                                                  "k", "v", "a", "kk"};

#define CONCAT(name)                                                                               \
    OP_KERNEL(name, NULL, "one thread per float", "concat_buffers.metal", .group = 256)
#define COPY(name) OP_KERNEL(name, NULL, "one thread per value", "pack_kvakk.metal", .group = 256)
static const kernel kernels_2[] = {CONCAT("concat_buffers_2")},
                    kernels_3[] = {CONCAT("concat_buffers_3")},
                    pack_kernels[] = {COPY("pack_kvakk")}, mix_kernels[] = {COPY("channel_mix_v7")};

static int count_parts(const kernel *k) {
    return k == kernels_2 ? 2 : k == kernels_3 ? 3 : PACKED;
}

static void oracle(const launch *l, oracle_io *io) {
    int parts = count_parts(l->kernel);
    expected *out = &io->out[parts];
    size_t at = 0;
    for (int i = 0; i < parts; i++) {
        uint32_t dim = oracle_u32(io, parts + 1 + (parts == PACKED ? 0 : i));
        reference_buffer_copy(io->in[i], dim, out->value + at);
        at += dim;
    }
    out->exact = true;
}

static bool record(tape *t, const kernel *k, const slice *in, slice out, const uint32_t *dims,
                   err *e) {
    int parts = count_parts(k);
    bool is_packed = parts == PACKED;
    launch_arg args[2 * MOST_PARTS + 1];
    size_t count = 0;
    for (int i = 0; i < parts; i++) {
        args[i] = (launch_arg)ARG_IN((is_packed ? packed_names : names)[i], in[i], dims[i]);
        args[parts + 1 + i] = (launch_arg)ARG_U32(dims[i]);
        count += dims[i];
    }
    args[parts] = (launch_arg)ARG_OUT(is_packed ? "packed" : "out", out, count);
    if (count > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: %zu floats overflow a 32-bit index", k->name, count);
    const launch_work w = {.threads = is_packed ? dims[0] : (uint32_t)count, .oracle = oracle};
    return record_args(t, k, args, (size_t)parts + 1 + (is_packed ? 1 : (size_t)parts), &w, e);
}

bool pack_kvakk_record(tape *t, const kernel *k, slice keys, slice v, slice a, slice kk,
                       slice packed, uint32_t tokens, uint32_t dim, err *e) {
    size_t n = size_multiply(tokens, dim);
    uint32_t each = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n; /* four of which are too many */
    return record(t, k, (slice[]){keys, v, a, kk}, packed, (uint32_t[]){each, each, each, each}, e);
}

/* Each input has one float more than is used: it must not show up. */
static bool build(kernel_case *c, err *e) {
    int parts = count_parts(c->kernel);
    bool is_packed = parts == PACKED;
    const uint32_t *d = c->shape.dim, n = d[0] * d[1], all[] = {n, n, n, n},
                   *dims = is_packed ? all : d;
    size_t count = 0;
    slice in[MOST_PARTS], out;
    for (int i = 0; i < parts; i++) {
        if (!case_input_f32(c, (is_packed ? packed_names : names)[i], (size_t)dims[i] + 1, &in[i],
                            e))
            return false;
        count += dims[i];
    }
    return case_output(c, is_packed ? "packed" : "out", size_multiply(count, sizeof(float)), &out,
                       e) &&
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
   .sizes = "a b", .build = build, .copies = true);
OP(concat_buffers_3, "out = a, then b, then c", "a x b x c", kernels_3,
   SHAPE_LIST(shapes_3, 40, 33, 5), .sizes = "a b c", .build = build, .copies = true);

/* channel_mix_v7 ------------------------------------------------------------------------------- */

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

/* v and x have one float more than is copied: copying past the end, from guard zone to guard zone, would go
 * unseen. */
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

OP(pack_kvakk, "k, v, a and kk in one buffer", "tokens x dim", pack_kernels,
   SHAPE_LIST(shapes, 3, 13), .sizes = "tokens dim", .build = build);
OP(channel_mix_v7, "state = last row of x, then x = v", "tokens x dim", mix_kernels,
   SHAPE_LIST(shapes, 3, 13), .sizes = "tokens dim", .build = channel_mix_v7_build);
