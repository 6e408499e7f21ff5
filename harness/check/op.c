#include "op.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/size.h"

const kernel *op_find_kernel(const op *o, const char *name) {
    for (size_t i = 0; i < o->kernel_count; i++)
        if (strcmp(o->kernels[i].name, name) == 0)
            return &o->kernels[i];
    return NULL;
}

const shape_list *op_get_shapes(const op *o, const kernel *k) {
    return k->shapes ? k->shapes : &o->shapes;
}

int op_find_dim(const op *o, const char *name) {
    int at = 0;
    for (const char *p = o->dims; *p; at++) {
        size_t length = strcspn(p, " ");
        if (strlen(name) == length && strncmp(p, name, length) == 0)
            return at;
        p += length;
        p += strspn(p, " ");
        p += *p == 'x' && p[1] == ' ' ? 2 : 0;
    }
    return -1;
}

int op_find_batch_dim(const op *o) {
    int batch = op_find_dim(o, "batch");
    return batch >= 0 ? batch : op_find_dim(o, "tokens");
}

static bool takes_inner(const op *o, const kernel *k, uint32_t size, err *e) {
    size_t block = k->format ? k->format->values : 1;
    if (size == 0)
        return err_set(e, EXIT_CANNOT, "needs '%s' to be at least 1, not 0", o->inner);
    if (size % block != 0)
        return err_set(e, EXIT_CANNOT, "needs '%s' to be whole %s blocks of %zu, not %u", o->inner,
                       k->format->name, block, size);
    if (k->multiple_of != 0 && size % k->multiple_of != 0)
        return err_set(e, EXIT_CANNOT, "needs '%s' to be a multiple of %u, not %u", o->inner,
                       k->multiple_of, size);
    return k->most == 0 || size <= k->most ||
           err_set(e, EXIT_CANNOT, "needs '%s' to be at most %u, not %u", o->inner, k->most, size);
}

bool op_takes(const op *o, const kernel *k, const shape *s, err *e) {
    int inner = o->inner ? op_find_dim(o, o->inner) : -1,
        many = o->many ? op_find_dim(o, o->many) : -1;
    assert((inner >= 0) == (o->inner != NULL) && (many >= 0) == (o->many != NULL));
    if (many >= 0 && k->tokens == 0 && s->dim[many] > 1)
        return err_set(e, EXIT_CANNOT, "needs '%s' to be 1, not %u", o->many, s->dim[many]);
    return (inner < 0 || takes_inner(o, k, s->dim[inner], e)) &&
           (!o->accepts || o->accepts(k, s, e));
}

size_t shape_count_dims(const shape *s) {
    size_t used = SHAPE_DIMS;
    while (used > 1 && s->dim[used - 1] == 0)
        used--;
    return used;
}

double shape_count_values(const shape *s) {
    double product = 1;
    for (size_t i = 0; i < SHAPE_DIMS; i++)
        product *= s->dim[i] ? s->dim[i] : 1;
    return product;
}

bool shape_parse(const char *text, shape *out) {
    *out = (shape){{0}};
    for (size_t i = 0; i < SHAPE_DIMS; i++) {
        char *end;
        if (!isdigit((unsigned char)*text))
            return false;
        unsigned long long n = strtoull(text, &end, 10);
        if (n > UINT32_MAX)
            return false;
        out->dim[i] = (uint32_t)n;
        if (*end == 0)
            return true;
        if (*end != 'x')
            return false;
        text = end + 1;
    }
    return false;
}

void shape_get_text(const shape *s, char *text, size_t size) {
    size_t used = shape_count_dims(s), at = 0;
    for (size_t i = 0; i < used && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, i ? "x%u" : "%u", s->dim[i]);
}

kernel_case case_new(const op *o, const kernel *k, const shape *s, distribution inputs) {
    kernel_case c = {.op = o, .kernel = k, .shape = *s, .inputs = inputs};
    char sizes[72];
    shape_get_text(s, sizes, sizeof sizes);
    snprintf(c.name, sizeof c.name, "%s/%s/%s", k->name, sizes, distribution_get_name(inputs));
    return c;
}

bool case_open(kernel_case *c, library *lib, uint64_t seed, err *e) {
    c->seed = seed;
    c->random = rng_new(seed, c->name);
    c->device = library_get_device(lib);
    c->tape = tape_new(lib);
    err why;
    if (!op_takes(c->op, c->kernel, &c->shape, &why))
        return err_set(e, why.code, "%s %s", c->name, why.text);
    return c->op->build(c, e);
}

void case_close(kernel_case *c) {
    tape_free(c->tape);
    c->tape = NULL;
    while (c->buffer_count > 0)
        buffer_free(c->buffers[--c->buffer_count]);
}

static buffer *new_buffer(kernel_case *c, const char *label, size_t bytes, err *e) {
    assert(c->buffer_count < sizeof c->buffers / sizeof c->buffers[0]);
    buffer *b = device_new_buffer(c->device, bytes, STORAGE_SHARED, label, e);
    if (b)
        c->buffers[c->buffer_count++] = b;
    return b;
}

bool case_input_bytes(kernel_case *c, const char *label, const void *data, size_t bytes, slice *out,
                      err *e) {
    buffer *b = new_buffer(c, label, bytes, e);
    if (!b || !buffer_upload(b, 0, data, bytes, e))
        return false;
    *out = slice_whole(b);
    return true;
}

bool case_input_f32(kernel_case *c, const char *label, size_t count, slice *out, err *e) {
    size_t bytes = size_multiply(count, sizeof(float));
    float *values = array_new(1, bytes);
    fill_f32(&c->random, c->inputs, values, count);
    bool ok = case_input_bytes(c, label, values, bytes, out, e);
    free(values);
    return ok;
}

bool case_output(kernel_case *c, const char *label, size_t bytes, slice *out, err *e) {
    buffer *b = new_buffer(c, label, bytes, e);
    if (!b || !buffer_fill_pattern(b, 0, bytes, POISON_PATTERN, e))
        return false;
    *out = slice_whole(b);
    return true;
}
