/* blit: launches, oracle and cases of strided copies, with and without conversion. */
#include "kernels.h"

#include <assert.h>
#include <stdlib.h>

#include "harness/base/size.h"
#include "record.h"

#define KERNEL(name_, variant_)                                                                    \
    {                                                                                              \
        .name = name_, .variant = variant_, .about = "one thread per value", .file = "blit.metal", \
        .group = 256                                                                               \
    }
static const kernel kernels[] = {
    KERNEL("blit_f32", "f32"),
    KERNEL("blit_f16", "f16"),
    KERNEL("blit_f32_f16", "f32 to f16"),
    KERNEL("blit_f16_f32", "f16 to f32"),
};
static const struct {
    elem from, to;
} types[] = {
    {ELEM_F32, ELEM_F32}, {ELEM_F16, ELEM_F16}, {ELEM_F32, ELEM_F16}, {ELEM_F16, ELEM_F32}};

/* Only a float that becomes a half is rounded: once, by the store. */
static void blit_oracle(const launch *l, oracle_io *io) {
    elem from = types[l->kernel - kernels].from, to = types[l->kernel - kernels].to;
    uint32_t rows = oracle_u32(io, 2), columns = oracle_u32(io, 3);
    size_t src_stride = oracle_u32(io, 4), dst_stride = oracle_u32(io, 5);
    expected *out = &io->out[1];
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            out->value[r * dst_stride + c] = elem_read(from, io->in[0], r * src_stride + c);
    out->terms = out->roundings = 0;
    out->exact = from == to || to == ELEM_F32;
}

/* Bytes from the first value to the last. */
static size_t get_span(const blit_shape *s, uint32_t stride, elem type) {
    return (size_multiply(s->rows - 1, stride) + s->columns) * elem_get_bytes(type);
}

bool blit_record(tape *t, const kernel *k, slice src, slice dst, const blit_shape *s, err *e) {
    elem from = types[k - kernels].from, to = types[k - kernels].to;
    size_t count = size_multiply(s->rows, s->columns);
    if (count == 0 || count > UINT32_MAX - k->group || s->src_stride < s->columns ||
        s->dst_stride < s->columns)
        return err_set(e, EXIT_CANNOT,
                       "%s: cannot copy %u rows of %u with strides of %u and %u; rows must not "
                       "overlap",
                       k->name, s->rows, s->columns, s->src_stride, s->dst_stride);
    if (!record_trim(k, "src", get_span(s, s->src_stride, from), elem_get_bytes(from), &src, e) ||
        !record_trim(k, "dst", get_span(s, s->dst_stride, to), elem_get_bytes(to), &dst, e))
        return false;
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    bool has_gaps = s->rows > 1 && s->dst_stride > s->columns; /* what lies in them must survive */
    launch_bind(l, 0, src, ACCESS_READ, from);
    launch_bind(l, 1, dst, has_gaps ? ACCESS_BOTH : ACCESS_WRITE, to);
    launch_set_u32(l, 2, s->rows);
    launch_set_u32(l, 3, s->columns);
    launch_set_u32(l, 4, s->src_stride);
    launch_set_u32(l, 5, s->dst_stride);
    launch_set_threads_rounded(l, (uint32_t)count, k->group);
    l->bytes = count * (elem_get_bytes(from) + elem_get_bytes(to));
    l->oracle = blit_oracle;
    return true;
}

static bool make_input(kernel_case *c, const char *label, elem type, size_t count, slice *out,
                       err *e) {
    if (type == ELEM_F32)
        return case_input_f32(c, label, count, out, e);
    float *values = malloc(size_multiply(count, sizeof *values));
    uint16_t *halves = malloc(size_multiply(count, sizeof *halves));
    assert(values && halves);
    fill_f32(&c->random, c->inputs, values, count);
    for (size_t i = 0; i < count; i++)
        halves[i] = half_from_float(values[i]);
    bool ok = case_input_bytes(c, label, halves, count * sizeof *halves, out, e);
    free(values);
    free(halves);
    return ok;
}

static bool blit_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    elem from = types[c->kernel - kernels].from, to = types[c->kernel - kernels].to;
    const blit_shape s = {dim[0], dim[1], dim[1] + dim[2], dim[1] + dim[3]};
    slice src, dst;
    return make_input(c, "src", from, size_multiply(s.rows, s.src_stride) + 1, &src, e) &&
           make_input(c, "dst", to, size_multiply(s.rows, s.dst_stride) + 1, &dst, e) &&
           blit_record(c->tape, c->kernel, src, dst, &s, e);
}

/* The last two are how much longer the strides are than a row. */
static const shape shapes[] = {
    {{1, 1}},         {{1, 31}},         {{1, 257}},         {{1, 768}},
    {{3, 1, 2, 5}},   {{2, 33, 0, 1}},   {{7, 64, 64, 0}},   {{5, 255, 1, 1}},
    {{64, 768, 768}}, {{33, 96, 3, 77}}, {{301, 999, 1, 1}},
};

const op blit_op = {
    .name = "blit",
    .about = "rows copied with strides, from f32 or f16 to f32 or f16",
    .dims = "rows x columns x src_gap x dst_gap",
    .kernels = kernels,
    .kernel_count = COUNT_OF(kernels),
    .shapes = {shapes, COUNT_OF(shapes), {{7, 11, 2, 3}}},
    .build = blit_build,
};
