#include "cases.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "kernels/activation_judge.h"
#include "kernels/record.h"
#include "layout.h"

/* matvec_mixed: rows x columns of the first matrix; each next one has 5 rows more, another format,
 * activation and, in turn, a bias, no bias, or an output to which it adds. */
static void vary(product *p, uint32_t first) {
    uint32_t formats = 0;
    while (product_get_format(formats))
        formats++;
    for (uint32_t i = 0; i < p->count && i < PRODUCT_MATRICES; i++) {
        product_matrix *m = &p->items[i];
        m->format = product_get_format((first + i) % formats);
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
        *product_find_size(&p, a->shape[d]) = s->dim[d];
    p.tokens = p.tokens ? p.tokens : 1;
    if (a->epilogue == MIXED)
        vary(&p, s->dim[3]);
    else if (a->matrices == 3)
        p.count = p.items[2].rows ? 3 : 2;
    product_spread(a, k, &p);
    for (uint32_t i = 0; a->epilogue == APPENDED && i < 3; i++) {
        p.items[i].rows *= p.head_dim;
        p.items[i].y.bytes = /* of a cache: one more row, which is never written */
            size_multiply((size_t)p.pos.bits + p.tokens + 1, p.items[i].rows) * sizeof(float);
    }
    return p;
}

bool product_accepts(const kernel *k, const shape *s, err *e) {
    const product_layout *a = product_find_layout(k);
    product p = read_shape(a, k, s);
    if (a->epilogue == ACTIVATED)
        return activation_check(p.items[0].activation, e);
    if (a->epilogue == APPENDED)
        return (p.head_dim != 0 && p.head_dim % 2 == 0) ||
               err_set(e, EXIT_CANNOT, "needs an even head_dim, not %u", p.head_dim);
    bool is_mixed = a->epilogue == MIXED;
    if (is_mixed && (p.count == 0 || p.count > a->matrices))
        return err_set(e, EXIT_CANNOT, "needs 1 to %zu products, not %u", a->matrices, p.count);
    for (uint32_t i = 0; is_mixed && i < p.count; i++) {
        const product_matrix *m = &p.items[i];
        size_t step = m->format->values < 4 ? 4 : m->format->values;
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

/* With large weights of the norm, gate times up would not fit in a float, and fast math may compute
 * it first. A position comes from device memory, as it does in a model. */
static bool make_buffer(kernel_case *c, const product_layout *a, product_part part, product *p,
                        err *e) {
    const product_matrix *m = &p->items[part.of];
    slice *at = product_find_buffer(p, part);
    size_t count = product_count_floats(a, p, part);
    distribution all = c->inputs;
    if (part.of >= p->count || (part.role == BIAS && !m->has_bias))
        return true;
    if (part.role == WEIGHTS)
        return case_input_weights(c, part.name, m->format, m->rows, m->columns, at, e);
    if (part.role == FREQS)
        return make_freqs(c, part.name, p, e);
    if (part.role == POSITION)
        return case_input_bytes(c, part.name, &p->pos.bits, sizeof p->pos.bits, at, e);
    if (product_get_access(a, p, part) == ACCESS_WRITE)
        return case_output(c, part.name, count * sizeof(float), at, e);
    if (part.role == NORM && a->epilogue == GATED && all == INPUT_NEGATIVE)
        c->inputs = INPUT_NORMAL;
    bool ok = case_input_f32(c, part.name, count, at, e);
    c->inputs = all;
    return ok;
}

/* The buffers in the order of the arguments. */
bool product_build(kernel_case *c, err *e) {
    const product_layout *a = product_find_layout(c->kernel);
    product p = read_shape(a, c->kernel, &c->shape);
    for (size_t i = 0; a->args[i].role; i++)
        if ((a->args[i].role < ROWS || a->args[i].role == POSITION) &&
            !make_buffer(c, a, a->args[i], &p, e))
            return false;
    if (p.pos.at.buffer)
        p.pos = param_at(p.pos.at);
    return product_record(c->tape, c->kernel, &p, e);
}
