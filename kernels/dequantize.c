/* dequantize: launches, oracle and cases of decoding blocks to floats, for formats of blocks of 32.
 */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/quant.h"
#include "reference/reference.h"

static void dequantize_oracle(const launch *l, oracle_io *io) {
    expected *out = &io->out[1];
    reference_decode_row(l->kernel->format, io->in[0], 0, out->count, out->value);
    out->terms = out->roundings = 0; /* an f32 holds the product */
}

static bool dequantize_record(tape *t, const kernel *k, slice blocks, slice floats, uint32_t count,
                              err *e) {
    const weight_format *f = k->format;
    size_t bytes = size_multiply(count, f->bytes);
    size_t out_bytes = size_multiply(count, f->values * sizeof(float));
    if (!record_trim(k, "blocks", bytes, 2, &blocks, e) ||
        !record_trim(k, "floats", out_bytes, 16, &floats, e))
        return false;
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    launch_bind(l, 0, blocks, ACCESS_READ, ELEM_U8);
    launch_bind(l, 1, floats, ACCESS_WRITE, ELEM_F32);
    launch_set_threads(l, (size3){count, 1, 1}, (size3){k->group, 1, 1});
    l->bytes = bytes + out_bytes;
    l->flops = f->values * (uint64_t)count;
    l->oracle = dequantize_oracle;
    return true;
}

static bool dequantize_build(kernel_case *c, err *e) {
    const weight_format *f = c->kernel->format;
    uint32_t count = c->shape.dim[0];
    slice blocks, floats;
    return case_input_weights(c, "blocks", f, count, (uint32_t)f->values, &blocks, e) &&
           case_output(c, "floats", size_multiply(count, f->values * sizeof(float)), &floats, e) &&
           dequantize_record(c->tape, c->kernel, blocks, floats, count, e);
}

static const shape shapes[] = {
    {{1}}, {{31}}, {{32}}, {{33}}, {{255}}, {{256}}, {{257}}, {{10007}},
};

#define KERNEL(type)                                                                               \
    OP_KERNEL("dequantize_" #type, NULL, "one thread per block", "dequantize.metal",               \
              .format = &format_##type, .group = 256)
static const kernel kernels[] = {KERNEL(q4_0), KERNEL(q8_0)};

OP(dequantize, "decode blocks to floats", "blocks", kernels, SHAPE_LIST(shapes, 77),
   .sizes = "blocks", .build = dequantize_build);
