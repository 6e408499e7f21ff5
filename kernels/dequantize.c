/* dequantize: launches, oracle and cases of blocks as floats.
 *
 * Each format has an op dequantize_<format>, with a .metal file of that name. The one surprise: the
 * format is found from the kernel's name. */
#include "kernels.h"

#include <assert.h>

#include "harness/base/os.h"
#include "record.h"
#include "reference/quant.h"
#include "reference/reference.h"

typedef struct {
    const op *op;
    const weight_format *format;
    const char *file;
} decoder;

static const decoder decoders[] = {
    {&dequantize_q4_0_op, &format_q4_0, "dequantize_q4_0.metal"},
    {&dequantize_q8_0_op, &format_q8_0, "dequantize_q8_0.metal"},
};

static const decoder *find_decoder(const char *name) {
    for (size_t i = 0; i < COUNT_OF(decoders); i++)
        if (op_find_kernel(decoders[i].op, name))
            return &decoders[i];
    return NULL;
}

static void dequantize_oracle(const launch *l, oracle_io *io) {
    expected *out = &io->out[1];
    reference_decode_row(find_decoder(l->pipeline->kernel)->format, io->in[0], 0, out->count,
                         out->value);
    out->terms = out->roundings = 0; /* an f32 holds the product */
}

bool dequantize_record(tape *t, const kernel *k, slice blocks, slice floats, uint32_t count,
                       err *e) {
    const decoder *d = find_decoder(k->name);
    assert(d);
    size_t bytes = os_multiply(count, d->format->bytes);
    size_t out_bytes = os_multiply(count, d->format->values * sizeof(float));
    if (!record_trim(k, "blocks", bytes, 2, &blocks, e) ||
        !record_trim(k, "floats", out_bytes, 16, &floats, e))
        return false;
    launch *l = tape_add(t, d->file, k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, blocks, ACCESS_READ, ELEM_U8);
    launch_bind(l, 1, floats, ACCESS_WRITE, ELEM_F32);
    launch_set_threads(l, (size3){count, 1, 1}, (size3){k->group, 1, 1});
    l->bytes = bytes + out_bytes;
    l->flops = d->format->values * (uint64_t)count;
    l->oracle = dequantize_oracle;
    return true;
}

static bool dequantize_build(kernel_case *c, err *e) {
    const weight_format *f = find_decoder(c->kernel->name)->format;
    uint32_t count = c->shape.dim[0];
    slice blocks, floats;
    return case_input_weights(c, "blocks", f, count, (uint32_t)f->values, &blocks, e) &&
           case_output(c, "floats", os_multiply(count, f->values * sizeof(float)), &floats, e) &&
           dequantize_record(c->tape, c->kernel, blocks, floats, count, e);
}

static const shape shapes[] = {
    {{1}}, {{31}}, {{32}}, {{33}}, {{255}}, {{256}}, {{257}}, {{10007}},
};

#define OP(name_, about_)                                                                          \
    static const kernel name_##_rows[] = {{#name_, "a thread a block", .group = 256}};         \
    const op name_##_op = {                                                                        \
        .name = #name_,                                                                            \
        .about = about_,                                                                           \
        .dims = "blocks",                                                                          \
        .kernels = name_##_rows,                                                                   \
        .kernel_count = COUNT_OF(name_##_rows),                                                    \
        .shapes = shapes,                                                                          \
        .shape_count = COUNT_OF(shapes),                                                           \
        .any_input = {{77}},                                                                       \
        .build = dequantize_build,                                                                 \
    }

OP(dequantize_q4_0, "Q4_0 blocks as floats");
OP(dequantize_q8_0, "Q8_0 blocks as floats");
