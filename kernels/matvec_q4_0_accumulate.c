/* matvec_q4_0_accumulate: launches, oracle and cases. */
#include "kernels.h"

#include <math.h>

#include "harness/os.h"
#include "record.h"
#include "reference/reference.h"

static void matvec_q4_0_accumulate_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[2];
    uint32_t out_dim = oracle_u32(io, 3), in_dim = oracle_u32(io, 4);
    for (size_t i = 0; i < out_dim; i++)
        out->scale[i] = fabs(out->value[i]); /* the value starts as y before the launch */
    reference_matvec_q4_0(io->in[0], io->in[1], out_dim, in_dim, out->value, out->scale);
    out->terms = in_dim + 1.0;
}

/* Geometry: k->rows rows a threadgroup of k->group threads. */
bool matvec_q4_0_accumulate_record(tape *t, const kernel_row *k, slice w, slice x, slice y,
                                   uint32_t out_dim, uint32_t in_dim, err *e) {
    size_t x_bytes = os_multiply(in_dim, sizeof(float)),
           y_bytes = os_multiply(out_dim, sizeof(float));
    if (!record_check_q4_0(k, w, out_dim, in_dim, e) || !record_trim(k, "x", x_bytes, 16, &x, e) ||
        !record_trim(k, "y", y_bytes, sizeof(float), &y, e))
        return false;
    launch *l = tape_add(t, "matvec_q4_0_accumulate.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, w, ACCESS_READ, ELEM_U8);
    launch_bind(l, 1, x, ACCESS_READ, ELEM_F32);
    launch_bind(l, 2, y, ACCESS_BOTH, ELEM_F32);
    launch_set_u32(l, 3, out_dim);
    launch_set_u32(l, 4, in_dim);
    launch_set_groups(l, (size3){divide_up(out_dim, k->rows), 1, 1}, (size3){k->group, 1, 1});
    l->bytes = w.bytes + x_bytes + 2 * y_bytes;
    l->flops = 2 * (uint64_t)out_dim * in_dim + out_dim;
    l->oracle = matvec_q4_0_accumulate_oracle;
    return true;
}

static bool matvec_q4_0_accumulate_build(kernel_case *c, err *e) {
    uint32_t out_dim = c->shape.dim[0], in_dim = c->shape.dim[1];
    slice w, x, y;
    return case_input_q4_0(c, "w", out_dim, in_dim, &w, e) &&
           case_input_f32(c, "x", in_dim, &x, e) && case_input_f32(c, "y", out_dim, &y, e) &&
           matvec_q4_0_accumulate_record(c->tape, c->kernel, w, x, y, out_dim, in_dim, e);
}

/* As for matvec_q4_0, without the shape of a head: nothing is added to logits. */
static const shape shapes[] = {
    {{1, 32}},    {{2, 32}},    {{3, 64}},     {{5, 480}},    {{7, 512}},     {{8, 544}},
    {{9, 992}},   {{15, 1024}}, {{16, 1056}},  {{17, 32}},    {{33, 96}},     {{1, 11008}},
    {{192, 576}}, {{576, 576}}, {{1536, 576}}, {{576, 1536}}, {{4096, 4096}},
};

static const kernel_row rungs[] = {
    {.name = "matvec_q4_0_accumulate", .about = "a simdgroup a row", .group = 256, .rows = 8},
    {.name = "matvec_q4_0_accumulate_rowblock",
     .about = "4 rows a simdgroup at once, x in registers",
     .group = 128,
     .rows = 16},
};

const op matvec_q4_0_accumulate_op = {
    .name = "matvec_q4_0_accumulate",
    .about = "y += W x, W in Q4_0",
    .dims = "out x in",
    .kernels = rungs,
    .kernel_count = COUNT_OF(rungs),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{7, 96}},
    .build = matvec_q4_0_accumulate_build,
};
