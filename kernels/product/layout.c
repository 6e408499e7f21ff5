#include "layout.h"

#include <assert.h>
#include <string.h>

#include "harness/base/size.h"
#include "kernels/formats/formats.h"
#include "kernels/ops.h"
#include "kernels/record.h"

/* Buffers with their names in messages, numbers (N), of the first matrix or of another (N_OF). */
/* clang-format off */
#define N_OF(what, i) {what, i, NULL}
#define N(what) N_OF(what, 0)
#define MATRIX(i) {WEIGHTS, i, "w" #i}, {INPUT, i, "x" #i}, {BIAS, i, "b" #i}, {OUTPUT, i, "y" #i}
static const product_layout layouts[] = {
    {&matvec_op, NULL, AS_IT_IS, STORED, 1,
     {{WEIGHTS, 0, "w"}, {INPUT, 0, "x"}, {OUTPUT, 0, "y"}, N(ROWS), N(COLUMNS), N(TOKENS), N(SHARE)},
     {N(ROWS), N(COLUMNS), N(TOKENS)}},
    {&matvec_activate_op, NULL, AS_IT_IS, ACTIVATED, 1,
     {{WEIGHTS, 0, "w"}, {INPUT, 0, "x"}, {OUTPUT, 0, "y"}, N(ROWS), N(COLUMNS), {BIAS, 0, "bias"},
      N(HAS_BIAS), N(ACTIVATION), N(TOKENS)},
     {N(ROWS), N(COLUMNS), N(TOKENS), N(ACTIVATION), N(HAS_BIAS)}},
    {&matvec_mixed_op, NULL, AS_IT_IS, MIXED, PRODUCT_MATRICES,
     {MATRIX(0), MATRIX(1), MATRIX(2), MATRIX(3), MATRIX(4), MATRIX(5), MATRIX(6), N(LIST)},
     {N(ROWS), N(COLUMNS), N(COUNT), N(FORMAT)}},
    {&matvec_batched_op, NULL, AS_IT_IS, STORED, 3,
     {{WEIGHTS, 0, "wa"}, {WEIGHTS, 1, "wb"}, {WEIGHTS, 2, "wc"}, {INPUT, 0, "x"},
      {OUTPUT, 0, "ya"}, {OUTPUT, 1, "yb"}, {OUTPUT, 2, "yc"}, N(STACK)},
     {N(ROWS), N_OF(ROWS, 1), N_OF(ROWS, 2), N(COLUMNS)}},
    {&silu_matvec_op, NULL, SILU, STORED, 1,
     {{WEIGHTS, 0, "w"}, {INPUT, 0, "gate"}, {SECOND, 0, "up"}, {OUTPUT, 0, "y"}, N(ROWS), N(COLUMNS)},
     {N(ROWS), N(COLUMNS)}},
    {&rmsnorm_matvec_op, "megakernel", NORMED, STORED, 1,
     {{INPUT, 0, "x"}, {NORM, 0, "norm_w"}, {WEIGHTS, 0, "w"}, {OUTPUT, 0, "y"}, N(COLUMNS), N(EPS), N(ROWS)},
     {N(ROWS), N(COLUMNS)}},
    {&rmsnorm_matvec_op, NULL, NORMED, STORED, 1,
     {{INPUT, 0, "x"}, {NORM, 0, "norm_w"}, {WEIGHTS, 0, "w"}, {OUTPUT, 0, "y"}, N(ROWS), N(COLUMNS), N(EPS)},
     {N(ROWS), N(COLUMNS)}},
    {&gate_up_silu_op, NULL, NORMED, GATED, 2,
     {{INPUT, 0, "x"}, {NORM, 0, "norm_w"}, {WEIGHTS, 0, "w_gate"}, {WEIGHTS, 1, "w_up"},
      {OUTPUT, 0, "out"}, N(ROWS), N(COLUMNS), N(EPS), N(TOKENS)},
     {N(ROWS), N(COLUMNS), N(TOKENS)}},
    {&qkv_rope_append_op, NULL, NORMED, APPENDED, 3,
     {{INPUT, 0, "x"}, {NORM, 0, "norm_w"}, {WEIGHTS, 0, "wq"}, {WEIGHTS, 1, "wk"},
      {WEIGHTS, 2, "wv"}, {OUTPUT, 0, "q"}, {OUTPUT, 1, "k_cache"}, {OUTPUT, 2, "v_cache"},
      {FREQS, 0, "freqs"}, N(ROWS), N_OF(ROWS, 1), N(COLUMNS), N(HEAD_DIM), N(EPS),
      {POSITION, 0, "pos"}, N(TOKENS)},
     {N(POSITION), N(HEADS), N_OF(HEADS, 1), N(HEAD_DIM), N(COLUMNS), N(TOKENS)}},
};
/* clang-format on */

const product_layout *product_find_layout(const kernel *k) {
    for (size_t i = 0; i < COUNT_OF(layouts); i++) {
        const product_layout *a = &layouts[i];
        if (k >= a->op->kernels && k < a->op->kernels + a->op->kernel_count &&
            (!a->variant || strcmp(a->variant, k->variant) == 0))
            return a;
    }
    assert(!"a kernel of a product");
    return NULL;
}

#define FORMAT_ENTRY(f, shapes) &format_##f,
static const weight_format *const formats[] = {FORMATS(FORMAT_ENTRY)};

const weight_format *product_get_format(uint32_t number) {
    return number < COUNT_OF(formats) ? formats[number] : NULL;
}

uint32_t *product_find_size(product *p, product_part which) {
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

slice *product_find_buffer(product *p, product_part which) {
    product_matrix *m = &p->items[which.of];
    slice *const all[] = {
        [WEIGHTS] = &m->w, [INPUT] = &m->x,     [BIAS] = &m->bias,   [OUTPUT] = &m->y,
        [SECOND] = &p->up, [NORM] = &p->norm_w, [FREQS] = &p->freqs, [POSITION] = &p->pos.at};
    return all[which.role];
}

static bool is_cache(const product_layout *a, product_part which) {
    return a->epilogue == APPENDED && which.role == OUTPUT && which.of > 0;
}

size_t product_count_floats(const product_layout *a, const product *p, product_part which) {
    const product_matrix *m = &p->items[which.of];
    if (is_cache(a, which))
        return m->y.bytes / sizeof(float);
    size_t tokens = which.role == INPUT || which.role == OUTPUT ? p->tokens : 1;
    return which.role == FREQS
               ? p->head_dim / 2
               : size_multiply(tokens,
                               which.role == OUTPUT || which.role == BIAS ? m->rows : m->columns);
}

access_mode product_get_access(const product_layout *a, const product *p, product_part which) {
    return which.role != OUTPUT                                   ? ACCESS_READ
           : is_cache(a, which) || p->items[which.of].accumulates ? ACCESS_BOTH
                                                                  : ACCESS_WRITE;
}

void product_spread(const product_layout *a, const kernel *k, product *p) {
    if (a->epilogue == MIXED)
        return;
    if (a->op != &matvec_batched_op)
        p->count = (uint32_t)a->matrices;
    for (size_t i = p->count; i < a->matrices; i++)
        p->items[i].rows = 0;
    if (a->epilogue == GATED)
        p->items[1].rows = p->items[0].rows;
    if (a->epilogue == APPENDED)
        p->items[2].rows = p->items[1].rows;
    for (size_t i = 0; i < a->matrices; i++) {
        p->items[i].columns = p->items[0].columns;
        p->items[i].format = k->format;
        p->items[i].accumulates = k->accumulates;
    }
}
