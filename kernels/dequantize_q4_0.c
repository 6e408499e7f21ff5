/* dequantize_q4_0: launches, oracle and cases. */
#include "kernels.h"

#include "harness/os.h"
#include "record.h"
#include "reference/quant.h"
#include "reference/reference.h"

static void dequantize_q4_0_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[1];
    reference_decode_row(&format_q4_0, io->in[0], 0, out->count, out->value);
    out->terms = out->roundings = 0; /* an f32 holds the product */
}

bool dequantize_q4_0_record(tape *t, const kernel_row *k, slice blocks, slice floats,
                            uint32_t count, err *e) {
    size_t bytes = os_multiply(count, sizeof(block_q4_0));
    size_t out_bytes = os_multiply(count, Q4_0_VALUES * sizeof(float));
    if (!record_trim(k, "blocks", bytes, 2, &blocks, e) ||
        !record_trim(k, "floats", out_bytes, 16, &floats, e))
        return false;
    launch *l = tape_add(t, "dequantize_q4_0.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, blocks, ACCESS_READ, ELEM_U8);
    launch_bind(l, 1, floats, ACCESS_WRITE, ELEM_F32);
    launch_set_threads(l, (size3){count, 1, 1}, (size3){k->group, 1, 1});
    l->bytes = bytes + out_bytes;
    l->flops = Q4_0_VALUES * (uint64_t)count;
    l->oracle = dequantize_q4_0_oracle;
    return true;
}

static bool dequantize_q4_0_build(kernel_case *c, err *e) {
    uint32_t count = c->shape.dim[0];
    slice blocks, floats;
    return case_input_weights(c, "blocks", &format_q4_0, count, Q4_0_VALUES, &blocks, e) &&
           case_output(c, "floats", os_multiply(count, Q4_0_VALUES * sizeof(float)), &floats, e) &&
           dequantize_q4_0_record(c->tape, c->kernel, blocks, floats, count, e);
}

static const shape shapes[] = {
    {{1}}, {{31}}, {{32}}, {{33}}, {{255}}, {{256}}, {{257}}, {{10007}},
};

static const kernel_row rows[] = {
    {.name = "dequantize_q4_0", .about = "a thread a block", .group = 256},
};

const op dequantize_q4_0_op = {
    .name = "dequantize_q4_0",
    .about = "Q4_0 blocks as floats",
    .dims = "blocks",
    .kernels = rows,
    .kernel_count = COUNT_OF(rows),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{77}},
    .build = dequantize_q4_0_build,
};
