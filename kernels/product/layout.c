#include "layout.h"

#include "harness/base/size.h"
#include "kernels/formats/formats.h"
#include "kernels/kernels.h"
#include "kernels/record.h"

#define FORMAT_ENTRY(f, ...) &format_##f,
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
    slice *const all[] = {[WEIGHTS] = &m->w,   [INPUT] = &m->x,         [BIAS] = &m->bias,
                          [OUTPUT] = &m->y,    [SECOND] = &p->up,       [NORM] = &p->norm_w,
                          [FREQS] = &p->freqs, [POSITION] = &p->pos.at, [POWERS] = &p->powers};
    return all[which.role];
}

static bool is_cache(const product_layout *a, product_part which) {
    return a->epilogue == APPENDED && which.role == OUTPUT && which.of > 0;
}

elem product_get_cache_elem(const product_layout *a) {
    return a->op == &qkv_rope_append_f16_op ? ELEM_F16 : ELEM_F32;
}

size_t product_count_floats(const product_layout *a, const product *p, product_part which) {
    const product_matrix *m = &p->items[which.of];
    if (is_cache(a, which))
        return m->y.bytes / elem_get_bytes(product_get_cache_elem(a));
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

access_mode product_get_access(const product_layout *a, const product *p, product_part which) {
    return which.role != OUTPUT                                   ? ACCESS_READ
           : is_cache(a, which) || p->items[which.of].accumulates ? ACCESS_BOTH
                                                                  : ACCESS_WRITE;
}

void product_spread(const product_layout *a, const kernel *k, product *p) {
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

uint32_t product_fill_list(const tape *t, const kernel *k, const product *p,
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
