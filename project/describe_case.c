/* describe_case: a case of a described op: buffers with their contents, and the launch. */
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array_file.h"
#include "describe_parts.h"
#include "harness/base/size.h"
#include "harness/device/device.h"

static bool count_elements(const description *d, const described_argument *a, size_t *count,
                           err *e) {
    int64_t size = 0;
    *count = 1;
    for (size_t i = 0; i < a->sizes.count; i++)
        if (!describe_compute_size(d, &a->sizes.items[i], 1, (int64_t)1 << 36, &size, e))
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
    if (a->below.text && !describe_compute_size(d, &a->below, 1, UINT32_MAX, &below, e))
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

static void bind(launch *l, const described_argument *a, slice at) {
    launch_bind(l, a->index, at, (access_mode)a->kind, a->type);
    l->may_overread |= a->may_overread ? 1u << a->index : 0;
    l->bytes += (a->kind == ARGUMENT_BOTH ? 2 : 1) * at.bytes;
}

bool describe_build(kernel_case *c, err *e) {
    const kernel *k = c->kernel;
    description *d = describe_find_owner(k);
    slice at[DESCRIBE_ARGUMENTS] = {{.bytes = 0}};
    number flops = number_whole(0);
    describe_set_dims(d, c->shape.dim);
    for (size_t i = 0; i < d->argument_count; i++)
        if (d->arguments[i].kind <= ARGUMENT_BOTH &&
            !make_buffer(d, c, &d->arguments[i], &at[i], e))
            return false;
    launch *l = describe_add_launch(d, c->tape, k->file, k->name, e);
    if (!l)
        return false;
    for (size_t i = 0; i < d->argument_count; i++)
        if (d->arguments[i].kind <= ARGUMENT_BOTH)
            bind(l, &d->arguments[i], at[i]);
        else if (!describe_set_value(d, l, &d->arguments[i], e))
            return false;
    if (!describe_set_grid(d, &d->grids[k - d->kernels], l, e) ||
        (d->flops.text && !describe_compute(d, &d->flops, &flops, e)))
        return false;
    l->kernel = k;
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
