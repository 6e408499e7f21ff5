/* The oracles of the time mix of RWKV-7: the recurrence, what stands before it and after it.
 *
 * Errors are in roundings. Here they are those of random walks: roundings have random signs, so
 * their variances add up, and a sum of n terms counts n roundings of its size, as that of a matrix
 * product does. An error of the state goes through the same recurrence as the state: it is passed
 * on with the gain that the recurrence has for it. That keeps it from growing, because what a token
 * forgets of a value it also forgets of its error. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "reference.h"

static double square(double x) {
    return x * x;
}

/* Before --------------------------------------------------------------------------------------- */

/* 1 / max(|k * k_k|, 1e-12) of a head */
static double get_inverse_length(const float *k, const float *k_k, size_t size) {
    double squares = 0;
    for (size_t i = 0; i < size; i++)
        squares += square((double)k[i] * (double)k_k[i]);
    return 1 / fmax(sqrt(squares), 1e-12);
}

void reference_time_mix_v7_prepare(const time_mix_v7_inputs *x, const time_mix_v7_sizes *n,
                                   double *packed, double *magnitude) {
    size_t size = n->head_size, dim = n->heads * size, plane = n->tokens * dim;
    for (size_t at = 0; at < plane; at += size) {
        size_t weights = at % dim;
        double inverse = get_inverse_length(x->k + at, x->k_k + weights, size);
        for (size_t i = at; i < at + size; i++) {
            double k = (double)x->k[i], v = (double)x->v[i], a = (double)x->a[i];
            double k_a = (double)x->k_a[i % dim], k_k = (double)x->k_k[i % dim];
            packed[i] = k * (1 + (a - 1) * k_a);
            magnitude[i] = fabs(k) * (1 + (fabs(a) + 1) * fabs(k_a));
            packed[plane + i] = v;
            magnitude[plane + i] = 0;
            if (x->v_gate) {
                double first = (double)x->v_first[i], share = (double)x->v_gate[i];
                packed[plane + i] = v + (first - v) * share;
                magnitude[plane + i] = fabs(v) + (fabs(first) + fabs(v)) * fabs(share);
            }
            packed[2 * plane + i] = a;
            magnitude[2 * plane + i] = 0;
            packed[3 * plane + i] = k * k_k * inverse;
            magnitude[3 * plane + i] = fabs(packed[3 * plane + i]);
        }
    }
}

/* The recurrence ------------------------------------------------------------------------------- */

/* One row of S (size), with the variances of its values. */
typedef struct {
    double *value, *variance;
    size_t size;
} state_row;

typedef struct {
    double value, size, inherited; /* size: of its partial sums; inherited: from the state */
} dot;

static dot multiply(const state_row *s, const double *x) {
    dot d = {0, 0, 0};
    for (size_t j = 0; j < s->size; j++) {
        double term = s->value[j] * x[j];
        d.value += term;
        d.size += square(term);
        d.inherited += square(x[j]) * s->variance[j];
    }
    d.size = sqrt(d.size) + fabs(d.value);
    return d;
}

/* What a row of the state is made of at one token: values of its head, and the errors of those that
 * were computed before, or 0. That of kk is relative. */
typedef struct {
    const double *w, *k, *a, *kk, *k_error;
    double v, v_error, kk_error;
} step;

static void advance(state_row *s, const step *x) {
    dot old = multiply(s, x->kk);
    double noise = ((double)s->size + square(x->kk_error)) * square(old.size);
    for (size_t j = 0; j < s->size; j++) {
        double w = x->w[j], kk = x->kk[j], b = kk * x->a[j];
        double kept = s->value[j] * w, added = x->v * x->k[j], taken = -old.value * b;
        double others = fmax(old.inherited - square(kk) * s->variance[j], 0);
        double k_error = x->k_error ? x->k_error[j] : 0;
        s->variance[j] = square(w - b * kk) * s->variance[j] + square(b) * (others + noise) +
                         square(x->kk_error * taken) + square(x->v * k_error) +
                         square(x->v_error * x->k[j]) +
                         4 * square(fabs(kept) + fabs(added) + fabs(taken));
        s->value[j] = kept + added + taken;
    }
}

/* r, w (tokens, dim), packed (4, tokens, dim); errors, of packed, may be NULL. */
static void run_recurrence(const double *r, const double *w, const double *packed,
                           const double *errors, double kk_error, const time_mix_v7_sizes *n,
                           double *state, double *state_error, double *y, double *y_error) {
    size_t size = n->head_size, dim = n->heads * size, plane = n->tokens * dim;
    state_row s = {.size = size, .variance = malloc(size * sizeof(double))};
    assert(s.variance);
    for (size_t row = 0; row < dim; row++) {
        s.value = state + row * size;
        for (size_t j = 0; j < size; j++)
            s.variance[j] = 0;
        for (size_t t = 0; t < n->tokens; t++) {
            size_t at = t * dim + row / size * size, own = t * dim + row;
            const step x = {.w = w + at,
                            .k = packed + at,
                            .a = packed + 2 * plane + at,
                            .kk = packed + 3 * plane + at,
                            .k_error = errors ? errors + at : NULL,
                            .v = packed[plane + own],
                            .v_error = errors ? errors[plane + own] : 0,
                            .kk_error = kk_error};
            advance(&s, &x);
            dot now = multiply(&s, r + at);
            y[own] = now.value;
            y_error[own] = sqrt((double)size * square(now.size) + now.inherited);
        }
        for (size_t j = 0; j < size; j++)
            state_error[row * size + j] = sqrt(s.variance[j]);
    }
    free(s.variance);
}

static double *make_doubles(const float *x, size_t count) {
    double *doubles = array_new(count, sizeof *doubles);
    for (size_t i = 0; i < count; i++)
        doubles[i] = (double)x[i];
    return doubles;
}

void reference_time_mix_v7(const float *r, const float *w, const float *packed,
                           const time_mix_v7_sizes *n, double *state, double *state_error,
                           double *y, double *y_error) {
    size_t count = n->tokens * n->heads * n->head_size;
    double *rs = make_doubles(r, count), *ws = make_doubles(w, count),
           *all = make_doubles(packed, 4 * count);
    run_recurrence(rs, ws, all, NULL, 0, n, state, state_error, y, y_error);
    free(rs);
    free(ws);
    free(all);
}

/* After ---------------------------------------------------------------------------------------- */

typedef struct {
    double value, size, inherited; /* inherited: the variance that the errors of k give it */
} sum;

/* errors, of packed, may be NULL. */
static sum get_bonus(const time_mix_v7_inputs *x, const double *packed, const double *errors,
                     size_t at, size_t dim, size_t size) {
    sum bonus = {0, 0, 0};
    for (size_t i = at; i < at + size; i++) {
        double factor = (double)x->r[i] * (double)x->r_k[i % dim], term = factor * packed[i];
        bonus.value += term;
        bonus.size += square(term);
        bonus.inherited += errors ? square(factor * errors[i]) : 0;
    }
    bonus.size = sqrt(bonus.size) + fabs(bonus.value);
    return bonus;
}

/* y (size) of a head has errors, which reach the result directly, through the mean, and through the
 * variance: the last two only as averages. Those of k and v, which may be NULL, reach it through the
 * bonus. */
static void finish_head(const time_mix_v7_inputs *x, const time_mix_v7_sizes *n,
                        const double *packed, const double *packed_error, size_t at, double *y,
                        double *error) {
    size_t size = n->head_size, dim = n->heads * size, plane = n->tokens * dim;
    double count = (double)size, mean = 0, mean_size = 0, squares = 0, errors = 0;
    for (size_t i = at; i < at + size; i++) {
        mean += y[i] / count;
        mean_size += fabs(y[i]) / count;
        errors += square(error[i]) / count;
    }
    for (size_t i = at; i < at + size; i++)
        squares += square(y[i] - mean);
    double inverse = 1 / sqrt(squares / count + x->eps);
    sum bonus = get_bonus(x, packed, packed_error, at, dim, size);
    double own = 12 + sqrt(count); /* half of the roundings and of twice the root of the terms */
    for (size_t i = at; i < at + size; i++) {
        double normal = (y[i] - mean) * inverse, w = (double)x->norm_w[i % dim];
        double b = (double)x->norm_b[i % dim], g = (double)x->g[i], v = packed[plane + i];
        double v_error = packed_error ? packed_error[plane + i] : 0;
        double parts = (fabs(y[i]) + mean_size) * inverse +
                       fabs(normal) * (1 + mean_size * inverse / sqrt(count));
        double magnitude = parts * fabs(w) + fabs(b) + bonus.size * fabs(v);
        double inherited = square(inverse * w) * (square(error[i]) + errors / count) +
                           square(normal * inverse * w) * errors / count +
                           square(v) * bonus.inherited + square(bonus.value * v_error);
        y[i] = (normal * w + b + bonus.value * v) * g;
        error[i] = fabs(g) * sqrt(square(own * magnitude) + inherited);
    }
}

void reference_time_mix_v7_finish(const time_mix_v7_inputs *x, const time_mix_v7_sizes *n,
                                  const float *packed, double *y, double *y_error) {
    size_t plane = n->tokens * n->heads * n->head_size;
    double *doubles = make_doubles(packed, 2 * plane);
    for (size_t i = 0; i < plane; i++)
        y_error[i] = 0;
    for (size_t at = 0; at < plane; at += n->head_size)
        finish_head(x, n, doubles, NULL, at, y, y_error);
    free(doubles);
}

/* All of it ------------------------------------------------------------------------------------ */

void reference_time_mix_v7_token(const time_mix_v7_inputs *x, const time_mix_v7_sizes *n,
                                 double *state, double *state_error, double *y, double *y_error) {
    size_t plane = n->tokens * n->heads * n->head_size;
    double *packed = array_new(8 * plane, sizeof *packed), *errors = packed + 4 * plane;
    double *r = make_doubles(x->r, plane), *w = make_doubles(x->w, plane);
    reference_time_mix_v7_prepare(x, n, packed, errors);
    for (size_t i = 0; i < 2 * plane; i++)
        errors[i] *= 4; /* roundings of k and v */
    double kk_error = 5 + sqrt((double)n->head_size);
    run_recurrence(r, w, packed, errors, kk_error, n, state, state_error, y, y_error);
    for (size_t at = 0; at < plane; at += n->head_size)
        finish_head(x, n, packed, errors, at, y, y_error);
    free(packed);
    free(r);
    free(w);
}

void reference_time_first_v7(const float *r_k, const float *r, const float *packed,
                             const time_mix_v7_sizes *n, double *x, double *magnitude) {
    size_t size = n->head_size, dim = n->heads * size, plane = n->tokens * dim;
    const time_mix_v7_inputs inputs = {.r = r, .r_k = r_k};
    double *doubles = make_doubles(packed, 2 * plane);
    for (size_t at = 0; at < plane; at += size) {
        sum bonus = get_bonus(&inputs, doubles, NULL, at, dim, size);
        for (size_t i = at; i < at + size; i++) {
            double v = doubles[plane + i];
            magnitude[i] = fabs(x[i]) + bonus.size * fabs(v);
            x[i] += bonus.value * v;
        }
    }
    free(doubles);
}
