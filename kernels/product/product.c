#include "product.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "harness/check/accuracy.h"
#include "harness/device/launch.h"
#include "kernels/formats/formats.h"
#include "kernels/kernels.h"
#include "kernels/record.h"
#include "reference/reference.h"
#include "table.h"

/* What each op of products has, and where: the arguments of its kernels and the sizes of its shapes, as
 * lists that the record function, the oracle and the test cases all go through --------------- */

/* What an argument or a size is: buffers, then numbers. */
typedef enum {
    NOTHING,
    WEIGHTS,
    INPUT,
    SECOND, /* up */
    NORM,
    POWERS,
    BIAS,
    OUTPUT,
    FREQS,
    ROWS,
    COLUMNS,
    TOKENS,
    ACTIVATION,
    HAS_BIAS,
    HEAD_DIM,
    POSITION,
    EPS,
    STACK, /* rows of three matrices, then columns */
    LIST,  /* product_shape of all matrices */
    HEADS, /* of a shape: rows / head_dim */
    COUNT,
    FORMAT,
} product_role;

typedef struct {
    product_role role;
    uint32_t of; /* which matrix */
    const char *name;
} product_part;

typedef enum { AS_IT_IS, SPLIT_HALVES, SILU, NORMED } product_prologue;
typedef enum { STORED, ACTIVATED, MIXED, GATED, APPENDED } product_epilogue;

typedef struct {
    const op *op;
    const char *variant; /* NULL: of all kernels of the op */
    product_prologue prologue;
    product_epilogue epilogue;
    size_t matrices;
    bool varies; /* there may be fewer */
    product_part args[LAUNCH_BUFFERS];
    product_part shape[SHAPE_DIMS];
} product_layout;

/* A matrix of matvec_mixed as its kernel reads it. */
typedef struct {
    uint32_t rows, columns, groups;
    uint8_t format, activation, has_bias, accumulates;
} product_shape;

/* The ops -------------------------------------------------------------------------------------- */

/* Buffers with their names in messages, numbers (N), of the first matrix or of another (N_OF). */
/* clang-format off */
#define N_OF(what, i) {what, i, NULL}
#define N(what) N_OF(what, 0)
#define BUFFERS(i) {WEIGHTS, i, "w" #i}, {INPUT, i, "x" #i}, {BIAS, i, "b" #i}, {OUTPUT, i, "y" #i}
#define APPEND_PARTS \
     {{INPUT, 0, "x"}, {NORM, 0, "norm_w"}, {WEIGHTS, 0, "wq"}, {WEIGHTS, 1, "wk"}, \
      {WEIGHTS, 2, "wv"}, {OUTPUT, 0, "q"}, {OUTPUT, 1, "k_cache"}, {OUTPUT, 2, "v_cache"}, \
      {FREQS, 0, "freqs"}, N(ROWS), N_OF(ROWS, 1), N(COLUMNS), N(HEAD_DIM), N(EPS), \
      {POSITION, 0, "pos"}, N(TOKENS)}, \
     {N(POSITION), N(HEADS), N_OF(HEADS, 1), N(HEAD_DIM), N(COLUMNS), N(TOKENS)}
static const product_layout layouts[] = {
    {&matvec_op, NULL, AS_IT_IS, STORED, 1, false,
     {{WEIGHTS, 0, "w"}, {INPUT, 0, "x"}, {OUTPUT, 0, "y"}, N(ROWS), N(COLUMNS), N(TOKENS)},
     {N(ROWS), N(COLUMNS), N(TOKENS)}},
    {&matvec_activate_op, NULL, AS_IT_IS, ACTIVATED, 1, false,
     {{WEIGHTS, 0, "w"}, {INPUT, 0, "x"}, {OUTPUT, 0, "y"}, N(ROWS), N(COLUMNS), {BIAS, 0, "bias"},
      N(HAS_BIAS), N(ACTIVATION), N(TOKENS)},
     {N(ROWS), N(COLUMNS), N(TOKENS), N(ACTIVATION), N(HAS_BIAS)}},
    {&matvec_mixed_op, NULL, AS_IT_IS, MIXED, PRODUCT_MATRICES, true,
     {BUFFERS(0), BUFFERS(1), BUFFERS(2), BUFFERS(3), BUFFERS(4), BUFFERS(5), BUFFERS(6), N(LIST),
      N(TOKENS)},
     {N(ROWS), N(COLUMNS), N(COUNT), N(FORMAT), N(TOKENS)}},
    {&matvec_batched_op, NULL, AS_IT_IS, STORED, 3, true,
     {{WEIGHTS, 0, "wa"}, {WEIGHTS, 1, "wb"}, {WEIGHTS, 2, "wc"}, {INPUT, 0, "x"},
      {OUTPUT, 0, "ya"}, {OUTPUT, 1, "yb"}, {OUTPUT, 2, "yc"}, N(STACK)},
     {N(ROWS), N_OF(ROWS, 1), N_OF(ROWS, 2), N(COLUMNS)}},
    {&matvec_split_op, NULL, SPLIT_HALVES, STORED, 3, true,
     {{WEIGHTS, 0, "wa"}, {WEIGHTS, 1, "wb"}, {WEIGHTS, 2, "wc"}, {INPUT, 0, "x"},
      {POWERS, 0, "powers"}, {OUTPUT, 0, "ya"}, {OUTPUT, 1, "yb"}, {OUTPUT, 2, "yc"}, N(STACK),
      N(TOKENS), N(ACTIVATION)},
     {N(ROWS), N_OF(ROWS, 1), N_OF(ROWS, 2), N(COLUMNS), N(TOKENS), N(ACTIVATION)}},
    {&silu_matvec_op, NULL, SILU, STORED, 1, false,
     {{WEIGHTS, 0, "w"}, {INPUT, 0, "gate"}, {SECOND, 0, "up"}, {OUTPUT, 0, "y"}, N(ROWS),
      N(COLUMNS)},
     {N(ROWS), N(COLUMNS)}},
    {&rmsnorm_matvec_op, "megakernel", NORMED, STORED, 1, false,
     {{INPUT, 0, "x"}, {NORM, 0, "norm_w"}, {WEIGHTS, 0, "w"}, {OUTPUT, 0, "y"}, N(COLUMNS), N(EPS),
      N(ROWS)},
     {N(ROWS), N(COLUMNS)}},
    {&rmsnorm_matvec_op, NULL, NORMED, STORED, 1, false,
     {{INPUT, 0, "x"}, {NORM, 0, "norm_w"}, {WEIGHTS, 0, "w"}, {OUTPUT, 0, "y"}, N(ROWS), N(COLUMNS),
      N(EPS)},
     {N(ROWS), N(COLUMNS)}},
    {&gate_up_silu_op, NULL, NORMED, GATED, 2, false,
     {{INPUT, 0, "x"}, {NORM, 0, "norm_w"}, {WEIGHTS, 0, "w_gate"}, {WEIGHTS, 1, "w_up"},
      {OUTPUT, 0, "out"}, N(ROWS), N(COLUMNS), N(EPS), N(TOKENS)},
     {N(ROWS), N(COLUMNS), N(TOKENS)}},
    {&qkv_rope_append_op, NULL, NORMED, APPENDED, 3, false, APPEND_PARTS},
    {&qkv_rope_append_f16_op, NULL, NORMED, APPENDED, 3, false, APPEND_PARTS},
};
/* clang-format on */

static const product_layout *find_layout(const kernel *k) {
    const product_layout *a = layouts, *end = layouts + COUNT_OF(layouts);
    while (a < end && (k < a->op->kernels || k >= a->op->kernels + a->op->kernel_count ||
                       (a->variant && strcmp(a->variant, k->variant) != 0)))
        a++;
    assert(a < end);
    return a;
}

/* Parts of a product --------------------------------------------------------------------------- */

#define FORMAT_ENTRY(f, ...) &format_##f,
static const weight_format *const formats[] = {FORMATS(FORMAT_ENTRY)};

/* The formats by the numbers that the kernel knows; NULL: there are no more. */
static const weight_format *find_format(uint32_t number) {
    return number < COUNT_OF(formats) ? formats[number] : NULL;
}

/* Where a number of a description is: not for EPS, STACK and LIST. Heads are rows at first. */
static uint32_t *find_size(product *p, product_part which) {
    product_matrix *m = &p->items[which.of];
    uint32_t *const all[] = {[ROWS] = &m->rows,
                             [HEADS] = &m->rows,
                             [COLUMNS] = &m->columns,
                             [TOKENS] = &p->tokens,
                             [ACTIVATION] = &m->activation,
                             [HAS_BIAS] = &m->has_bias,
                             [HEAD_DIM] = &p->head_dim,
                             [POSITION] = &p->pos.bits,
                             [COUNT] = &p->count,
                             [FORMAT] = &m->number};
    return all[which.role];
}

static slice *find_buffer(product *p, product_part which) {
    product_matrix *m = &p->items[which.of];
    slice *const all[] = {[WEIGHTS] = &m->w,   [INPUT] = &m->x,         [BIAS] = &m->bias,
                          [OUTPUT] = &m->y,    [SECOND] = &p->up,       [NORM] = &p->norm_w,
                          [FREQS] = &p->freqs, [POSITION] = &p->pos.at, [POWERS] = &p->powers};
    return all[which.role];
}

static bool is_cache(const product_layout *a, product_part which) {
    return a->epilogue == APPENDED && which.role == OUTPUT && which.of > 0;
}

/* What the caches of an op hold. */
static elem get_cache_elem(const product_layout *a) {
    return a->op == &qkv_rope_append_f16_op ? ELEM_F16 : ELEM_F32;
}

/* How many floats of a buffer are used. Caches are used whole. */
static size_t count_used(const product_layout *a, const product *p, product_part which) {
    const product_matrix *m = &p->items[which.of];
    if (is_cache(a, which))
        return m->y.bytes / elem_get_bytes(get_cache_elem(a));
    if (which.role == POWERS)
        return p->tokens;
    if (which.role == INPUT && a->prologue == SPLIT_HALVES)
        return split_halves_count(p->tokens, m->columns);
    size_t tokens = which.role == INPUT || which.role == OUTPUT ? p->tokens : 1;
    return which.role == FREQS
               ? p->head_dim / 2
               : size_multiply(tokens,
                               which.role == OUTPUT || which.role == BIAS ? m->rows : m->columns);
}

static access_mode get_access(const product_layout *a, const product *p, product_part which) {
    return which.role != OUTPUT                                   ? ACCESS_READ
           : is_cache(a, which) || p->items[which.of].accumulates ? ACCESS_BOTH
                                                                  : ACCESS_WRITE;
}

/* What all matrices of an op share, from the first of them, and what the kernel decides. */
static void spread(const product_layout *a, const kernel *k, product *p) {
    if (a->epilogue == MIXED)
        return;
    if (!a->varies)
        p->count = (uint32_t)a->matrices;
    for (size_t i = p->count; i < a->matrices; i++)
        p->items[i].rows = 0;
    if (a->epilogue == GATED)
        p->items[1].rows = p->items[0].rows;
    if (a->epilogue == APPENDED)
        p->items[2].rows = p->items[1].rows;
    for (size_t i = 0; i < a->matrices; i++) {
        p->items[i].columns = p->items[0].columns;
        p->items[i].activation = p->items[0].activation;
        p->items[i].format = k->format;
        p->items[i].accumulates = k->accumulates;
    }
}

/* What a kernel takes ------------------------------------------------------------------------- */

/* Floats in a load, of at most 16 bytes; blocks need the alignment of their fp16 scales, or that of loads of 16
 * bytes. */
static uint32_t count_floats(const kernel *k) {
    return !k->format || k->format->values > 1 ? 4 : k->multiple_of ? k->multiple_of : 1;
}

static size_t get_alignment(const kernel *k, const weight_format *f) {
    size_t load = count_floats(k) * f->bytes;
    return f->values == 1 ? (load < 16 ? load : 16) : k->multiple_of >= f->values ? 16 : 2;
}

size_t product_get_alignment(const kernel *k) {
    return get_alignment(k, k->format);
}

static size_t get_x_alignment(const kernel *k) {
    bool is_narrow = k->format && k->format->values == 1 && count_floats(k) < 4;
    return is_narrow ? count_floats(k) * sizeof(float) : 16;
}

/* The shape of an op that a description is; of matvec_mixed, that of matrix i. */
static shape get_shape(const product_layout *a, product *p, uint32_t i) {
    shape s = {{0}};
    for (size_t d = 0; d < SHAPE_DIMS && a->shape[d].role; d++) {
        product_part part = a->shape[d];
        part.of = a->epilogue == MIXED ? i : part.of;
        s.dim[d] = part.role == COUNT ? 1 : *find_size(p, part);
        if (part.role == HEADS)
            s.dim[d] /= p->head_dim ? p->head_dim : 1;
    }
    return s;
}

static void find_numbers(product *p) {
    for (product_matrix *m = p->items; m < p->items + PRODUCT_MATRICES; m++) {
        const weight_format *f;
        m->has_bias = m->bias.buffer != NULL;
        m->number = 0;
        while ((f = find_format(m->number)) && f != m->format)
            m->number++;
    }
}

static bool check_matrix(const product_layout *a, const kernel *k, product *p, uint32_t i, err *e) {
    const product_matrix *m = &p->items[i];
    shape s = get_shape(a, p, i);
    if (a->epilogue == MIXED && !find_format(m->number))
        return err_set(e, EXIT_CANNOT, "%s: cannot read weights in %s", k->name, m->format->name);
    if (!record_takes(a->op, k, &s, e))
        return false;
    if (m->accumulates && (m->activation != ACTIVATION_NONE || m->has_bias))
        return err_set(e, EXIT_CANNOT, "%s: what is added to y has no bias and no activation",
                       k->name);
    err why;
    return activation_check(m->activation, &why) ||
           err_set(e, why.code, "%s %s", k->name, why.text);
}

/* Whole heads, and room in the caches for the new rows. */
static bool check_caches(const product_layout *a, const kernel *k, const product *p, err *e) {
    const product_matrix *q = &p->items[0], *kv = &p->items[1];
    if (q->rows == 0 || kv->rows == 0 || q->rows % p->head_dim || kv->rows % p->head_dim)
        return err_set(e, EXIT_CANNOT, "%s: %u and %u are not whole heads of %u", k->name, q->rows,
                       kv->rows, p->head_dim);
    size_t row_bytes = size_multiply(kv->rows, elem_get_bytes(get_cache_elem(a))),
           bytes = kv->y.bytes;
    size_t row = p->pos.at.buffer ? 0 : p->pos.bits, rows = bytes / row_bytes;
    if (bytes % row_bytes || p->items[2].y.bytes != bytes)
        return err_set(e, EXIT_CANNOT,
                       "%s: caches of %zu and %zu bytes are not the same whole rows of %zu",
                       k->name, bytes, p->items[2].y.bytes, row_bytes);
    return (row < rows && p->tokens <= rows - row) ||
           err_set(e, EXIT_CANNOT, "%s: %u rows from row %zu on do not fit caches of %zu rows",
                   k->name, p->tokens, row, rows);
}

static bool check(const product_layout *a, const kernel *k, product *p, err *e) {
    uint64_t rows = 0;
    if (p->count == 0 || p->count > a->matrices)
        return err_set(e, EXIT_CANNOT, "%s needs 1 to %zu products, not %u", k->name, a->matrices,
                       p->count);
    for (uint32_t i = 0; i < p->count; i++) {
        if ((i == 0 || a->epilogue == MIXED) && !check_matrix(a, k, p, i, e))
            return false;
        rows += p->items[i].rows + (uint64_t)k->rows;
    }
    if (rows > UINT32_MAX)
        return err_set(e, EXIT_CANNOT, "%s: more rows than 32 bits can count", k->name);
    return a->epilogue != APPENDED || check_caches(a, k, p, e);
}

/* Oracle: what the kernels should compute ------------------------------------------------------ */

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
        v->p.items[v->p.count] = (product_matrix){.format = find_format(s->format),
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
        *find_size(&v->p, part) = oracle_u32(io, at);
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

static void oracle(const launch *l, oracle_io *io) {
    view v = {.launch = l, .layout = l->context, .p = {.tokens = 1}};
    for (int at = 0; v.layout->args[at].role; at++)
        read_arg(&v, io, at, v.layout->args[at]);
    spread(v.layout, l->kernel, &v.p);
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

/* Recording ----------------------------------------------------------------------------------- */

/* Of all matrices; a threadgroup of matvec_split has rows of one only. */
static uint32_t count_rows(const product_layout *a, const kernel *k, const product *p) {
    uint32_t rows = 0;
    for (uint32_t i = 0; i < p->count; i++)
        rows += a->prologue == SPLIT_HALVES ? divide_up(p->items[i].rows, k->rows) * k->rows
                                            : p->items[i].rows;
    return rows;
}

/* The kernels of cuda/ share rows, or pairs of rows, among their thread blocks: if those are few, each SM has
 * as many, but clusters of more than two do not find room everywhere. A cluster has room for the sums of so
 * many pairs. */
static uint32_t share_rows(const tape *t, const kernel *k, uint32_t groups, uint32_t rows) {
    enum { PAIRS = 256 };
    uint32_t cores = device_get_facts(library_get_device(t->lib))->cores,
             cluster = k->sharers ? k->sharers : 1, most = rows * cluster,
             least = divide_up(rows, PAIRS) * cluster;
    if (groups <= 2 * cores && cluster <= 2)
        groups = divide_up(groups, cores) * cores;
    groups = k->sharers && groups < least ? least : groups;
    return groups < most ? groups : most;
}

static size3 find_groups(const product_layout *a, const tape *t, const kernel *k,
                         const product *p) {
    uint32_t rows = a->epilogue == GATED ? p->items[0].rows : count_rows(a, k, p);
    size3 groups = record_tiles(k, rows, p->tokens);
    if ((k->needs & FEATURE_BULK_COPIES) && k->groups != 0 && p->items[0].columns <= HALF_COLUMNS)
        groups.x = divide_up(groups.x, 2); /* of rows so short, a tile has twice as many */
    if (k->groups != 0 && groups.x > k->groups)
        groups.x = k->groups;
    if (k->sharers)
        groups.x *= k->sharers;
    bool has_pairs = a->epilogue == APPENDED || (a->epilogue < MIXED && k->sharers);
    if (k->needs & FEATURE_BULK_COPIES)
        groups.x = share_rows(t, k, groups.x, has_pairs ? divide_up(rows, 2) : rows);
    return groups;
}

/* Thread blocks are shared out among the matrices one after another, each to the one that has the most bytes
 * per thread block: one per SM if those are few, else two. */
static void share_groups(const product *p, uint32_t cores, product_shape list[PRODUCT_MATRICES]) {
    enum { FEW_BYTES = 32 << 10, MOST_PER_CORE = 2 };
    uint64_t bytes[PRODUCT_MATRICES], all = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const product_matrix *m = &p->items[i];
        bytes[i] = format_get_bytes(m->format, m->rows, m->columns);
        all += bytes[i];
        list[i].groups = 1;
    }
    uint32_t due = all <= (uint64_t)FEW_BYTES * cores ? cores : MOST_PER_CORE * cores;
    for (uint32_t given = p->count; given < due; given++) {
        product_shape *most = NULL;
        uint64_t most_bytes = 0;
        for (uint32_t i = 0; i < p->count; i++)
            if (list[i].groups < list[i].rows && bytes[i] / list[i].groups >= most_bytes) {
                most = &list[i];
                most_bytes = bytes[i] / list[i].groups;
            }
        if (!most)
            return;
        most->groups++;
    }
}

/* The matrices of a launch of matvec_mixed, and how many threadgroups it has. */
static uint32_t fill_list(const tape *t, const kernel *k, const product *p,
                          product_shape list[PRODUCT_MATRICES]) {
    uint32_t groups = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const product_matrix *m = &p->items[i];
        list[i] = (product_shape){.rows = m->rows,
                                  .columns = m->columns,
                                  .groups = divide_up(m->rows, k->rows),
                                  .format = (uint8_t)m->number,
                                  .activation = (uint8_t)m->activation,
                                  .has_bias = m->has_bias != 0,
                                  .accumulates = m->accumulates};
    }
    if (k->needs & FEATURE_BULK_COPIES)
        share_groups(p, device_get_facts(library_get_device(t->lib))->cores, list);
    for (uint32_t i = 0; i < p->count; i++)
        groups += list[i].groups;
    return groups;
}

static uint64_t count_flops(const product_layout *a, const kernel *k, const product *p) {
    static const uint64_t per_row[] = {[ACTIVATED] = 5, [MIXED] = 5, [GATED] = 2, [APPENDED] = 3};
    uint64_t flops = 0, columns = p->items[0].columns;
    for (uint32_t i = 0; i < p->count; i++)
        flops +=
            p->items[i].rows * (2 * (uint64_t)p->items[i].columns +
                                (a->epilogue == STORED ? k->accumulates : per_row[a->epilogue]));
    return p->tokens *
           (flops + (a->prologue < SILU ? 0 : 4 * columns) + (a->prologue == NORMED ? 3 : 0));
}

/* Metal requires every buffer to be bound: where a matrix or its bias is not there, another input is,
 * and is not read. */
static launch_arg make_buffer(const product_layout *a, const kernel *k, product *p,
                              product_part part) {
    bool is_there = part.of < p->count && (part.role != BIAS || p->items[part.of].has_bias);
    part.of = part.of < p->count ? part.of : 0;
    if (!is_there && part.role != WEIGHTS)
        part.role = INPUT;
    const product_matrix *m = &p->items[part.of];
    bool is_x = part.role == INPUT || part.role == SECOND || part.role == NORM;
    elem type = a->prologue == SPLIT_HALVES && part.role == INPUT ? ELEM_U32
                : part.role == OUTPUT && part.of > 0              ? get_cache_elem(a)
                                                                  : ELEM_F32;
    launch_arg made =
        ARG_BUFFER(part.name, *find_buffer(p, part), count_used(a, p, part), get_access(a, p, part),
                   type, is_x ? get_x_alignment(k) : elem_get_bytes(type));
    if (part.role == WEIGHTS)
        made = (launch_arg)ARG_WEIGHTS(part.name, m->w, m->format, m->rows, m->columns,
                                       get_alignment(k, m->format));
    made.is_unread = !is_there || part.role == FREQS; /* which are few */
    return made;
}

static launch_arg make_value(const kernel *k, product *p, product_part part) {
    launch_arg made = ARG_U32(0);
    if (part.role == EPS)
        made = (launch_arg)ARG_F32(p->eps);
    else if (part.role == POSITION)
        made = (launch_arg)ARG_PARAM(p->pos);
    else
        made = (launch_arg)ARG_U32(*find_size(p, part));
    made.is_absent = part.role == TOKENS && k->tokens == 0;
    return made;
}

bool product_record(tape *t, const kernel *k, const product *given, err *e) {
    const product_layout *a = find_layout(k);
    product p = *given;
    product_shape list[PRODUCT_MATRICES] = {{0}};
    launch_arg args[LAUNCH_BUFFERS];
    size_t count = 0;
    spread(a, k, &p);
    find_numbers(&p);
    if (!check(a, k, &p, e))
        return false;
    const uint32_t stack[] = {p.items[0].rows, p.items[1].rows, p.items[2].rows,
                              p.items[0].columns};
    launch_work work = {.groups = find_groups(a, t, k, &p),
                        .flops = count_flops(a, k, &p),
                        .oracle = oracle,
                        .context = a};
    if (k->most && a->prologue == NORMED && !k->needs) /* it keeps the values */
        work.threadgroup_bytes = p.items[0].columns * (uint32_t)sizeof(float);
    if (a->epilogue == MIXED)
        work.groups.x = fill_list(t, k, &p, list);
    for (; a->args[count].role; count++) {
        product_part part = a->args[count];
        args[count] = part.role == STACK  ? (launch_arg)ARG_BYTES(stack, sizeof stack)
                      : part.role == LIST ? (launch_arg)ARG_BYTES(list, sizeof list)
                      : part.role < ROWS  ? make_buffer(a, k, &p, part)
                                          : make_value(k, &p, part);
        if (a->epilogue == APPENDED && part.role == OUTPUT && part.of > 0) {
            work.appends |= p.tokens == 1 ? 1u << count : 0;
            work.unmoved += 2 * p.items[part.of].y.bytes - (uint64_t)p.tokens *
                                                               p.items[part.of].rows *
                                                               elem_get_bytes(get_cache_elem(a));
        }
    }
    return record_args(t, k, args, count, &work, e);
}

bool matvec_record(tape *t, const kernel *k, slice w, slice x, slice y, uint32_t out_dim,
                   uint32_t in_dim, uint32_t batch, err *e) {
    const product p = {{{.w = w, .x = x, .y = y, .rows = out_dim, .columns = in_dim}},
                       .tokens = batch};
    return product_record(t, k, &p, e);
}

/* Cases ---------------------------------------------------------------------------------------- */

/* Kernels of matvec_mixed read all formats, or one and floats, or only floats. */
static bool reads(const kernel *k, const weight_format *f) {
    return f->values == 1 || f == k->format || !(k->format || k->tokens);
}

static uint32_t find_next_format(const kernel *k, uint32_t number) {
    do
        number = find_format(number + 1) ? number + 1 : 0;
    while (!reads(k, find_format(number)));
    return number;
}

/* matvec_mixed: rows x columns of the first matrix; each next one has 5 rows more, another format,
 * activation and, in turn, a bias, no bias, or an output to which it adds. */
static void vary_matrices(const kernel *k, product *p, uint32_t first) {
    uint32_t number = find_format(first) ? first : 0;
    for (uint32_t i = 0; i < p->count && i < PRODUCT_MATRICES; i++) {
        product_matrix *m = &p->items[i];
        m->format = find_format(number);
        number = find_next_format(k, number);
        m->rows = p->items[0].rows + 5 * i;
        m->columns = p->items[0].columns;
        m->accumulates = i % 3 == 2;
        m->has_bias = i % 3 == 1;
        m->activation = m->accumulates ? ACTIVATION_NONE : (first + i) % ACTIVATION_COUNT;
    }
    for (uint32_t i = 0; i < p->count && i < PRODUCT_MATRICES; i++)
        if (p->items[i].format->values == 256)
            p->items[i].columns = divide_up(p->items[i].columns, 256) * 256;
}

/* The description of a shape, without buffers. */
static product read_shape(const product_layout *a, const kernel *k, const shape *s) {
    product p = {.eps = 1e-5f};
    for (size_t d = 0; d < SHAPE_DIMS && a->shape[d].role; d++)
        *find_size(&p, a->shape[d]) = s->dim[d];
    p.tokens = p.tokens ? p.tokens : 1;
    if (a->epilogue == MIXED)
        vary_matrices(k, &p, s->dim[3]);
    else if (a->matrices == 3)
        p.count = p.items[2].rows ? 3 : p.items[1].rows ? 2 : 1;
    spread(a, k, &p);
    for (uint32_t i = 0; a->epilogue == APPENDED && i < 3; i++) {
        p.items[i].rows *= p.head_dim;
        p.items[i].y.bytes = /* of a cache: one more row, which is never written */
            size_multiply((size_t)p.pos.bits + p.tokens + 1, p.items[i].rows) *
            elem_get_bytes(get_cache_elem(a));
    }
    return p;
}

static bool accepts(const kernel *k, const shape *s, err *e) {
    const product_layout *a = find_layout(k);
    product p = read_shape(a, k, s);
    uint32_t activation = p.items[0].activation;
    if (a->epilogue == ACTIVATED)
        return activation_check(activation, e);
    if (a->prologue == SPLIT_HALVES)
        return activation == ACTIVATION_NONE ||
               (activation == ACTIVATION_SQUARED_RELU && !k->accumulates) ||
               err_set(e, EXIT_CANNOT, "has no activation %u", activation);
    if (a->epilogue == APPENDED)
        return (p.head_dim != 0 && p.head_dim % 2 == 0) ||
               err_set(e, EXIT_CANNOT, "needs an even head_dim, not %u", p.head_dim);
    bool is_mixed = a->epilogue == MIXED;
    if (is_mixed && (p.count == 0 || p.count > a->matrices))
        return err_set(e, EXIT_CANNOT, "needs 1 to %zu products, not %u", a->matrices, p.count);
    for (uint32_t i = 0; is_mixed && i < p.count; i++) {
        const product_matrix *m = &p.items[i];
        size_t step = m->format->values < 4 ? 4 : m->format->values;
        bool is_own = !k->format || k->format == m->format;
        step = is_own && step < k->multiple_of ? k->multiple_of : step;
        if (!reads(k, m->format))
            return err_set(e, EXIT_CANNOT, "needs weights in %s%sfloats, not in %s",
                           k->format ? k->format->name : "", k->format ? " or " : "",
                           m->format->name);
        if (is_own && k->most && m->columns > k->most)
            return err_set(e, EXIT_CANNOT, "takes rows of up to %u weights in %s, not %u", k->most,
                           m->format->name, m->columns);
        if (m->columns % step != 0)
            return err_set(e, EXIT_CANNOT, "needs rows of a multiple of %zu weights in %s, not %u",
                           step, m->format->name, m->columns);
    }
    return true;
}

static bool make_freqs(kernel_case *c, const char *name, product *p, err *e) {
    uint32_t count = p->head_dim / 2;
    float *freqs = array_new(count + 1, sizeof *freqs);
    for (uint32_t i = 0; i < count; i++)
        freqs[i] = (float)pow(10000, -2.0 * i / p->head_dim);
    bool ok = case_input_bytes(c, name, freqs, count * sizeof *freqs, &p->freqs, e);
    free(freqs);
    return ok;
}

/* Any x, split. */
static bool fill_split(kernel_case *c, product *p, err *e) {
    size_t columns = p->items[0].columns, count = size_multiply(p->tokens, columns);
    float *x = array_new(count, sizeof *x), *powers = array_new(p->tokens, sizeof *powers);
    size_t words = split_halves_count(p->tokens, (uint32_t)columns);
    uint32_t *halves = array_new(words, sizeof *halves);
    fill_f32(&c->random, c->inputs, x, count);
    reference_split_halves(x, p->tokens, columns, halves, powers);
    bool ok = case_input_bytes(c, "x", halves, words * sizeof *halves, &p->items[0].x, e) &&
              case_input_bytes(c, "powers", powers, p->tokens * sizeof *powers, &p->powers, e);
    free(x);
    free(powers);
    free(halves);
    return ok;
}

/* With large weights of the norm, gate times up would not fit in a float, and fast math may compute
 * it first. A position comes from device memory, as it does in a model. */
static bool fill_buffer(kernel_case *c, const product_layout *a, product_part part, product *p,
                        err *e) {
    const product_matrix *m = &p->items[part.of];
    slice *at = find_buffer(p, part);
    size_t count = count_used(a, p, part);
    distribution all = c->inputs;
    if (part.of >= p->count || (part.role == BIAS && !m->has_bias))
        return true;
    if (part.role == WEIGHTS)
        return case_input_weights(c, part.name, m->format, m->rows, m->columns, at, e);
    if (part.role == FREQS)
        return make_freqs(c, part.name, p, e);
    if (a->prologue == SPLIT_HALVES && part.role != OUTPUT)
        return part.role == POWERS || fill_split(c, p, e);
    if (part.role == POSITION)
        return case_input_bytes(c, part.name, &p->pos.bits, sizeof p->pos.bits, at, e);
    if (get_access(a, p, part) == ACCESS_WRITE)
        return case_output(c, part.name, count * sizeof(float), at, e);
    if (part.role == NORM && a->epilogue == GATED && all == INPUT_NEGATIVE)
        c->inputs = INPUT_NORMAL;
    bool is_cache = part.role == OUTPUT && part.of > 0;
    bool ok = case_input_elem(c, part.name, is_cache ? get_cache_elem(a) : ELEM_F32, count, at, e);
    c->inputs = all;
    return ok;
}

/* The buffers in the order of the arguments. */
static bool build(kernel_case *c, err *e) {
    const product_layout *a = find_layout(c->kernel);
    product p = read_shape(a, c->kernel, &c->shape);
    for (size_t i = 0; a->args[i].role; i++)
        if ((a->args[i].role < ROWS || a->args[i].role == POSITION) &&
            !fill_buffer(c, a, a->args[i], &p, e))
            return false;
    if (p.pos.at.buffer)
        p.pos = param_at(p.pos.at);
    return product_record(c->tape, c->kernel, &p, e);
}

#define PRODUCT(name, about, dims, kernels, shapes, ...)                                           \
    OP(name, about, dims, kernels, shapes, .accepts = accepts, .build = build, __VA_ARGS__)
/* All kernels of matvec have shapes of their own; the lists have the edges of all tiles of tokens. */
PRODUCT(matvec, "y = W x or y += W x, for one x or many", "out x in x batch", matvec_kernels, {0},
        .inner = "in", .many = "batch", .sizes = "out");
PRODUCT(matvec_activate, "y = activation(W x + bias), for one x or many",
        "out x in x batch x activation x bias", activate_kernels,
        SHAPE_LIST(activated_blocks, 7, 256, 1, ACTIVATION_SIGMOID, 1), .inner = "in",
        .many = "batch", .sizes = "out in batch");
PRODUCT(matvec_mixed, "up to 7 products in one launch, each in its own format",
        "rows x columns x products x first_format x tokens", mixed_kernels,
        SHAPE_LIST(mixed, 5, 64, 7, 6), .many = "tokens", .sizes = "rows columns tokens");
PRODUCT(matvec_batched, "three products with the same x", "a x b x c x in", batched_kernels,
        SHAPE_LIST(batched, 7, 3, 5, 96), .inner = "in", .sizes = "a b c in");
PRODUCT(matvec_split, "up to three products of many tokens, x in two halves",
        "a x b x c x in x tokens x activation", split_kernels, SHAPE_LIST(split, 65, 3, 1, 256, 3),
        .inner = "in", .many = "tokens", .sizes = "a b c in tokens");
PRODUCT(silu_matvec, "y += W (silu(gate) * up)", "out x in", silu_kernels,
        SHAPE_LIST(of_silu, 7, 96), .inner = "in", .sizes = "out in");
PRODUCT(rmsnorm_matvec, "y = W rmsnorm(x)", "out x in", normed_kernels,
        SHAPE_LIST(normed_blocks, 7, 96), .inner = "in", .sizes = "out in");
PRODUCT(gate_up_silu, "silu(Wg rmsnorm(x)) * (Wu rmsnorm(x))", "out x in x tokens", gated_kernels,
        SHAPE_LIST(gated, 7, 96), .inner = "in", .many = "tokens", .sizes = "out in tokens");
#define APPEND(name, about, kernels)                                                               \
    PRODUCT(name, about, "pos x heads x kv_heads x head_dim x in x tokens", kernels,               \
            SHAPE_LIST(appended, 3, 3, 1, 6, 96), .inner = "in", .many = "tokens",                 \
            .sizes = "heads kv_heads head_dim in tokens", .places = "pos")
APPEND(qkv_rope_append, "norm, query, key and value, rotated and appended to the caches",
       appended_kernels);
APPEND(qkv_rope_append_f16, "norm, query, key and value, rotated and appended to caches of halves",
       appended_halves_kernels);
