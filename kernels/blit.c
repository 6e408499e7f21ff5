/* blit: launches, oracle and cases of strided copies, with and without conversion. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"

#define KERNEL(name, variant)                                                                      \
    OP_KERNEL(name, variant, "one thread per value", "blit.metal", .group = 256)
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

/* From the first value to the last. */
static size_t get_span(const blit_shape *s, uint32_t stride) {
    return size_multiply(s->rows - 1, stride) + s->columns;
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
    bool has_gaps = s->rows > 1 && s->dst_stride > s->columns; /* what lies in them must survive */
    size_t from_bytes = elem_get_bytes(from), to_bytes = elem_get_bytes(to);
    size_t src_count = get_span(s, s->src_stride), dst_count = get_span(s, s->dst_stride);
    const launch_work w = {.threads = (uint32_t)count,
                           .unmoved = (src_count - count) * from_bytes +
                                      ((has_gaps ? 2 : 1) * dst_count - count) * to_bytes,
                           .oracle = blit_oracle};
    return RECORD_ARGS(
        t, k, &w, e, ARG_BUFFER("src", src, src_count, ACCESS_READ, from, from_bytes),
        ARG_BUFFER("dst", dst, dst_count, has_gaps ? ACCESS_BOTH : ACCESS_WRITE, to, to_bytes),
        ARG_U32(s->rows), ARG_U32(s->columns), ARG_U32(s->src_stride), ARG_U32(s->dst_stride));
}

static bool blit_build(kernel_case *c, err *e) {
    const uint32_t *dim = c->shape.dim;
    elem from = types[c->kernel - kernels].from, to = types[c->kernel - kernels].to;
    const blit_shape s = {dim[0], dim[1], dim[1] + dim[2], dim[1] + dim[3]};
    slice src, dst;
    return case_input_elem(c, "src", from, size_multiply(s.rows, s.src_stride) + 1, &src, e) &&
           case_input_elem(c, "dst", to, size_multiply(s.rows, s.dst_stride) + 1, &dst, e) &&
           blit_record(c->tape, c->kernel, src, dst, &s, e);
}

/* The last two are how much longer the strides are than a row. */
static const shape shapes[] = {
    {{1, 1}},         {{1, 31}},         {{1, 257}},         {{1, 768}},
    {{3, 1, 2, 5}},   {{2, 33, 0, 1}},   {{7, 64, 64, 0}},   {{5, 255, 1, 1}},
    {{64, 768, 768}}, {{33, 96, 3, 77}}, {{301, 999, 1, 1}},
};

OP(blit, "rows copied with strides, from f32 or f16 to f32 or f16",
   "rows x columns x src_gap x dst_gap", kernels, SHAPE_LIST(shapes, 7, 11, 2, 3),
   .sizes = "rows columns src_gap dst_gap", .build = blit_build);
