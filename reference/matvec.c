/* The oracle of matrix times vector, for weights of every format.
 *
 * The error of a sum grows with the partial sums on its way. Terms of one sign make them as large as
 * the result; terms of both signs, in whatever order they come, make them as large as a random walk:
 * the root of the sum of squares. So the magnitude is the sum of the two, and not the sum of all
 * magnitudes, which for a row of 4096 is fifty times more than any right kernel needs. */
#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/share.h"
#include "reference.h"

typedef struct {
    const weight_format *f;
    const char *w;
    const double *x, *x_magnitude;
    size_t out_dim, in_dim, batch;
    double *y, *magnitude;
} product;

static void multiply_rows(void *context, size_t from, size_t to) {
    const product *p = context;
    const weight_format *f = p->f;
    const char *block = p->w + from * (p->in_dim / f->values) * f->bytes;
    double values[BLOCK_MAX_VALUES], magnitudes[BLOCK_MAX_VALUES];
    for (size_t row = from; row < to; row++)
        for (size_t column = 0; column < p->in_dim; column += f->values, block += f->bytes) {
            f->decode(block, values, magnitudes);
            for (size_t t = 0; t < p->batch; t++) {
                const double *x = p->x + t * p->in_dim + column,
                             *x_magnitude = p->x_magnitude + t * p->in_dim + column;
                double sum = 0, terms = 0;
                for (size_t i = 0; i < f->values; i++) {
                    double term = magnitudes[i] * x_magnitude[i];
                    sum += values[i] * x[i];
                    terms += term * term;
                }
                p->y[t * p->out_dim + row] += sum;
                p->magnitude[t * p->out_dim + row] += terms;
            }
        }
}

void reference_matvec_fused(const weight_format *f, const void *w, const double *x,
                            const double *x_magnitude, size_t out_dim, size_t in_dim, size_t batch,
                            double *y, double *magnitude) {
    enum { WORTH_A_THREAD = 1 << 22 };
    product p = {f, w, x, x_magnitude, out_dim, in_dim, batch, y, magnitude};
    for (size_t i = 0; i < out_dim * batch; i++)
        magnitude[i] *= magnitude[i];
    share_run(out_dim, WORTH_A_THREAD / (in_dim * batch + 1) + 1, multiply_rows, &p);
    for (size_t i = 0; i < out_dim * batch; i++)
        magnitude[i] = sqrt(magnitude[i]) + fabs(y[i]);
}

void reference_matvec(const weight_format *f, const void *w, const float *x, size_t out_dim,
                      size_t in_dim, size_t batch, double *y, double *magnitude) {
    size_t count = batch * in_dim;
    double *doubles = array_new(2 * count, sizeof *doubles);
    for (size_t i = 0; i < count; i++) {
        doubles[i] = (double)x[i];
        doubles[count + i] = fabs(doubles[i]);
    }
    reference_matvec_fused(f, w, doubles, doubles + count, out_dim, in_dim, batch, y, magnitude);
    free(doubles);
}
