#include "product.h"

#include <stddef.h>

#include "harness/base/size.h"
#include "kernels/activation_judge.h"
#include "kernels/ops.h"
#include "kernels/record.h"
#include "layout.h"
#include "oracle.h"

/* What a kernel takes ------------------------------------------------------------------------- */

/* Floats in a load; blocks need the alignment of their fp16 scales, or that of loads of 16 bytes. */
static uint32_t count_floats(const kernel *k) {
    return !k->format ? 4 : k->format->values == 1 && k->multiple_of ? k->multiple_of : 1;
}

static size_t get_alignment(const kernel *k, const weight_format *f) {
    return f->values == 1 ? count_floats(k) * f->bytes : k->multiple_of >= f->values ? 16 : 2;
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
        s.dim[d] = part.role == COUNT ? 1 : *product_find_size(p, part);
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
        while ((f = product_get_format(m->number)) && f != m->format)
            m->number++;
    }
}

static bool check_matrix(const product_layout *a, const kernel *k, product *p, uint32_t i, err *e) {
    const product_matrix *m = &p->items[i];
    shape s = get_shape(a, p, i);
    if (a->epilogue == MIXED && !product_get_format(m->number))
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
static bool check_caches(const kernel *k, const product *p, err *e) {
    const product_matrix *q = &p->items[0], *kv = &p->items[1];
    if (q->rows == 0 || kv->rows == 0 || q->rows % p->head_dim || kv->rows % p->head_dim)
        return err_set(e, EXIT_CANNOT, "%s: %u and %u are not whole heads of %u", k->name, q->rows,
                       kv->rows, p->head_dim);
    size_t row_bytes = size_multiply(kv->rows, sizeof(float)), bytes = kv->y.bytes;
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
    return a->epilogue != APPENDED || check_caches(k, p, e);
}

/* Recording ----------------------------------------------------------------------------------- */

/* Of all matrices; a threadgroup of matvec_mixed has rows of one only. */
static uint32_t count_rows(const product_layout *a, const kernel *k, const product *p) {
    uint32_t rows = 0;
    for (uint32_t i = 0; i < p->count; i++)
        rows += a->epilogue == MIXED ? divide_up(p->items[i].rows, k->rows) * k->rows
                                     : p->items[i].rows;
    return rows;
}

/* The kernels of cuda/ share the rows among their thread blocks: if there are few, each SM has as many.
 * Those for several tokens are clusters of two. */
static uint32_t share_rows(const tape *t, const kernel *k, uint32_t groups, uint32_t out_dim) {
    uint32_t cores = device_get_facts(library_get_device(t->lib))->cores,
             cluster = k->tokens ? 2 : 1;
    if (groups <= 2 * cores)
        groups = divide_up(groups, cores) * cores;
    return divide_up(groups < out_dim ? groups : out_dim, cluster) * cluster;
}

static size3 find_groups(const product_layout *a, const tape *t, const kernel *k,
                         const product *p) {
    uint32_t rows = a->epilogue == GATED ? p->items[0].rows : count_rows(a, k, p);
    size3 groups = record_tiles(k, rows, p->tokens);
    if (k->groups != 0 && groups.x > k->groups)
        groups.x = k->groups;
    if (k->needs & FEATURE_BULK_COPIES)
        groups.x = share_rows(t, k, groups.x, rows);
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
           (flops + (a->prologue == AS_IT_IS ? 0 : 4 * columns) + (a->prologue == NORMED ? 3 : 0));
}

static void fill_list(const kernel *k, const product *p, product_shape list[PRODUCT_MATRICES]) {
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
    launch_arg made = ARG_BUFFER(part.name, *product_find_buffer(p, part),
                                 product_count_floats(a, p, part), product_get_access(a, p, part),
                                 ELEM_F32, is_x ? get_x_alignment(k) : sizeof(float));
    if (part.role == WEIGHTS)
        made = (launch_arg)ARG_WEIGHTS(part.name, m->w, m->format, m->rows, m->columns,
                                       get_alignment(k, m->format));
    made.is_unread = !is_there || part.role == FREQS; /* which are few */
    return made;
}

static launch_arg make_value(const kernel *k, product *p, product_part part, size3 groups) {
    launch_arg made = ARG_U32(0);
    if (part.role == EPS)
        made = (launch_arg)ARG_F32(p->eps);
    else if (part.role == POSITION)
        made = (launch_arg)ARG_PARAM(p->pos);
    else if (part.role == SHARE)
        made = (launch_arg)ARG_U32(groups.x ? p->items[0].rows / groups.x : 0);
    else
        made = (launch_arg)ARG_U32(*product_find_size(p, part));
    made.is_absent = (part.role == TOKENS && k->tokens == 0) ||
                     (part.role == SHARE && !(k->needs & FEATURE_BULK_COPIES));
    return made;
}

bool product_record(tape *t, const kernel *k, const product *given, err *e) {
    const product_layout *a = product_find_layout(k);
    product p = *given;
    product_shape list[PRODUCT_MATRICES] = {{0}};
    launch_arg args[LAUNCH_BUFFERS];
    size_t count = 0;
    product_spread(a, k, &p);
    find_numbers(&p);
    if (!check(a, k, &p, e))
        return false;
    const uint32_t stack[] = {p.items[0].rows, p.items[1].rows, p.items[2].rows,
                              p.items[0].columns};
    launch_work work = {.groups = find_groups(a, t, k, &p),
                        .flops = count_flops(a, k, &p),
                        .oracle = product_oracle};
    if (k->most && a->prologue == NORMED) /* it keeps the values */
        work.threadgroup_bytes = p.items[0].columns * (uint32_t)sizeof(float);
    if (a->epilogue == MIXED)
        fill_list(k, &p, list);
    for (; a->args[count].role; count++) {
        product_part part = a->args[count];
        args[count] = part.role == STACK  ? (launch_arg)ARG_BYTES(stack, sizeof stack)
                      : part.role == LIST ? (launch_arg)ARG_BYTES(list, sizeof list)
                      : part.role < ROWS  ? make_buffer(a, k, &p, part)
                                          : make_value(k, &p, part, work.groups);
        if (a->epilogue == APPENDED && part.role == OUTPUT && part.of > 0) {
            work.appends |= p.tokens == 1 ? 1u << count : 0;
            work.unmoved += 2 * p.items[part.of].y.bytes -
                            (uint64_t)p.tokens * p.items[part.of].rows * sizeof(float);
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
