/* Products of one token by threads that work alone (kernels/product/per_thread.h), which some CPUs make in
 * integers: x whose largest value meets a weight of 0, so that what the others lose shows. */
#include <float.h>
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/check/fill.h"
#include "kernels/kernels.h"
#include "support.h"

SUITE_EXTERN(per_thread_suite);

enum { ROWS = 32, BLOCK = 32, MOST_BLOCKS = 4 };

static err e;

/* The first x is 1 and its weight 0. Of the others in its block, `zeros` are 0, the rest about `size`, as are
 * all of other blocks. */
typedef struct {
    size_t blocks, zeros;
    double size;
} input;

static void fill(const input *in, block_q4_0 *w, float *x) {
    rng r = rng_new(1, "alone");
    for (size_t i = 0; i < ROWS * in->blocks; i++) {
        float values[BLOCK];
        for (size_t k = 0; k < BLOCK; k++)
            values[k] = k == 0 && i % in->blocks == 0 ? 0 : rng_below(&r, 2) ? 0.7f : -0.7f;
        values[BLOCK - 1] = -0.8f;
        format_q4_0.encode(values, &w[i]);
    }
    for (size_t k = 0; k < BLOCK * in->blocks; k++)
        x[k] = k <= in->zeros ? 0 : (float)(in->size * (1 + 0.5 * rng_uniform(&r)));
    x[0] = 1;
}

static bool multiply(const block_q4_0 *w, const float *x, size_t columns, float *y) {
    device *d = support_get_device();
    library *kernels = d ? library_new(d, NULL, &e) : NULL;
    if (!kernels)
        return false;
    tape *t = tape_new(kernels);
    slice to = support_buffer(NULL, ROWS * sizeof *y);
    bool ok =
        matvec_record(t, op_find_kernel(&matvec_op, "multi_token_matvec_q4_0_per_thread"),
                      support_buffer(w, ROWS * columns / BLOCK * sizeof *w),
                      support_buffer(x, columns * sizeof *x), to, ROWS, (uint32_t)columns, 1, &e) &&
        tape_play(t, PLAY_WHOLE, NULL, NULL, &e);
    if (ok)
        memcpy(y, support_read(to), ROWS * sizeof *y);
    tape_free(t);
    library_free(kernels);
    support_end();
    return ok;
}

/* The tolerance of a product: harness/check/compare.c, kernels/product/product.c. */
TEST x_beside_a_larger_one_keeps_its_bits(input in) {
    static block_q4_0 w[ROWS * MOST_BLOCKS];
    static float x[BLOCK * MOST_BLOCKS], y[ROWS];
    size_t columns = BLOCK * in.blocks;
    double allowed = (4 + 2 * sqrt((double)columns) + 1) * (double)FLT_EPSILON / 2;
    static char text[160]; /* outlives a failed assertion */
    fill(&in, w, x);
    ASSERTm(e.text, multiply(w, x, columns, y));
    for (size_t row = 0; row < ROWS; row++) {
        double sum = 0, magnitudes = 0, weights[BLOCK], ignored[BLOCK];
        for (size_t b = 0; b < in.blocks; b++) {
            format_q4_0.decode(&w[row * in.blocks + b], weights, ignored);
            ASSERT(b > 0 || weights[0] == 0);
            for (size_t k = 0; k < BLOCK; k++) {
                sum += weights[k] * (double)x[b * BLOCK + k];
                magnitudes += fabs(weights[k] * (double)x[b * BLOCK + k]);
            }
        }
        snprintf(text, sizeof text, "row %zu: %.9g, expected %.9g, magnitudes %.3g", row,
                 (double)y[row], sum, magnitudes);
        ASSERTm(text, fabs((double)y[row] - sum) <= allowed * magnitudes);
    }
    PASS();
}

SUITE(per_thread_suite) {
    RUN_TESTp(x_beside_a_larger_one_keeps_its_bits, ((input){1, 0, 0x1p-8}));
    RUN_TESTp(x_beside_a_larger_one_keeps_its_bits, ((input){1, 0, 0x1p-9}));
    RUN_TESTp(x_beside_a_larger_one_keeps_its_bits, ((input){1, 0, 0x1p-13}));
    RUN_TESTp(x_beside_a_larger_one_keeps_its_bits, ((input){1, 24, 0x1p-16}));
    RUN_TESTp(x_beside_a_larger_one_keeps_its_bits, ((input){MOST_BLOCKS, 0, 0x1p-20}));
}
