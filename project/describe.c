/* describe: see describe.h. Owns the ops of descriptions and their cases: buffers with their contents,
 * and the launch. */
#include "describe.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/size.h"
#include "harness/device/device.h"

static description *all;

static description *find_owner(const kernel *k) {
    description *d = all;
    while (d && !(k >= d->kernels && k < d->kernels + DESCRIBE_KERNELS))
        d = d->before;
    assert(d);
    return d;
}

void describe_set_dims(description *d, const uint32_t *sizes) {
    for (size_t i = 0; i < d->dim_count; i++)
        d->symbols[i].value.whole = sizes[i];
}

bool describe_find_file(const description *d, const described_argument *a, char *path, size_t size,
                        err *e) {
    int folder = a->text[0] == '/' ? 0 : (int)(d->file - d->path);
    size_t used = (size_t)snprintf(path, size, "%.*s", folder, d->path);
    for (const char *p = a->text; *p && used + 24 < size; p++) {
        if (*p != '{') {
            path[used++] = *p;
            continue;
        }
        size_t length = strcspn(p + 1, "}"), i = 0;
        while (i < d->dim_count &&
               (strlen(d->dims[i]) != length || strncmp(d->dims[i], p + 1, length) != 0))
            i++;
        if (i == d->dim_count || p[1 + length] != '}')
            return describe_refuse(d, a->line, e, "'%.*s' in the name of a file is not one of dims",
                                   length < 40 ? (int)length : 40, p + 1);
        used += (size_t)snprintf(path + used, size - used, "%lld",
                                 (long long)d->symbols[i].value.whole);
        p += length + 1;
    }
    path[used < size ? used : 0] = 0;
    return used + 24 < size ||
           describe_refuse(d, a->line, e, "the path of the file of '%.40s' is too long", a->name);
}

/* A case -------------------------------------------------------------------------------------- */

/* Floats from the distribution of the case, or whole numbers below one. */
static void *draw(kernel_case *c, elem type, int64_t below, size_t count) {
    unsigned char *data = malloc(size_multiply(count, elem_get_bytes(type)));
    float *floats = below > 0 ? NULL : malloc(size_multiply(count, sizeof *floats));
    assert(data && (floats || below > 0));
    if (floats)
        fill_f32(&c->random, c->inputs, floats, count);
    for (size_t i = 0; i < count; i++)
        elem_write(type, data, i,
                   floats ? (double)floats[i] : (double)rng_below(&c->random, (uint32_t)below));
    free(floats);
    return data;
}

static void *make_contents(const description *d, kernel_case *c, const described_argument *a,
                           size_t count, err *e) {
    char path[PATH_MAX];
    int64_t below = 0;
    if (a->contents == CONTENTS_FILE && !describe_find_file(d, a, path, sizeof path, e))
        return NULL;
    if (a->contents != CONTENTS_DRAWN)
        return contents_make(a->contents, a->type, a->contents == CONTENTS_FILE ? path : a->text,
                             c->seed, a->name, &count, e);
    if (a->below.text && !describe_compute_size(d, &a->below, 1, UINT32_MAX, &below, e))
        return NULL;
    return draw(c, a->type, below, count);
}

static bool make_buffer(const description *d, kernel_case *c, const described_argument *a,
                        slice *out, err *e) {
    size_t count;
    if (!describe_count_elements(d, a, NULL, &count, e))
        return false;
    const size_t bytes = count * elem_get_bytes(a->type);
    if (a->kind == ARGUMENT_OUT || a->contents == CONTENTS_UNWRITTEN)
        return case_output(c, a->name, bytes, out, e);
    void *data = make_contents(d, c, a, count, e);
    bool ok = data && case_input_bytes(c, a->name, data, bytes, out, e);
    free(data);
    return ok;
}

static bool bind_argument(description *d, launch *l, const described_argument *a, slice at,
                          err *e) {
    if (a->kind > ARGUMENT_BOTH)
        return describe_set_value(d, l, a, e);
    launch_bind(l, a->index, at, (access_mode)a->kind, a->type);
    l->may_overread |= a->may_overread ? 1u << a->index : 0;
    l->bytes += (a->kind == ARGUMENT_BOTH ? 2 : 1) * at.bytes;
    return true;
}

static bool build(kernel_case *c, err *e) {
    const kernel *k = c->kernel;
    description *d = find_owner(k);
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
        if (!bind_argument(d, l, &d->arguments[i], at[i], e))
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

static bool accepts(const kernel *k, const shape *s, err *e) {
    description *d = find_owner(k);
    number value;
    describe_set_dims(d, s->dim);
    return describe_compute(d, &d->needs, &value, e) &&
           (value.whole != 0 ||
            err_set(e, EXIT_CANNOT, "%.80s needs %.120s", k->name, d->needs.text));
}

/* Loading ------------------------------------------------------------------------------------- */

static void fill_op(description *d) {
    d->op.dims = d->dim_text;
    d->op.kernels = d->kernels;
    for (size_t i = 0; i < d->op.kernel_count && d->op.kernel_count > 1; i++)
        d->kernels[i].variant = d->kernels[i].name;
    d->op.shapes.items = d->shapes;
    d->op.build = build;
    d->op.accepts = d->needs.text ? accepts : NULL;
}

/* What is refused is not freed: messages of a few descriptions at most. */
const op *describe_load(const char *path, const char *text, err *e) {
    description *d = array_new(1, sizeof *d);
    char *copy = strdup(text), sample[PATH_MAX];
    assert(copy);
    if (!describe_read(d, DESCRIBES_OP, strdup(path), copy, e))
        return NULL;
    for (size_t i = 0; i < d->argument_count; i++)
        if (d->arguments[i].contents == CONTENTS_FILE &&
            !describe_find_file(d, &d->arguments[i], sample, sizeof sample, e))
            return NULL;
    for (size_t i = 0; i < d->rule_count; i++)
        if (d->rules[i].block && !describe_compile(d, &d->rules[i], e))
            return NULL;
    fill_op(d);
    d->before = all;
    all = d;
    return &d->op;
}
