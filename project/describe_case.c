/* describe_case: the launch of a described op: buffers with their contents, scalars, constants,
 * grid. */
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array_file.h"
#include "describe_parts.h"
#include "harness/base/size.h"
#include "harness/device/device.h"
#include "kernels/record.h"

/* A whole number from least to most. */
static bool compute_size(const description *d, const described_expression *x, int64_t least,
                         int64_t most, int64_t *out, err *e) {
    number value;
    if (!describe_compute(d, x, &value, e))
        return false;
    *out = value.whole;
    return (value.whole >= least && value.whole <= most) ||
           describe_refuse(d, x->line, e, "'%.60s' is %lld, expected %lld to %lld", x->text,
                           (long long)value.whole, (long long)least, (long long)most);
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

/* Buffers ------------------------------------------------------------------------------------- */

static bool count_elements(const description *d, const described_argument *a, size_t *count,
                           err *e) {
    int64_t size = 0;
    *count = 1;
    for (size_t i = 0; i < a->sizes.count; i++)
        if (!compute_size(d, &a->sizes.items[i], 1, (int64_t)1 << 36, &size, e))
            return false;
        else if (!size_multiply_checked(*count, (size_t)size, count) || *count > (size_t)1 << 36)
            return describe_refuse(d, a->line, e, "the buffer '%.40s' would be too large", a->name);
    return true;
}

static void draw(kernel_case *c, int64_t below, double *values, size_t count) {
    if (below > 0) {
        for (size_t i = 0; i < count; i++)
            values[i] = (double)rng_below(&c->random, (uint32_t)below);
        return;
    }
    float *floats = malloc(size_multiply(count, sizeof *floats));
    assert(floats);
    fill_f32(&c->random, c->inputs, floats, count);
    for (size_t i = 0; i < count; i++)
        values[i] = (double)floats[i];
    free(floats);
}

static bool fill(const description *d, kernel_case *c, const described_argument *a, double *values,
                 size_t count, err *e) {
    char path[PATH_MAX];
    int64_t below = 0;
    if (a->from)
        return describe_find_file(d, a, path, sizeof path, e) &&
               array_file_read(path, a->type, values, count, e);
    if (a->below.text && !compute_size(d, &a->below, 1, UINT32_MAX, &below, e))
        return false;
    draw(c, below, values, count);
    return true;
}

static bool make_buffer(const description *d, kernel_case *c, const described_argument *a,
                        slice *out, err *e) {
    size_t count = 0, size = elem_get_bytes(a->type);
    if (!count_elements(d, a, &count, e))
        return false;
    double *values = calloc(count, sizeof *values);
    unsigned char *data = malloc(size_multiply(count, size));
    assert(values && data);
    bool ok = (a->kind == ARGUMENT_OUT && !a->from) || fill(d, c, a, values, count, e);
    for (size_t i = 0; ok && i < count; i++)
        elem_write(a->type, data, i, values[i]);
    ok = ok && (a->kind == ARGUMENT_OUT ? case_output(c, a->name, count * size, out, e)
                                        : case_input_bytes(c, a->name, data, count * size, out, e));
    free(values);
    free(data);
    return ok;
}

/* The launch ---------------------------------------------------------------------------------- */

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

static bool set_argument(description *d, launch *l, const described_argument *a, slice at, err *e) {
    static const access_mode access[] = {ACCESS_READ, ACCESS_WRITE, ACCESS_BOTH};
    uint64_t bits = 0;
    if (a->kind == ARGUMENT_STRUCT)
        return set_struct(d, l, a, e);
    if (a->kind == ARGUMENT_VALUE)
        return write_scalar(d, &a->value, a->type, &bits, e) &&
               set_inline(d, l, a, &bits, elem_get_bytes(a->type), e);
    launch_bind(l, a->index, at, access[a->kind], a->type);
    l->bytes += (a->kind == ARGUMENT_BOTH ? 2 : 1) * at.bytes;
    return true;
}

static bool set_grid(const description *d, const described_grid *g, launch *l, err *e) {
    int64_t grid[3] = {1, 1, 1}, group[3] = {1, 1, 1}, bytes = 0;
    for (size_t i = 0; i < g->group.count; i++)
        if (!compute_size(d, &g->group.items[i], 1, 1024, &group[i], e))
            return false;
    for (size_t i = 0; i < g->grid.count; i++)
        if (!compute_size(d, &g->grid.items[i], 1, INT32_MAX, &grid[i], e))
            return false;
    for (size_t i = 0; i < g->threadgroup.count; i++) {
        if (!compute_size(d, &g->threadgroup.items[i], 0, 1 << 20, &bytes, e))
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

static launch *add_launch(const description *d, kernel_case *c, err *e) {
    constant_value constants[DESCRIBE_CONSTANTS] = {{.index = 0}};
    const kernel *k = c->kernel;
    if (d->constant_count == 0)
        return record_launch(c->tape, k, e);
    for (size_t i = 0; i < d->constant_count; i++) {
        const described_scalar *s = &d->constants[i];
        constants[i] = (constant_value){.index = (uint32_t)s->index, .type = s->type};
        if (!write_scalar(d, &s->value, s->type, &constants[i].bits, e))
            return NULL;
    }
    const msl_unit *unit = library_find_unit(c->tape->lib, k->file, e);
    err why;
    if (!unit)
        return NULL;
    if (!constant_check(unit, constants, d->constant_count, &why)) {
        describe_refuse(d, d->constants[0].value.line, e, "%s", why.text);
        return NULL;
    }
    launch *l = tape_add_specialised(c->tape, k->file, k->name, constants, d->constant_count, e);
    if (l)
        l->kernel = k;
    return l;
}

bool describe_build(kernel_case *c, err *e) {
    description *d = describe_find_owner(c->kernel);
    slice at[DESCRIBE_ARGUMENTS] = {{.bytes = 0}};
    number flops = number_whole(0);
    describe_set_dims(d, c->shape.dim);
    for (size_t i = 0; i < d->argument_count; i++)
        if (d->arguments[i].kind <= ARGUMENT_BOTH &&
            !make_buffer(d, c, &d->arguments[i], &at[i], e))
            return false;
    launch *l = add_launch(d, c, e);
    if (!l)
        return false;
    for (size_t i = 0; i < d->argument_count; i++)
        if (!set_argument(d, l, &d->arguments[i], at[i], e))
            return false;
    if (!set_grid(d, &d->grids[c->kernel - d->kernels], l, e) ||
        (d->flops.text && !describe_compute(d, &d->flops, &flops, e)))
        return false;
    memcpy(l->dims, c->shape.dim, sizeof l->dims);
    l->flops = (uint64_t)fmax(flops.real, 0);
    l->oracle = describe_oracle;
    l->context = d;
    return true;
}

bool describe_accepts(const kernel *k, const shape *s, err *e) {
    description *d = describe_find_owner(k);
    number value;
    describe_set_dims(d, s->dim);
    return describe_compute(d, &d->needs, &value, e) &&
           (value.whole != 0 ||
            err_set(e, EXIT_CANNOT, "%.80s needs %.120s", k->name, d->needs.text));
}
