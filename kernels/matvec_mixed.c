/* matvec_mixed: launches, oracle and cases of several products in one launch, each with its own
 * format, input, bias and activation.
 *
 * Product i has buffers 4 i to 4 i + 3: w, x, bias, y. Metal requires every buffer to be bound, so
 * what a product does not have, and all of a product that is not there, is bound to its x or to
 * that of the first, and is not touched. */
#include "kernels.h"

#include <math.h>

#include "activation_judge.h"
#include "formats/formats.h"
#include "harness/base/size.h"
#include "record.h"
#include "reference/reference.h"

enum { LIST = 4 * MATVEC_MIXED_MOST, ROWS = 8 };

/* As matvec_mixed.metal reads it. */
typedef struct {
    uint32_t rows, in_dim, groups;
    uint8_t format, activation, has_bias, accumulates;
} product_shape;

#define FORMAT_ENTRY(f, shapes) &format_##f,
static const weight_format *const formats[] = {FORMATS(FORMAT_ENTRY)};

static bool find_format(const weight_format *f, uint8_t *number) {
    for (size_t i = 0; i < COUNT_OF(formats); i++)
        if (formats[i] == f) {
            *number = (uint8_t)i;
            return true;
        }
    return false;
}

static void matvec_mixed_oracle(const launch *l, oracle_io *io) {
    const product_shape *list = io->in[LIST];
    for (size_t p = 0; p < MATVEC_MIXED_MOST && list[p].rows != 0; p++) {
        expected *out = &io->out[4 * p + 3];
        const float *bias = list[p].has_bias ? io->in[4 * p + 2] : NULL;
        for (size_t i = 0; i < out->count; i++) {
            if (!list[p].accumulates) /* else it starts as y before the launch */
                out->value[i] = bias ? (double)bias[i] : 0;
            out->scale[i] = fabs(out->value[i]);
        }
        reference_matvec(formats[list[p].format], io->in[4 * p], io->in[4 * p + 1], list[p].rows,
                         list[p].in_dim, 1, out->value, out->scale);
        out->terms = list[p].in_dim + 1.0;
        activation_judge(list[p].activation, l->pipeline->math != MATH_SAFE, out);
    }
}

static bool takes_count(size_t products, err *e) {
    return (products > 0 && products <= MATVEC_MIXED_MOST) ||
           err_set(e, EXIT_CANNOT, "needs 1 to %d products, not %zu", MATVEC_MIXED_MOST, products);
}

/* Of product `index` of a shape. */
static const weight_format *get_format(const shape *s, uint32_t index) {
    return formats[(s->dim[3] + index) % COUNT_OF(formats)];
}

static uint32_t get_columns(const shape *s, uint32_t index) {
    return get_format(s, index)->values == 256 ? divide_up(s->dim[1], 256) * 256 : s->dim[1];
}

static bool matvec_mixed_accepts(const kernel *k, const shape *s, err *e) {
    (void)k;
    bool ok = takes_count(s->dim[2], e);
    for (uint32_t i = 0; ok && i < s->dim[2]; i++) {
        size_t values = get_format(s, i)->values, step = values < 4 ? 4 : values;
        ok = get_columns(s, i) % step == 0 ||
             err_set(e, EXIT_CANNOT, "needs rows of a multiple of %zu weights in %s, not %u", step,
                     get_format(s, i)->name, get_columns(s, i));
    }
    return ok;
}

static bool check_product(const kernel *k, const matvec_product *p, product_shape *s, err *e) {
    if (!find_format(p->format, &s->format))
        return err_set(e, EXIT_CANNOT, "%s: cannot read weights in %s", k->name, p->format->name);
    if (!RECORD_TAKES(&matvec_mixed_op, k, e, p->rows, p->columns, 1, s->format))
        return false;
    if (p->accumulates && (p->activation != ACTIVATION_NONE || p->bias.buffer))
        return err_set(e, EXIT_CANNOT, "%s: what is added to y has no bias and no activation",
                       k->name);
    if (p->rows > UINT32_MAX / MATVEC_MIXED_MOST)
        return err_set(e, EXIT_CANNOT, "%s: more rows than 32 bits can count", k->name);
    *s = (product_shape){.rows = p->rows,
                         .in_dim = p->columns,
                         .groups = divide_up(p->rows, ROWS),
                         .format = s->format,
                         .activation = (uint8_t)p->activation,
                         .has_bias = p->bias.buffer != NULL,
                         .accumulates = p->accumulates};
    err why;
    return activation_check(p->activation, &why) ||
           err_set(e, why.code, "%s %s", k->name, why.text);
}

/* Cuts the slices down to what is used; a product of floats reads four of them at a time. */
static bool trim_product(const kernel *k, matvec_product *p, err *e) {
    size_t alignment = p->format->values == 1 ? 4 * p->format->bytes : 2;
    return record_check_weights(k, "w", p->format, p->w, p->rows, p->columns, alignment, e) &&
           record_trim(k, "x", size_multiply(p->columns, sizeof(float)), 16, &p->x, e) &&
           record_trim(k, "y", size_multiply(p->rows, sizeof(float)), sizeof(float), &p->y, e) &&
           (!p->bias.buffer || record_trim(k, "bias", size_multiply(p->rows, sizeof(float)),
                                           sizeof(float), &p->bias, e));
}

bool matvec_mixed_record(tape *t, const kernel *k, const matvec_product *products, size_t count,
                         err *e) {
    product_shape list[MATVEC_MIXED_MOST] = {{0}};
    matvec_product p[MATVEC_MIXED_MOST];
    uint32_t groups = 0;
    err why;
    if (!takes_count(count, &why))
        return err_set(e, why.code, "%s %s", k->name, why.text);
    for (size_t i = 0; i < count; i++) {
        p[i] = products[i];
        if (!check_product(k, &p[i], &list[i], e) || !trim_product(k, &p[i], e))
            return false;
        groups += list[i].groups;
    }
    launch *l = record_launch(t, k, e);
    if (!l)
        return false;
    for (size_t i = 0; i < MATVEC_MIXED_MOST; i++) {
        const matvec_product *own = i < count ? &p[i] : &p[0];
        int at = 4 * (int)i;
        launch_bind(l, at, own->w, ACCESS_READ, ELEM_U8);
        launch_bind(l, at + 1, own->x, ACCESS_READ, ELEM_F32);
        launch_bind(l, at + 2, own->bias.buffer ? own->bias : own->x, ACCESS_READ, ELEM_F32);
        if (i >= count) {
            launch_bind(l, at + 3, own->x, ACCESS_READ, ELEM_F32);
            continue;
        }
        launch_bind(l, at + 3, own->y, own->accumulates ? ACCESS_BOTH : ACCESS_WRITE, ELEM_F32);
        l->bytes += own->w.bytes + own->x.bytes + (own->bias.buffer ? own->bias.bytes : 0) +
                    (own->accumulates ? 2 : 1) * own->y.bytes;
        l->flops += 2 * (uint64_t)own->rows * own->columns + 5 * (uint64_t)own->rows;
    }
    launch_set_bytes(l, LIST, list, sizeof list);
    launch_set_groups(l, (size3){groups, 1, 1}, (size3){k->group, 1, 1});
    l->oracle = matvec_mixed_oracle;
    return true;
}

/* --- cases --- */

/* rows x columns of the first product; each next one has 5 rows more, another format, activation
 * and, in turn, a bias, no bias, or an output to which it adds. */
static bool make_product(kernel_case *c, uint32_t index, matvec_product *p, err *e) {
    const uint32_t *dim = c->shape.dim;
    p->format = get_format(&c->shape, index);
    p->rows = dim[0] + 5 * index;
    p->columns = get_columns(&c->shape, index);
    p->accumulates = index % 3 == 2;
    p->activation = p->accumulates ? ACTIVATION_NONE : (dim[3] + index) % ACTIVATION_COUNT;
    char w[] = {'w', (char)('0' + index), 0}, x[] = {'x', (char)('0' + index), 0},
         b[] = {'b', (char)('0' + index), 0}, y[] = {'y', (char)('0' + index), 0};
    return case_input_weights(c, w, p->format, p->rows, p->columns, &p->w, e) &&
           case_input_f32(c, x, p->columns, &p->x, e) &&
           (index % 3 != 1 || case_input_f32(c, b, p->rows, &p->bias, e)) &&
           (p->accumulates ? case_input_f32(c, y, p->rows, &p->y, e)
                           : case_output(c, y, p->rows * sizeof(float), &p->y, e));
}

static bool matvec_mixed_build(kernel_case *c, err *e) {
    matvec_product products[MATVEC_MIXED_MOST] = {{.rows = 0}};
    uint32_t count = c->shape.dim[2];
    for (uint32_t i = 0; i < count && i < MATVEC_MIXED_MOST; i++)
        if (!make_product(c, i, &products[i], e))
            return false;
    return matvec_mixed_record(c->tape, c->kernel, products, count, e);
}

/* 1 to 7 products; each format in the first place; rows around the 8 of a threadgroup. */
static const shape shapes[] = {
    {{1, 32, 1, 0}},    {{7, 64, 2, 1}},   {{8, 96, 3, 2}},   {{9, 32, 4, 3}},  {{3, 544, 5, 4}},
    {{33, 32, 6, 5}},   {{1, 96, 7, 6}},   {{2, 32, 7, 7}},   {{15, 64, 7, 8}}, {{16, 32, 7, 9}},
    {{17, 128, 7, 10}}, {{64, 768, 7, 8}}, {{768, 64, 4, 8}},
};

static const kernel kernels[] = {
    {.name = "matvec_mixed",
     .about = "one simdgroup per row",
     .file = "matvec_mixed.metal",
     .group = 256,
     .rows = ROWS},
};

OP(matvec_mixed, "up to 7 products in one launch, each in its own format",
   "rows x columns x products x first_format", kernels, SHAPE_LIST(shapes, 5, 64, 7, 6),
   .accepts = matvec_mixed_accepts, .sizes = "rows columns", .build = matvec_mixed_build);
