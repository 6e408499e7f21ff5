/* matvec_q4_0_batched: launches, oracle and cases.
 *
 * The third matrix may have no rows (gate and up are only two). Metal requires every buffer to be
 * bound, so its bindings are then other inputs, which the kernel does not touch. */
#include "kernels.h"

#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

enum { PRODUCTS = 3, IN_DIM = 3 };

static void matvec_q4_0_batched_oracle(const launch *l, oracle_io *io) {
    (void)l;
    const uint32_t *dims = io->in[7];
    for (int i = 0; i < PRODUCTS && dims[i] != 0; i++) {
        expected *out = &io->out[4 + i];
        for (size_t row = 0; row < dims[i]; row++)
            out->value[row] = out->scale[row] = 0;
        reference_matvec(&format_q4_0, io->in[i], io->in[3], dims[i], dims[IN_DIM], 1, out->value,
                         out->scale);
        out->terms = dims[IN_DIM];
    }
}

/* Geometry: k->rows of all rows per threadgroup of k->group threads. */
bool matvec_q4_0_batched_record(tape *t, const kernel *k, const slice w[3], slice x,
                                const slice y[3], const uint32_t rows[3], uint32_t in_dim, err *e) {
    size_t x_bytes = size_multiply(in_dim, sizeof(float));
    if (!RECORD_TAKES(&matvec_batched_op, k, e, rows[0], rows[1], rows[2], in_dim) ||
        !record_trim(k, "x", x_bytes, 16, &x, e))
        return false;
    slice weights[PRODUCTS] = {w[0], w[1], rows[2] ? w[2] : w[0]};
    slice outputs[PRODUCTS] = {y[0], y[1], rows[2] ? y[2] : x};
    size_t bytes = x_bytes;
    uint32_t all_rows = 0;
    for (int i = 0; i < PRODUCTS; i++) {
        static const char *const w_names[] = {"wa", "wb", "wc"}, *const y_names[] = {"ya", "yb",
                                                                                     "yc"};
        if (i == 2 && rows[2] == 0)
            break;
        size_t y_bytes = size_multiply(rows[i], sizeof(float));
        if (!record_trim(k, y_names[i], y_bytes, sizeof(float), &outputs[i], e) ||
            !record_check_weights(k, w_names[i], &format_q4_0, w[i], rows[i], in_dim, 2, e))
            return false;
        bytes += w[i].bytes + y_bytes;
        if (rows[i] > UINT32_MAX - k->rows - all_rows)
            return err_set(e, EXIT_CANNOT, "%s: more rows than 32 bits can count", k->name);
        all_rows += rows[i];
    }
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    for (int i = 0; i < PRODUCTS; i++) {
        launch_bind(l, i, weights[i], ACCESS_READ, ELEM_U8);
        launch_bind(l, 4 + i, outputs[i], rows[i] ? ACCESS_WRITE : ACCESS_READ, ELEM_F32);
    }
    launch_bind(l, 3, x, ACCESS_READ, ELEM_F32);
    launch_set_bytes(l, 7, (uint32_t[]){rows[0], rows[1], rows[2], in_dim}, 4 * sizeof(uint32_t));
    launch_set_groups(l, (size3){divide_up(all_rows, k->rows), 1, 1}, (size3){k->group, 1, 1});
    l->bytes = bytes;
    l->flops = 2 * (uint64_t)all_rows * in_dim;
    l->oracle = matvec_q4_0_batched_oracle;
    return true;
}

static bool matvec_q4_0_batched_build(kernel_case *c, err *e) {
    const uint32_t *rows = c->shape.dim, in_dim = c->shape.dim[IN_DIM];
    slice w[PRODUCTS] = {{0}}, x, y[PRODUCTS] = {{0}};
    for (int i = 0; i < PRODUCTS && rows[i] != 0; i++) {
        char w_name[] = {'w', (char)('a' + i), 0}, y_name[] = {'y', (char)('a' + i), 0};
        if (!case_input_weights(c, w_name, &format_q4_0, rows[i], in_dim, &w[i], e) ||
            !case_output(c, y_name, rows[i] * sizeof(float), &y[i], e))
            return false;
    }
    return case_input_f32(c, "x", in_dim, &x, e) &&
           matvec_q4_0_batched_record(c->tape, c->kernel, w, x, y, rows, in_dim, e);
}

/* Boundaries between matrices at every place in a threadgroup; the model's QKV, and gate with
 * up. */
static const shape shapes[] = {
    {{1, 1, 1, 32}},   {{1, 1, 0, 32}},   {{8, 8, 8, 64}},     {{7, 9, 1, 480}},
    {{3, 5, 0, 512}},  {{31, 1, 33, 96}}, {{2, 30, 65, 1056}}, {{576, 192, 192, 576}},
    {{9, 6, 17, 992}}, {{32, 32, 0, 32}}, {{5, 4, 100, 2080}}, {{1536, 1536, 0, 576}},
};

static const kernel kernels[] = {
    {.name = "matvec_q4_0_batched",
     .variant = "plain",
     .about = "one simdgroup per row",
     .file = "matvec_q4_0_batched.metal",
     .format = &format_q4_0,
     .group = 256,
     .rows = 8},
};

OP(matvec_batched, "three products with the same x", "a x b x c x in", kernels,
   SHAPE_LIST(shapes, 7, 3, 5, 96), .inner = "in", .sizes = "a b c in",
   .build = matvec_q4_0_batched_build);
