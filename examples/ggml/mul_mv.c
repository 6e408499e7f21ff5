/* The mul_mv kernels of ggml-metal.metal: dst = src0 * src1, a quantised matrix times float
 * vectors, against Assay's own oracle of matvec.
 *
 * Arguments travel in one struct, ggml_metal_kargs_mul_mv (ggml-metal-impl.h), and the number of
 * simdgroups and the broadcast factors are function constants from FC_MUL_MV on. kernel.rows is the
 * rows of a threadgroup: N_R0_* of each of its N_SG_* simdgroups, but of q8_0 all simdgroups share
 * the same N_R0_Q8_0 rows. */
#include <assay.h>

typedef struct {
    int32_t ne00, ne01, ne02;
    uint64_t nb00, nb01, nb02, nb03;
    int32_t ne10, ne11, ne12;
    uint64_t nb10, nb11, nb12, nb13;
    int32_t ne0, ne1, nr0;
    int16_t r2, r3;
} kargs_mul_mv;

enum { FC_MUL_MV = 600, ARGS = 0, SRC0 = 1, SRC1 = 2, DST = 3 };

static void mul_mv_oracle(const launch *l, oracle_io *io) {
    kargs_mul_mv args;
    memcpy(&args, io->in[ARGS], sizeof args);
    expected *out = &io->out[DST];
    for (size_t i = 0; i < out->count; i++)
        out->value[i] = out->scale[i] = 0; /* the oracle adds */
    reference_matvec(l->kernel->format, io->in[SRC0], io->in[SRC1], (size_t)args.ne01,
                     (size_t)args.ne00, (size_t)args.ne11, out->value, out->scale);
    /* Nibbles stay where they are in their word, and x is divided by up to 4096 instead: the
     * rounding of a denormal on the way is multiplied by that again. */
    for (size_t i = 0; i < out->count; i++)
        out->scale[i] = fmax(out->scale[i], 4096 * (double)FLT_MIN);
    out->terms = args.ne00;
    out->roundings = 16;
}

static kargs_mul_mv make_args(const weight_format *f, uint32_t rows, uint32_t columns,
                              uint32_t batch, uint32_t nr0) {
    uint64_t row = format_get_bytes(f, 1, columns), vector = (uint64_t)columns * sizeof(float);
    return (kargs_mul_mv){.ne00 = (int32_t)columns,
                          .ne01 = (int32_t)rows,
                          .ne02 = 1,
                          .nb00 = f->bytes,
                          .nb01 = row,
                          .nb02 = row * rows,
                          .nb03 = row * rows,
                          .ne10 = (int32_t)columns,
                          .ne11 = (int32_t)batch,
                          .ne12 = 1,
                          .nb10 = sizeof(float),
                          .nb11 = vector,
                          .nb12 = vector * batch,
                          .nb13 = vector * batch,
                          .ne0 = (int32_t)rows,
                          .ne1 = (int32_t)batch,
                          .nr0 = (int32_t)nr0,
                          .r2 = 1,
                          .r3 = 1};
}

static bool mul_mv_build(kernel_case *c, err *e) {
    const kernel *k = c->kernel;
    uint32_t rows = c->shape.dim[0], columns = c->shape.dim[1], batch = c->shape.dim[2];
    uint32_t simdgroups = k->group / 32;
    slice src0, src1, dst;
    if (!case_input_weights(c, "src0", k->format, rows, columns, &src0, e) ||
        !case_input_f32(c, "src1", size_multiply(batch, columns), &src1, e) ||
        !case_output(c, "dst", size_multiply(batch, rows) * sizeof(float), &dst, e))
        return false;
    const constant_value constants[] = {
        {FC_MUL_MV + 0, ELEM_I16, simdgroups}, /* nsg */
        {FC_MUL_MV + 1, ELEM_I16, 4},          /* nxpsg: of other kernels */
        {FC_MUL_MV + 2, ELEM_I16, 1},          /* ne12 */
        {FC_MUL_MV + 3, ELEM_I16, 1},          /* r2 */
        {FC_MUL_MV + 4, ELEM_I16, 1},          /* r3 */
    };
    launch *l = tape_add_specialised(c->tape, k->file, k->name, constants, COUNT_OF(constants), e);
    if (!l)
        return false;
    kargs_mul_mv args = make_args(k->format, rows, columns, batch, k->rows);
    l->kernel = k;
    launch_set_bytes(l, ARGS, &args, sizeof args);
    launch_bind(l, SRC0, src0, ACCESS_READ, ELEM_U8);
    launch_bind(l, SRC1, src1, ACCESS_READ, ELEM_F32);
    launch_bind(l, DST, dst, ACCESS_WRITE, ELEM_F32);
    l->may_overread = 1u << SRC0; /* the last simdgroup reads rows past the end and drops them */
    if (k->format->values == 32)  /* those of K-quants have no such parameter */
        l->threadgroup_bytes[0] = 32 * sizeof(float) * k->rows;
    launch_set_groups(l, (size3){divide_up(rows, k->rows), batch, 1}, (size3){32, simdgroups, 1});
    l->bytes = src0.bytes + src1.bytes + dst.bytes;
    l->flops = 2 * (uint64_t)rows * columns * batch;
    l->oracle = mul_mv_oracle;
    return true;
}

static const shape shapes[] = {
    {{1, 32, 1}},   {{2, 64, 1}},   {{7, 480, 1}},   {{8, 512, 2}},    {{9, 544, 1}},
    {{15, 256, 3}}, {{17, 512, 1}}, {{33, 2304, 1}}, {{576, 1536, 1}}, {{1536, 512, 1}},
};

#define KERNEL(msl_name, type, rows_of_group, simdgroups)                                          \
    {                                                                                              \
        .name = "kernel_mul_mv_" #msl_name "_f32", .file = "ggml-metal.metal",                     \
        .format = &format_##type, .rows = rows_of_group, .group = 32 * simdgroups                  \
    }

static const kernel kernels[] = {
    KERNEL(q4_0, q4_0, 4 * 2, 2), KERNEL(q4_1, q4_1, 4 * 2, 2), KERNEL(q5_0, q5_0, 4 * 2, 2),
    KERNEL(q5_1, q5_1, 4 * 2, 2), KERNEL(q8_0, q8_0, 2, 4),     KERNEL(q4_K, q4_k, 2 * 2, 2),
    KERNEL(q5_K, q5_k, 1 * 2, 2), KERNEL(q6_K, q6_k, 2 * 2, 2),
};

const op mul_mv_op = {
    .name = "mul_mv",
    .about = "dst = src0 * src1",
    .dims = "rows x columns x batch",
    .kernels = kernels,
    .kernel_count = COUNT_OF(kernels),
    .shapes = {shapes, COUNT_OF(shapes), {{5, 1024, 1}}},
    .inner = "columns",
    .build = mul_mv_build,
};
