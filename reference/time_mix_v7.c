/* The oracles of time_mix_v7 and time_first_v7. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "reference.h"

/* What a row of the state is made of at one token; all pointers are to the values of its head. */
typedef struct {
    const float *r, *w, *k, *a, *kk;
    double v;
} step;

/* An error is a variance here, in squared roundings: roundings have random signs, and errors add up
 * as random walks do. An error of the state goes through the same recurrence as the state. So it is
 * passed on with the gain that the recurrence has for it (which keeps it from growing: what a token
 * forgets of a value it also forgets of its error), and each operation adds its own rounding. A sum
 * of n terms counts n roundings of its size, as that of a matrix product does. */
typedef struct {
    double *value, *variance; /* (head_size) of one row of S */
    size_t size;
} state_row;

typedef struct {
    double value, size, inherited; /* size: of its partial sums; inherited: from the state */
} dot;

static dot multiply(const state_row *s, const float *x) {
    dot d = {0, 0, 0};
    for (size_t j = 0; j < s->size; j++) {
        double factor = (double)x[j], term = s->value[j] * factor;
        d.value += term;
        d.size += term * term;
        d.inherited += factor * factor * s->variance[j];
    }
    d.size = sqrt(d.size) + fabs(d.value);
    return d;
}

static void advance(state_row *s, const step *x, double *y, double *y_variance) {
    double n = (double)s->size;
    dot old = multiply(s, x->kk);
    double noise = n * old.size * old.size;
    for (size_t j = 0; j < s->size; j++) {
        double w = (double)x->w[j], kk = (double)x->kk[j], b = kk * (double)x->a[j];
        double kept = s->value[j] * w, added = x->v * (double)x->k[j], taken = -old.value * b;
        double sum = fabs(kept) + fabs(added) + fabs(taken);
        double others = old.inherited - kk * kk * s->variance[j];
        s->variance[j] = (w - b * kk) * (w - b * kk) * s->variance[j] +
                         b * b * (fmax(others, 0) + noise) + 4 * sum * sum;
        s->value[j] = kept + added + taken;
    }
    dot now = multiply(s, x->r);
    *y = now.value;
    *y_variance = n * now.size * now.size + now.inherited;
}

void reference_time_mix_v7(const float *r, const float *w, const float *packed, size_t tokens,
                           size_t heads, size_t head_size, double *state, double *state_error,
                           double *y, double *y_error) {
    size_t dim = heads * head_size, plane = tokens * dim;
    state_row s = {.size = head_size};
    s.variance = malloc(head_size * sizeof *s.variance);
    assert(s.variance);
    for (size_t row = 0; row < dim; row++) {
        size_t head = row / head_size * head_size;
        s.value = state + row * head_size;
        for (size_t j = 0; j < head_size; j++)
            s.variance[j] = 0;
        for (size_t t = 0; t < tokens; t++) {
            size_t at = t * dim + head;
            const step x = {.r = r + at,
                            .w = w + at,
                            .k = packed + at,
                            .a = packed + 2 * plane + at,
                            .kk = packed + 3 * plane + at,
                            .v = (double)packed[plane + t * dim + row]};
            double variance;
            advance(&s, &x, &y[t * dim + row], &variance);
            y_error[t * dim + row] = sqrt(variance);
        }
        for (size_t j = 0; j < head_size; j++)
            state_error[row * head_size + j] = sqrt(s.variance[j]);
    }
    free(s.variance);
}

void reference_time_first_v7(const float *r_k, const float *r, const float *packed, size_t tokens,
                             size_t heads, size_t head_size, double *x, double *magnitude) {
    size_t plane = tokens * heads * head_size;
    for (size_t index = 0; index < tokens * heads; index++) {
        size_t at = index * head_size, weights = index % heads * head_size;
        double sum = 0, squares = 0;
        for (size_t i = 0; i < head_size; i++) {
            double term = (double)r_k[weights + i] * (double)packed[at + i] * (double)r[at + i];
            sum += term;
            squares += term * term;
        }
        for (size_t i = 0; i < head_size; i++) {
            double v = (double)packed[plane + at + i];
            magnitude[at + i] = fabs(x[at + i]) + (sqrt(squares) + fabs(sum)) * fabs(v);
            x[at + i] += sum * v;
        }
    }
}
