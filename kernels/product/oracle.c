#include "layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "harness/check/accuracy.h"
#include "kernels/activation_judge.h"
#include "reference/reference.h"

/* Roundings besides those of the sums: of a product 4, of rmsnorm 10, of ffn_silu 12, of a rotation
 * by frequencies from a table (rope.c) 10. */
enum { OF_PRODUCT = 4, OF_NORM = 10, OF_SILU = 12, OF_TURN = 10 };
/* Of the means that minima are multiplied with (split_halves.metal): of a sum of 32 values 6; x and the mean lose
 * 2^-22 in two halves, 4 roundings each. */
enum { OF_MEANS = 14 };

/* A launch as its kernel sees it. */
typedef struct {
    const launch *launch;
    const product_layout *layout;
    product p;
    const void *in[FREQS + 1][PRODUCT_MATRICES]; /* by role */
    expected *y[PRODUCT_MATRICES];
} view;

static void read_list(view *v, const product_shape *list) {
    for (v->p.count = 0; v->p.count < PRODUCT_MATRICES && list[v->p.count].rows; v->p.count++) {
        const product_shape *s = &list[v->p.count];
        v->p.items[v->p.count] = (product_matrix){.format = product_get_format(s->format),
                                                  .rows = s->rows,
                                                  .columns = s->columns,
                                                  .activation = s->activation,
                                                  .accumulates = s->accumulates,
                                                  .has_bias = s->has_bias};
    }
}

static void read_stack(view *v, const uint32_t *stack) {
    for (uint32_t i = 0; i < 3; i++)
        v->p.items[i].rows = stack[i];
    v->p.items[0].columns = stack[3];
    v->p.count = stack[2] ? 3 : stack[1] ? 2 : 1;
}

static void read_arg(view *v, oracle_io *io, int at, product_part part) {
    const void *in = io->in[at];
    if (part.role < ROWS)
        v->in[part.role][part.of] = in;
    if (part.role == OUTPUT)
        v->y[part.of] = &io->out[at];
    else if (part.role == EPS)
        v->p.eps = oracle_f32(io, at);
    else if (part.role == LIST)
        read_list(v, in);
    else if (part.role == STACK)
        read_stack(v, in);
    else if (part.role >= ROWS && in)
        *product_find_size(&v->p, part) = oracle_u32(io, at);
}

/* What W is multiplied with, in double precision, and then the magnitudes. The caller frees it. */
static double *make_input(const view *v, size_t token) {
    size_t columns = v->p.items[0].columns;
    const float *x = (const float *)v->in[INPUT][0] + token * columns;
    double *made = array_new(2 * columns, sizeof *made);
    if (v->layout->prologue == NORMED)
        reference_rmsnorm(x, v->in[NORM][0], 1, columns, (double)v->p.eps, made, made + columns);
    else
        reference_ffn_silu(x, v->in[SECOND][0], columns, made, made + columns);
    return made;
}

/* The same of what split_halves made, for all tokens. */
static double *join_halves(const view *v) {
    size_t columns = v->p.items[0].columns, count = v->p.tokens * columns;
    double *made = array_new(2 * count, sizeof *made);
    reference_join_halves(v->in[INPUT][0], v->in[POWERS][0], v->p.tokens, columns, made);
    for (size_t i = 0; i < count; i++)
        made[count + i] = fabs(made[i]);
    return made;
}

/* value (rows) += W x of matrix i, and its scale; x of make_input. */
static void add_product(const view *v, size_t i, const double *x, double *value, double *scale) {
    const product_matrix *m = &v->p.items[i];
    reference_matvec_fused(m->format, v->in[WEIGHTS][i], x, x + m->columns, m->rows, m->columns, 1,
                           value, scale);
}

/* y (tokens, rows) = activation(W x + bias), or y += W x. The sum of a value that is there before is
 * one term longer. */
static void expect_plain(const view *v, size_t i) {
    const product_matrix *m = &v->p.items[i];
    const float *bias = m->has_bias ? v->in[BIAS][i] : NULL;
    expected *out = v->y[i];
    for (size_t j = 0; j < out->count; j++) {
        if (!m->accumulates) /* else it starts as y before the launch */
            out->value[j] = bias ? (double)bias[j % m->rows] : 0;
        out->scale[j] = fabs(out->value[j]);
    }
    bool is_longer = m->accumulates || bias || v->layout->epilogue == MIXED;
    out->terms = m->columns + (is_longer ? 1.0 : 0.0);
    if (v->layout->prologue == AS_IT_IS) {
        const void *x = v->in[INPUT][v->layout->epilogue == MIXED ? i : 0];
        reference_matvec(m->format, v->in[WEIGHTS][i], x, m->rows, m->columns, v->p.tokens,
                         out->value, out->scale);
    } else if (v->layout->prologue == SPLIT_HALVES) {
        double *x = join_halves(v);
        reference_matvec_fused(m->format, v->in[WEIGHTS][i], x,
                               x + (size_t)v->p.tokens * m->columns, m->rows, m->columns,
                               v->p.tokens, out->value, out->scale);
        free(x);
    } else {
        double *x = make_input(v, 0);
        add_product(v, i, x, out->value, out->scale);
        free(x);
    }
    activation_judge(m->activation, v->launch->pipeline->math != MATH_SAFE, out);
}

/* The errors of gate and up pass through silu(gate) * up: the slope of silu is at most 1.1. Where up is
 * smaller than its error, the product of both errors counts. The rest is that of ffn_silu, whose gate
 * and up are here rounded to floats. */
static void expect_gated(const view *v, size_t token) {
    size_t rows = v->p.items[0].rows;
    double *value = v->y[0]->value + token * rows, *scale = v->y[0]->scale + token * rows;
    double *x = make_input(v, token), *gate = array_new(4 * rows, sizeof *gate), *up = gate + rows,
           *gate_scale = up + rows, *up_scale = gate_scale + rows;
    double unit = elem_get_roundoff(ELEM_F32) * (v->y[0]->roundings + 2 * sqrt(v->y[0]->terms));
    add_product(v, 0, x, gate, gate_scale);
    add_product(v, 1, x, up, up_scale);
    for (size_t i = 0; i < rows; i++) {
        double silu = gate[i] / (1 + exp(-gate[i]));
        float g = (float)gate[i], u = (float)up[i];
        reference_ffn_silu(&g, &u, 1, &value[i], &scale[i]);
        value[i] = silu * up[i];
        scale[i] +=
            1.1 * gate_scale[i] * (fabs(up[i]) + unit * up_scale[i]) + fabs(silu) * up_scale[i];
    }
    free(gate);
    free(x);
}

/* Queries and keys are turned, values are not. A row that the caches have no room for is left out. */
static void expect_appended(const view *v, size_t token) {
    uint32_t pos = v->p.pos.bits + (uint32_t)token;
    const float *freqs = v->in[FREQS][0];
    double *x = make_input(v, token);
    for (size_t i = 0; i < 3; i++) {
        expected *out = v->y[i];
        size_t rows = v->p.items[i].rows, at = (i == 0 ? token : pos) * rows;
        double *value = out->value + at, *scale = out->scale + at;
        if (at + rows > out->count)
            continue;
        memset(value, 0, rows * sizeof *value);
        memset(scale, 0, rows * sizeof *scale);
        add_product(v, i, x, value, scale);
        double operations = out->roundings + 2 * sqrt(out->terms);
        double sine = v->launch->pipeline->math == MATH_SAFE ? 0 : FAST_SINE / operations;
        for (size_t k = 0; i < 2 && k + 1 < rows; k += 2)
            reference_rope_fused(pos * (double)freqs[k % v->p.head_dim / 2], sine, value + k,
                                 scale + k);
    }
    free(x);
}

/* A norm and a product are two sums of as many terms, one after the other. */
static void set_lengths(const view *v) {
    static const double more[] = {[GATED] = OF_SILU, [APPENDED] = OF_TURN};
    for (uint32_t i = 0; i < v->p.count; i++)
        if (v->layout->prologue == SPLIT_HALVES) {
            bool has_minima = v->p.items[i].format->halves > 1;
            v->y[i]->roundings = OF_PRODUCT + (has_minima ? OF_MEANS : 0);
        } else if (v->layout->prologue == SILU) {
            v->y[i]->roundings = OF_PRODUCT + OF_SILU;
        } else if (v->layout->prologue == NORMED && v->y[i]) {
            double own = v->layout->epilogue == STORED ? 0 : more[v->layout->epilogue];
            v->y[i]->terms = 4.0 * v->p.items[0].columns;
            v->y[i]->roundings = OF_PRODUCT + OF_NORM + own;
        }
}

void product_oracle(const launch *l, oracle_io *io) {
    view v = {.launch = l, .layout = l->context, .p = {.tokens = 1}};
    for (int at = 0; v.layout->args[at].role; at++)
        read_arg(&v, io, at, v.layout->args[at]);
    product_spread(v.layout, l->kernel, &v.p);
    bool is_plain = v.layout->epilogue < GATED;
    for (uint32_t i = 0; is_plain && i < v.p.count; i++)
        expect_plain(&v, i);
    set_lengths(&v);
    for (size_t j = 0; v.layout->epilogue == APPENDED && j < v.y[1]->count; j++)
        v.y[1]->scale[j] = v.y[2]->scale[j] = 0; /* every other row must survive as it is */
    for (size_t token = 0; !is_plain && token < v.p.tokens; token++)
        if (v.layout->epilogue == GATED)
            expect_gated(&v, token);
        else
            expect_appended(&v, token);
}
