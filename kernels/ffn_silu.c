/* ffn_silu: launches, oracle and cases. */
#include "kernels.h"

#include "harness/base/os.h"
#include "record.h"
#include "reference/reference.h"

static void ffn_silu_oracle(const launch *l, oracle_io *io) {
    (void)l;
    expected *out = &io->out[2];
    reference_ffn_silu(io->in[0], io->in[1], out->count, out->value, out->scale);
    out->roundings = 12; /* exp to 4 ULP and division to 2 count double, then + and * */
}

bool ffn_silu_record(tape *t, const kernel *k, slice gate, slice up, slice out, uint32_t n,
                     err *e) {
    size_t bytes = os_multiply(n, sizeof(float));
    if (!record_trim(k, "gate", bytes, sizeof(float), &gate, e) ||
        !record_trim(k, "up", bytes, sizeof(float), &up, e) ||
        !record_trim(k, "out", bytes, sizeof(float), &out, e))
        return false;
    launch *l = tape_add(t, "ffn_silu.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, gate, ACCESS_READ, ELEM_F32);
    launch_bind(l, 1, up, ACCESS_READ, ELEM_F32);
    launch_bind(l, 2, out, ACCESS_WRITE, ELEM_F32);
    launch_set_u32(l, 3, n);
    launch_set_threads_rounded(l, n, k->group);
    l->bytes = 3 * bytes;
    l->flops = 4 * (uint64_t)n; /* exp, add, divide, multiply */
    l->oracle = ffn_silu_oracle;
    return true;
}

static bool ffn_silu_build(kernel_case *c, err *e) {
    uint32_t n = c->shape.dim[0];
    slice gate, up, out;
    return case_input_f32(c, "gate", n, &gate, e) && case_input_f32(c, "up", n, &up, e) &&
           case_output(c, "out", n * sizeof(float), &out, e) &&
           ffn_silu_record(c->tape, c->kernel, gate, up, out, n, e);
}

static const shape shapes[] = {
    {{1}},   {{31}},  {{32}},   {{33}},    {{255}},    {{256}},
    {{257}}, {{576}}, {{1536}}, {{14336}}, {{500009}},
};

static const kernel rows[] = {
    {.name = "ffn_silu", .about = "a thread a float", .group = 256},
};

const op ffn_silu_op = {
    .name = "ffn_silu",
    .about = "out = silu(gate) * up",
    .dims = "n",
    .kernels = rows,
    .kernel_count = COUNT_OF(rows),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{77}},
    .build = ffn_silu_build,
};
