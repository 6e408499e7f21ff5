/* description_launch: the launch that a description says: constants, grid, values and structs.
 * Owns neither buffers nor their contents. */
#include <string.h>

#include "description.h"
#include "harness/base/size.h"

static expression_scope get_scope(const description *d) {
    return (expression_scope){.symbols = d->symbols, .symbol_count = d->size_count};
}

bool describe_compute(const description *d, const described_expression *x, number *out, err *e) {
    const expression_scope scope = get_scope(d);
    err why;
    return expression_evaluate(x->text, &scope, out, &why) ||
           describe_refuse(d, x->line, e, "%s", why.text);
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

bool describe_count_elements(const description *d, const described_argument *a, int64_t *sizes,
                             size_t *count, err *e) {
    const int64_t most = (int64_t)1 << 36;
    int64_t size = 0;
    *count = 1;
    for (size_t i = 0; i < a->sizes.count; i++) {
        if (!describe_compute_size(d, &a->sizes.items[i], 1, most, &size, e))
            return false;
        if (!size_multiply_checked(*count, (size_t)size, count) || *count > (size_t)most)
            return describe_refuse(d, a->line, e, "the buffer '%.40s' would be too large", a->name);
        if (sizes)
            sizes[i] = size;
    }
    return true;
}

/* Stores the value as an element; one that does not fit is an error. */
static bool write_scalar(const description *d, const described_expression *x, elem type, void *out,
                         err *e) {
    const expression_scope scope = get_scope(d);
    err why;
    return contents_parse_value(x->text, type, &scope, out, &why) ||
           describe_refuse(d, x->line, e, "%s", why.text);
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

static bool compute_sizes(const description *d, const expressions *list, int64_t *out, err *e) {
    out[0] = out[1] = out[2] = 1;
    for (size_t i = 0; i < list->count; i++)
        if (!describe_compute_size(d, &list->items[i], 1, INT32_MAX, &out[i], e))
            return false;
    return true;
}

bool describe_compute_group(const description *d, const described_grid *g, size3 *out, err *e) {
    int64_t group[3];
    if (!compute_sizes(d, &g->group, group, e))
        return false;
    *out = (size3){(uint32_t)group[0], (uint32_t)group[1], (uint32_t)group[2]};
    return true;
}

bool describe_set_grid(const description *d, const described_grid *g, launch *l, err *e) {
    int64_t grid[3], bytes = 0;
    size3 group;
    if (!describe_compute_group(d, g, &group, e) || !compute_sizes(d, &g->grid, grid, e))
        return false;
    for (size_t i = 0; i < g->threadgroup.count; i++) {
        if (!describe_compute_size(d, &g->threadgroup.items[i], 0, 1 << 20, &bytes, e))
            return false;
        l->threadgroup_bytes[i] = (uint32_t)bytes;
    }
    size3 size = {(uint32_t)grid[0], (uint32_t)grid[1], (uint32_t)grid[2]};
    if (g->grid_kind == 'd')
        launch_set_threads(l, size, group);
    else if (g->grid_kind == 't')
        launch_set_groups(l,
                          (size3){(size.x + group.x - 1) / group.x,
                                  (size.y + group.y - 1) / group.y,
                                  (size.z + group.z - 1) / group.z},
                          group);
    else
        launch_set_groups(l, size, group);
    return true;
}

bool describe_compute_constants(const description *d, constant_value *out, err *e) {
    for (size_t i = 0; i < d->constant_count; i++) {
        const described_scalar *s = &d->constants[i];
        out[i] = (constant_value){.index = (uint32_t)s->index, .type = s->type};
        if (!write_scalar(d, &s->value, s->type, &out[i].bits, e))
            return false;
    }
    return true;
}

launch *describe_add_launch(const description *d, tape *t, const char *file, const char *name,
                            err *e) {
    constant_value constants[DESCRIBE_CONSTANTS];
    const msl_unit *unit = d->constant_count ? library_find_unit(t->lib, file, e) : NULL;
    err why;
    if ((d->constant_count > 0 && !unit) || !describe_compute_constants(d, constants, e))
        return NULL;
    if (unit && !constant_check(unit, constants, d->constant_count, &why)) {
        describe_refuse(d, d->constants[0].value.line, e, "%s", why.text);
        return NULL;
    }
    return tape_add_specialised(t, file, name, constants, d->constant_count, e);
}
