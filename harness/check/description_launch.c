/* description_launch: the launch that a description says: constants, grid, values and structs.
 * Owns neither buffers nor their contents. */
#include <string.h>

#include "description.h"
#include "harness/device/device.h"

bool describe_compute(const description *d, const described_expression *x, number *out, err *e) {
    bounded value;
    err why;
    if (!x->parsed)
        return expression_evaluate(x->text, d->find, d->context, out, &why) ||
               describe_refuse(d, x->line, e, "%s", why.text);
    expression_start(x->parsed, (arithmetic){false, false});
    if (!expression_compute(x->parsed, NULL, &value, &why))
        return describe_refuse(d, x->line, e, "%s", why.text);
    *out = expression_is_whole(x->parsed) ? number_whole(expression_get_whole(x->parsed))
                                          : number_real(value.value);
    return true;
}

bool describe_compute_size(const description *d, const described_expression *x, int64_t least,
                           int64_t most, int64_t *out, err *e) {
    number value;
    if (!describe_compute(d, x, &value, e))
        return false;
    *out = value.whole;
    return (!value.is_real && value.whole >= least && value.whole <= most) ||
           describe_refuse(d, x->line, e,
                           "'%.60s' is %.9g, expected a whole number from %lld to %lld", x->text,
                           value.real, (long long)least, (long long)most);
}

/* Stores the value as an element; one that does not fit is an error. */
static bool write_scalar(const description *d, const described_expression *x, elem type, void *out,
                         err *e) {
    number value;
    if (!describe_compute(d, x, &value, e))
        return false;
    return number_store(value, type, out) ||
           describe_refuse(d, x->line, e, "'%.60s' is %.9g, which does not fit into %s", x->text,
                           value.real, elem_get_name(type));
}

static bool set_inline(const description *d, launch *l, const described_argument *a,
                       const void *data, size_t bytes, err *e) {
    if (((size_t)l->inline_used + 15) / 16 * 16 + bytes > LAUNCH_INLINE_BYTES)
        return describe_refuse(d, a->line, e, "values and structs have more than %d bytes in all",
                               LAUNCH_INLINE_BYTES);
    launch_set_bytes(l, a->index, data, bytes);
    return true;
}

/* Fields are aligned as in C. */
static bool set_struct(description *d, launch *l, const described_argument *a, err *e) {
    uint8_t data[LAUNCH_INLINE_BYTES] = {0};
    size_t used = 0, alignment = 1;
    for (size_t i = 0; i < a->field_count; i++) {
        described_scalar *f = &d->fields[a->first_field + i];
        size_t bytes = elem_get_bytes(f->type);
        f->offset = (used + bytes - 1) / bytes * bytes;
        used = f->offset + bytes;
        alignment = bytes > alignment ? bytes : alignment;
        if (used > sizeof data)
            return describe_refuse(d, f->value.line, e, "a struct has at most %zu bytes",
                                   sizeof data);
        if (!write_scalar(d, &f->value, f->type, data + f->offset, e))
            return false;
    }
    return set_inline(d, l, a, data, (used + alignment - 1) / alignment * alignment, e);
}

bool describe_set_value(description *d, launch *l, const described_argument *a, err *e) {
    uint64_t bits = 0;
    return a->kind == ARGUMENT_STRUCT ? set_struct(d, l, a, e)
                                      : write_scalar(d, &a->value, a->type, &bits, e) &&
                                            set_inline(d, l, a, &bits, elem_get_bytes(a->type), e);
}

bool describe_set_grid(description *d, const described_grid *g, launch *l, err *e) {
    int64_t grid[3] = {1, 1, 1}, group[3] = {1, 1, 1}, bytes = 0;
    for (size_t i = 0; i < g->group.count; i++)
        if (!describe_compute_size(d, &g->group.items[i], 1, 1024, &group[i], e))
            return false;
    d->group_size = group[0] * group[1] * group[2];
    for (size_t i = 0; i < g->grid.count; i++)
        if (!describe_compute_size(d, &g->grid.items[i], 1, INT32_MAX, &grid[i], e))
            return false;
    for (size_t i = 0; i < g->threadgroup.count; i++) {
        if (!describe_compute_size(d, &g->threadgroup.items[i], 0, 1 << 20, &bytes, e))
            return false;
        l->threadgroup_bytes[i] = (uint32_t)bytes;
    }
    for (int i = 0; i < 3 && g->grid_kind == 't'; i++)
        grid[i] = (grid[i] + group[i] - 1) / group[i];
    size3 size = {(uint32_t)grid[0], (uint32_t)grid[1], (uint32_t)grid[2]};
    size3 threads = {(uint32_t)group[0], (uint32_t)group[1], (uint32_t)group[2]};
    if (g->grid_kind == 'd')
        launch_set_threads(l, size, threads);
    else
        launch_set_groups(l, size, threads);
    return true;
}

launch *describe_add_launch(const description *d, tape *t, const char *file, const char *name,
                            err *e) {
    constant_value constants[DESCRIBE_CONSTANTS] = {{.index = 0}};
    const msl_unit *unit = d->constant_count ? library_find_unit(t->lib, file, e) : NULL;
    err why;
    if (d->constant_count > 0 && !unit)
        return NULL;
    for (size_t i = 0; i < d->constant_count; i++) {
        const described_scalar *s = &d->constants[i];
        constants[i] = (constant_value){.index = (uint32_t)s->index, .type = s->type};
        if (!write_scalar(d, &s->value, s->type, &constants[i].bits, e))
            return NULL;
    }
    if (unit && !constant_check(unit, constants, d->constant_count, &why)) {
        describe_refuse(d, d->constants[0].value.line, e, "%s", why.text);
        return NULL;
    }
    return tape_add_specialised(t, file, name, constants, d->constant_count, e);
}
