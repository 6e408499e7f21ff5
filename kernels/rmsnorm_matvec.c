/* rmsnorm_matvec: launches, oracle and cases of the fusions of a norm with a projection.
 *
 * megakernel_rmsnorm_matvec takes its scalars in a different order, and has a limit: the normalised
 * x must fit threadgroup memory. */
#include "kernels.h"

#include <stdlib.h>

#include "normed.h"
#include "record.h"

enum {
    MEGAKERNEL = 1,            /* its place among the kernels */
    THREADGROUP_BYTES = 32768, /* available on every Metal device */
    PARTIAL_BYTES = 32,        /* of which the kernel uses these for partial sums */
    MAX_HIDDEN = (THREADGROUP_BYTES - PARTIAL_BYTES) / 4,
};

static void expect(const weight_format *f, oracle_io *io, uint32_t out_dim, uint32_t in_dim,
                   float eps) {
    expected *out = &io->out[3];
    double *x = normed_new(io->in[0], io->in[1], in_dim, eps);
    normed_multiply(f, io->in[2], x, out_dim, in_dim, out->value, out->scale);
    free(x);
    out->terms = NORMED_TERMS(in_dim);
    out->roundings = NORMED_ROUNDINGS;
}

static void rmsnorm_matvec_oracle(const launch *l, oracle_io *io) {
    expect(l->kernel->format, io, oracle_u32(io, 4), oracle_u32(io, 5), oracle_f32(io, 6));
}

static void megakernel_oracle(const launch *l, oracle_io *io) {
    expect(l->kernel->format, io, oracle_u32(io, 6), oracle_u32(io, 4), oracle_f32(io, 5));
}

/* Geometry: k->rows rows per threadgroup of k->group threads. */
bool rmsnorm_matvec_record(tape *t, const kernel *k, slice x, slice norm_w, slice w, slice y,
                           uint32_t out_dim, uint32_t in_dim, float eps, err *e) {
    bool is_f32 = k->format == &format_f32; /* and read float by float */
    bool is_mega = k == &rmsnorm_matvec_op.kernels[MEGAKERNEL];
    size_t alignment = is_f32 ? sizeof(float) : 16;
    if (!RECORD_TAKES(&rmsnorm_matvec_op, k, e, out_dim, in_dim))
        return false;
    launch_arg args[] = {ARG_BUFFER("x", x, in_dim, ACCESS_READ, ELEM_F32, alignment),
                         ARG_BUFFER("norm_w", norm_w, in_dim, ACCESS_READ, ELEM_F32, alignment),
                         ARG_WEIGHTS("w", w, k->format, out_dim, in_dim, is_f32 ? 4 : 2),
                         ARG_OUT("y", y, out_dim),
                         ARG_U32(is_mega ? in_dim : out_dim),
                         ARG_U32(in_dim),
                         ARG_F32(eps)};
    if (is_mega) {
        args[5] = (launch_arg)ARG_F32(eps);
        args[6] = (launch_arg)ARG_U32(out_dim);
    }
    const launch_work work = {.groups = record_tiles(k, out_dim, 1),
                              .threadgroup_bytes = is_mega ? (uint32_t)(in_dim * sizeof(float)) : 0,
                              .flops = 2 * (uint64_t)out_dim * in_dim + 4 * (uint64_t)in_dim + 3,
                              .oracle = is_mega ? megakernel_oracle : rmsnorm_matvec_oracle};
    return record_args(t, k, args, COUNT_OF(args), &work, e);
}

static bool rmsnorm_matvec_build(kernel_case *c, err *e) {
    uint32_t out_dim = c->shape.dim[0], in_dim = c->shape.dim[1];
    slice x, norm_w, w, y;
    return case_input_f32(c, "x", in_dim, &x, e) &&
           case_input_f32(c, "norm_w", in_dim, &norm_w, e) &&
           case_input_weights(c, "w", c->kernel->format, out_dim, in_dim, &w, e) &&
           case_output(c, "y", out_dim * sizeof(float), &y, e) &&
           rmsnorm_matvec_record(c->tape, c->kernel, x, norm_w, w, y, out_dim, in_dim, 1e-5f, e);
}

/* 8160 is the largest hidden of whole blocks that the megakernel takes. */
static const shape q4_0_shapes[] = {
    {{1, 32}},   {{2, 64}},    {{7, 96}},    {{8, 992}},    {{9, 1024}},   {{15, 1056}},
    {{3, 8160}}, {{192, 576}}, {{576, 576}}, {{1536, 576}}, {{576, 1536}},
};
static const shape f32_shapes[] = {
    {{1, 1}}, {{2, 31}}, {{7, 32}}, {{8, 33}}, {{9, 100}}, {{3, 8191}}, {{192, 576}}, {{64, 1536}},
};
static const shape_list f32_list = {f32_shapes, COUNT_OF(f32_shapes), {{7, 77}}};

static const kernel kernels[] = {
    OP_KERNEL("rmsnorm_matvec_q4_0", "plain", "one simdgroup per row, each computes the norm",
              "rmsnorm_matvec.metal", .format = &format_q4_0, .group = 32, .rows = 1),
    [MEGAKERNEL] =
        OP_KERNEL("megakernel_rmsnorm_matvec", "megakernel",
                  "the norm once for 8 rows, in threadgroup memory", "rmsnorm_matvec.metal",
                  .format = &format_q4_0, .group = 256, .rows = 8, .most = MAX_HIDDEN),
    OP_KERNEL("rmsnorm_matvec_q4_0_onepass", "onepass",
              "4 rows per simdgroup, the norm in the same pass", "rmsnorm_matvec.metal",
              .format = &format_q4_0, .group = 128, .rows = 16),
    OP_KERNEL("rmsnorm_matvec_f32", "plain", "one simdgroup per row, each computes the norm",
              "rmsnorm_matvec.metal", .format = &format_f32, .group = 32, .rows = 1,
              .shapes = &f32_list),
};

OP(rmsnorm_matvec, "y = W rmsnorm(x)", "out x in", kernels, SHAPE_LIST(q4_0_shapes, 7, 96),
   .inner = "in", .sizes = "out in", .build = rmsnorm_matvec_build);
